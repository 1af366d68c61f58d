//! Problems of a config, with the affected line.
//!
//! Configs contain secrets, so of a line only the key and the affected part are shown.

use mcpact_config::{Catalog, Launch, Problem, ReadOutcome, ServerConfig, Severity, Source};
use serde::Serialize;

use super::count;
use super::layout::{length, printable, widest};
use super::style::{Tone, for_stream};

/// Formats problems, servers and a summary as text.
pub(crate) fn text(source: &Source, outcome: &ReadOutcome) -> String {
    let mut text = all(source, &outcome.problems);
    if let Some(catalog) = &outcome.catalog {
        text.push_str(&servers(catalog));
    }
    text.push_str(&summary(source, outcome));
    for_stream(text, &std::io::stdout())
}

/// Formats only the problems, for stderr.
pub(crate) fn list(source: &Source, problems: &[Problem]) -> String {
    for_stream(all(source, problems), &std::io::stderr())
}

fn all(source: &Source, problems: &[Problem]) -> String {
    let each = problems.iter();
    each.map(|problem| one(problem, source) + "\n").collect()
}

fn one(problem: &Problem, source: &Source) -> String {
    let tone = match problem.severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Name,
        Severity::Note => Tone::Faint,
    };
    let severity = tone.paint(&format!("{}:", problem.severity.as_str()));
    let position = source.position(problem.span.start);
    let number = position.line.to_string();
    let margin = " ".repeat(number.len());
    let bar = Tone::Faint.paint("|");
    let arrow = Tone::Faint.paint("-->");
    let excerpt = excerpt(problem, source);
    let carets = "^".repeat(length(&excerpt.affected).max(1));
    let indent = " ".repeat(length(&excerpt.before));
    let mut text = format!(
        "{severity} {}\n{margin}{arrow} {}:{position}\n{margin} {bar}\n{number} {bar} {}{}{}\n{margin} {bar} {indent}{}\n",
        printable(&problem.message),
        printable(&source.name),
        excerpt.before,
        excerpt.affected,
        excerpt.after,
        tone.paint(&carets),
    );
    if let Some(remedy) = &problem.remedy {
        let hint = Tone::Hint.paint("hint:");
        text.push_str(&format!("{margin} = {hint} {}\n", printable(remedy)));
    }
    text
}

/// A line around the affected part.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    before: String,
    affected: String,
    after: &'static str,
}

/// Replaces text that is not shown.
const ELLIPSIS: &str = "…";

fn excerpt(problem: &Problem, source: &Source) -> Excerpt {
    let position = source.position(problem.span.start);
    let line = source.line(position.line);
    let start = line
        .char_indices()
        .nth(position.column - 1)
        .map_or(line.len(), |(at, _)| at);
    let (before, rest) = line.split_at(start);
    let affected_length = problem.span.end.saturating_sub(problem.span.start);
    let mut end = affected_length.min(rest.len());
    while !rest.is_char_boundary(end) {
        end += 1;
    }
    let (affected, after) = rest.split_at(end);
    let is_closed = after
        .chars()
        .all(|c| c.is_whitespace() || "\"'],}:;".contains(c));
    Excerpt {
        before: printable(&key_of(before)),
        affected: printable(affected.trim_end()),
        after: if is_closed { "" } else { ELLIPSIS },
    }
}

/// Returns the start of a line up to its first key; the rest may be a secret.
fn key_of(before: &str) -> String {
    let before = before.replace('\t', " ");
    match before.find(['=', ':']) {
        None => before,
        Some(at) => {
            let (key, rest) = before.split_at(at + 1);
            let is_plain = rest
                .chars()
                .all(|c| c.is_whitespace() || "[{\"'".contains(c));
            if is_plain {
                before
            } else {
                format!("{key} {ELLIPSIS} ")
            }
        }
    }
}

/// Lists the servers: the full command or URL, and the names of variables and headers.
fn servers(catalog: &Catalog) -> String {
    let names = catalog.servers.keys().chain(catalog.wrong.keys());
    let width = widest(names.map(|name| name.as_str())) + 2;
    let mut text = String::new();
    for (name, server) in &catalog.servers {
        let gap = " ".repeat(width - length(name.as_str()));
        let painted = Tone::Name.paint(name.as_str());
        text.push_str(&format!("  {painted}{gap}{}\n", printable(&launch(server))));
        for more in details(server) {
            let more = Tone::Faint.paint(&printable(&more));
            text.push_str(&format!("  {}{more}\n", " ".repeat(width)));
        }
    }
    for name in catalog.wrong.keys() {
        let gap = " ".repeat(width - length(name.as_str()));
        let painted = Tone::Name.paint(name.as_str());
        let unusable = Tone::Bad.paint("unusable, not served: see above");
        text.push_str(&format!("  {painted}{gap}{unusable}\n"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn launch(server: &ServerConfig) -> String {
    match &server.launch {
        Launch::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.args);
            let words: Vec<String> = words.map(|word| quoted(word.written())).collect();
            words.join(" ")
        }
        Launch::Url(url) => mcpact_transport::address::shown(url.url.written()),
        Launch::Builtin(name) => format!("built-in `{name}`"),
    }
}

/// Quotes a word that contains spaces.
fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) {
        format!("{word:?}")
    } else {
        word.to_owned()
    }
}

fn details(server: &ServerConfig) -> Vec<String> {
    let mut details = Vec::new();
    let mut name_all = |label: &str, names: Vec<&str>| {
        if !names.is_empty() {
            details.push(format!("{label}: {}", names.join(", ")));
        }
    };
    match &server.launch {
        Launch::Command(command) => {
            name_all("env", command.env.keys().map(String::as_str).collect());
            name_all("cwd", command.cwd.iter().map(|cwd| cwd.written()).collect());
            let sandbox = server.launch.sandbox();
            name_all("sandbox", sandbox.iter().map(String::as_str).collect());
        }
        Launch::Url(url) => {
            name_all("headers", url.headers.keys().map(String::as_str).collect());
        }
        Launch::Builtin(_) => {}
    }
    if !server.enabled {
        details.push(String::from("disabled"));
    }
    details
}

fn summary(source: &Source, outcome: &ReadOutcome) -> String {
    let mut found = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        let problems = outcome.problems.iter();
        let number = problems.filter(|one| one.severity == severity).count();
        if number > 0 {
            found.push(count(number, severity.as_str()));
        }
    }
    let found = if found.is_empty() {
        String::from("no problems")
    } else {
        found.join(", ")
    };
    let name = printable(&source.name);
    match &outcome.catalog {
        Some(catalog) => format!(
            "{name}: {}, {found}\n",
            count(catalog.servers.len(), "server")
        ),
        None => format!("{name}: invalid, {found}\n"),
    }
}

#[derive(Serialize)]
struct Report<'c> {
    file: &'c str,
    usable: bool,
    servers: Vec<&'c str>,
    problems: Vec<Row<'c>>,
}

#[derive(Serialize)]
struct Row<'c> {
    severity: &'static str,
    line: usize,
    column: usize,
    message: &'c str,
    remedy: Option<&'c str>,
}

/// Formats everything as JSON. Every field is always present.
pub(crate) fn json(source: &Source, outcome: &ReadOutcome) -> String {
    let catalog = outcome.catalog.as_ref();
    let rows = outcome.problems.iter().map(|problem| {
        let position = source.position(problem.span.start);
        Row {
            severity: problem.severity.as_str(),
            line: position.line,
            column: position.column,
            message: &problem.message,
            remedy: problem.remedy.as_deref(),
        }
    });
    let report = Report {
        file: &source.name,
        usable: catalog.is_some(),
        servers: catalog.map_or_else(Vec::new, |catalog| {
            catalog.servers.keys().map(|name| name.as_str()).collect()
        }),
        problems: rows.collect(),
    };
    super::json(&report)
}

#[cfg(test)]
mod tests {
    use mcpact_config::Span;

    use super::*;

    fn shown(line: &str, affected: &str) -> String {
        let source = Source::new("a", format!("\n{line}\n"));
        let start = source.text.find(affected).unwrap();
        let problem = Problem {
            severity: Severity::Error,
            span: Span::new(start, start + affected.len()),
            message: String::new(),
            remedy: None,
        };
        let excerpt = excerpt(&problem, &source);
        format!("{}{}{}", excerpt.before, excerpt.affected, excerpt.after)
    }

    #[test]
    fn only_the_key_and_the_affected_part_are_shown() {
        for (line, affected, expected) in [
            ("comand = \"npx\"", "comand", "comand…"),
            ("era = \"modrn\"", "\"modrn\"", "era = \"modrn\""),
            ("[servers.a]", "a", "[servers.a"),
            (
                "args = [\"--key\", \"hunter2\", \"&&\"]",
                "\"&&\"",
                "args = … \"&&\"",
            ),
            ("env = { K = \"hunter2\", L = 1 }", "1", "env = … 1"),
            ("  K: hunter2", "K", "  K…"),
            ("env: {K: hunter2, L: [1]}", "[1]", "env: … [1]"),
            (
                "\"K\": \"Bearer hunter2 ${NOPE}\"",
                "${NOPE}",
                "\"K\": … ${NOPE}",
            ),
            ("\"K\": \"${NOPE} hunter2\"", "${NOPE}", "\"K\": \"${NOPE}…"),
        ] {
            assert_eq!(shown(line, affected), expected, "{line}");
        }
    }
}
