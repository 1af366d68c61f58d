//! Output of `mcpact reload`.

use mcpact_gateway::control::ReloadReport;

use super::layout::printable;
use super::style::{Tone, for_stream};

/// Formats the problems of the config, for stderr.
pub(crate) fn problems(report: &ReloadReport) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let tone = match problem.severity.as_str() {
            "error" => Tone::Bad,
            _ => Tone::Name,
        };
        let severity = tone.paint(&format!("{}:", problem.severity));
        let position = match (&report.config, problem.line, problem.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            (Some(file), _, _) => format!("{file}: "),
            (None, _, _) => String::new(),
        };
        let message = printable(&format!("{position}{}", problem.message));
        text.push_str(&format!("{severity} {message}\n"));
        if let Some(remedy) = &problem.remedy {
            text.push_str(&super::hint_line(&printable(remedy)));
        }
    }
    for_stream(text, &std::io::stderr())
}

/// Formats the changes as text.
pub(crate) fn text(report: &ReloadReport) -> String {
    if !report.applied {
        let reason = match report.config {
            Some(_) => "config rejected; the previous config stays in effect",
            None => "not reloaded; the gateway serves built-in servers",
        };
        return format!("{reason}\n");
    }
    let rows = [
        ("started", &report.started),
        ("stopped", &report.stopped),
        ("restarted", &report.restarted),
        ("adjusted", &report.adjusted),
        ("unchanged", &report.unchanged),
        ("gateway keys", &report.gateway),
        ("needs restart", &report.at_next_start),
    ];
    let is_same = rows[..4].iter().all(|(_, names)| names.is_empty());
    let mut text = String::new();
    if is_same && report.gateway.is_empty() && report.at_next_start.is_empty() {
        text.push_str("no changes\n");
    }
    for (what, names) in rows.iter().filter(|(_, names)| !names.is_empty()) {
        text.push_str(&format!("{what:13}  {}\n", names.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use mcpact_gateway::control::Notice;

    use super::*;

    #[test]
    fn changes_are_listed_by_kind() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let report = ReloadReport {
            applied: true,
            started: names(&["a", "b"]),
            unchanged: names(&["c"]),
            at_next_start: names(&["listen"]),
            ..ReloadReport::default()
        };
        assert_eq!(
            text(&report),
            "started        a, b\nunchanged      c\nneeds restart  listen\n"
        );
        let same = ReloadReport {
            applied: true,
            ..ReloadReport::default()
        };
        assert_eq!(text(&same), "no changes\n");
    }

    #[test]
    fn problems_have_position_and_hint() {
        let report = ReloadReport {
            config: Some(String::from("mcpact.toml")),
            problems: vec![Notice {
                severity: String::from("error"),
                line: Some(2),
                column: Some(1),
                message: String::from("unknown key `commnad`"),
                remedy: Some(String::from("did you mean `command`?")),
            }],
            ..ReloadReport::default()
        };
        assert_eq!(
            problems(&report),
            "error: mcpact.toml:2:1: unknown key `commnad`\n  hint: did you mean `command`?\n"
        );
        let rejected = "config rejected; the previous config stays in effect\n";
        assert_eq!(text(&report), rejected);
        let built_in = "not reloaded; the gateway serves built-in servers\n";
        assert_eq!(text(&ReloadReport::default()), built_in);
    }
}
