//! What became of a config that was read anew, for people and machines.

use mcpact_gateway::control::ReloadReport;

use super::page::printable;
use super::style::{Colour, Tone};

/// All of it as JSON.
pub(crate) fn json(report: &ReloadReport) -> String {
    // Text and numbers: nothing here can fail.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

/// What is wrong with the config, for standard error.
pub(crate) fn problems(report: &ReloadReport) -> String {
    listed(report, Colour::for_stream(&std::io::stderr()))
}

fn listed(report: &ReloadReport, colour: Colour) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let tone = match problem.severity.as_str() {
            "error" => Tone::Bad,
            _ => Tone::Name,
        };
        let severity = colour.paint(tone, &format!("{}:", problem.severity));
        let said = printable(&problem.in_words(report.config.as_deref()));
        text.push_str(&format!("{severity} {said}\n"));
    }
    text
}

/// What was changed, for people.
pub(crate) fn text(report: &ReloadReport) -> String {
    if !report.applied {
        let stays = match report.config {
            Some(_) => "what the config said before still holds",
            None => "the built-in servers are served as before",
        };
        return format!("nothing was changed: {stays}\n");
    }
    let rows = [
        ("started", &report.started),
        ("stopped", &report.stopped),
        ("restarted", &report.restarted),
        ("adjusted", &report.adjusted),
        ("unchanged", &report.unchanged),
        ("gateway", &report.gateway),
        ("at the next start", &report.at_next_start),
    ];
    let is_same = rows[..4].iter().all(|(_, names)| names.is_empty());
    let mut text = String::new();
    if is_same && report.gateway.is_empty() && report.at_next_start.is_empty() {
        text.push_str("nothing has changed\n");
    }
    for (what, names) in rows.iter().filter(|(_, names)| !names.is_empty()) {
        text.push_str(&format!("{what:17}  {}\n", names.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use mcpact_gateway::control::Notice;

    use super::*;

    #[test]
    fn what_changed_is_listed_by_kind() {
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
            "started            a, b\nunchanged          c\nat the next start  listen\n"
        );
        let same = ReloadReport {
            applied: true,
            ..ReloadReport::default()
        };
        assert_eq!(text(&same), "nothing has changed\n");
    }

    #[test]
    fn what_is_wrong_has_its_place() {
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
            listed(&report, Colour::Off),
            "error: mcpact.toml:2:1: unknown key `commnad`; did you mean `command`?\n"
        );
        let kept = "nothing was changed: what the config said before still holds\n";
        assert_eq!(text(&report), kept);
        let built_in = "nothing was changed: the built-in servers are served as before\n";
        assert_eq!(text(&ReloadReport::default()), built_in);
    }
}
