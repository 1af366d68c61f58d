//! Comparison of printed output with a page.

/// Returns whether the whole output equals the text of the page, where `…` stands for anything.
pub(crate) fn matches(page: &str, printed: &str) -> bool {
    let (page, printed) = (normalized(page), normalized(printed));
    let mut parts = page.split('…').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Returns whether each line of the page is in the output, in any order. For commands that keep running: servers that
/// start slowly follow later.
pub(crate) fn has_lines(page: &str, printed: &str) -> bool {
    let mut printed: Vec<String> = printed.lines().map(normalized).collect();
    let mut shown = page.lines().map(str::trim);
    shown.all(|line| {
        let found = printed.iter().position(|one| matches(line, one));
        matches!(line, "" | "…") || found.map(|at| printed.remove(at)).is_some()
    })
}

/// Replaces what differs between two runs: process ids and other long numbers, durations, times, line breaks and
/// alignment.
fn normalized(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = matches!(unpunctuated(word), "ms" | "s" | "min" | "h");
        match words.last_mut() {
            Some(last) if is_unit && is_number(last) => *last = String::from("TIME"),
            _ => words.push(masked(word)),
        }
    }
    words.join(" ")
}

fn masked(word: &str) -> String {
    let bare = unpunctuated(word);
    let duration = bare.strip_suffix("ms").or_else(|| bare.strip_suffix('s'));
    let is_date = |text: &str| text.starts_with("20") && text.contains('T') && text.ends_with('Z');
    if duration.is_some_and(is_number) || is_date(bare) {
        return String::from("TIME");
    }
    match is_number(bare) && bare.len() > 2 {
        true => word.replace(bare, "NUMBER"),
        false => word.to_owned(),
    }
}

fn unpunctuated(word: &str) -> &str {
    word.trim_end_matches([',', ';', ':', ')', '.'])
}

fn is_number(word: &str) -> bool {
    let digit = |one: char| one.is_ascii_digit() || one == '.';
    word == "NUMBER" || (!word.is_empty() && word.chars().all(digit))
}

#[test]
fn numbers_times_and_line_breaks_may_differ() {
    assert!(matches(
        "running for 8 s, pid 10775, version 0.1.0",
        "running for 12 s,\n    pid 9901, version 0.1.0"
    ));
    assert!(matches("next start in 4.3s", "next start in 120ms"));
    assert!(matches(
        "2026-11-18T02:11:07.194Z  files#1",
        "2027-01-01T00:00:00.000Z files#1"
    ));
    assert!(!matches("TOOLS 41", "TOOLS 42"));
    assert!(!matches("2025-11-25", "2025-06-18"));
}

#[test]
fn ellipsis_stands_for_anything() {
    assert!(matches("a\n…\nd\n", "a\nb\nc\nd\n"));
    assert!(matches("{\"id\":…,\"x\":1}", "{\"id\":77,\"x\":1}"));
    assert!(matches("a\n…\n", "a\n"));
    assert!(!matches("a\n…\nd\n", "a\nb\n"));
    assert!(!matches("a\n", "a\nb\n"));
}

#[test]
fn lines_of_running_commands_come_in_any_order() {
    assert!(has_lines(
        "one\n\ntwo ready\n",
        "two starting\none\ntwo   ready\n"
    ));
    assert!(!has_lines("one\none\n", "one\n"));
}
