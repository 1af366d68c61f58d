//! Text output of `mcpact probe`.

use std::time::Duration;

use mcpact_engine::policy::Policy;
use mcpact_spec::{Era, Side};

use super::explain::{effective_capabilities, ignored_capabilities, method_sections};
use super::layout::{Layout, cell, printable_lines, widest};
use super::style::Tone;
use crate::error::Exit;
use crate::explanation::{effective, ignored};
use crate::probe::connect::Agreement;
use crate::probe::dialogue::Carrier;
use crate::probe::revisions::{NOT_TRIED, RevisionState, RevisionVerdict};
use crate::probe::{Probe, failure, stderr_of};

/// Length of the longest label.
const LABEL: usize = 9;

/// Length of a revision.
const REVISION: usize = 10;

/// Limit of shown lines of instructions and stderr.
const MAX_LINES: usize = 12;

/// Formats the result of a probe.
pub(super) fn write(layout: &mut Layout, probe: &Probe) {
    match probe.outcome() {
        Some(Ok(agreement)) => agreed(layout, probe, agreement),
        Some(Err(error)) => {
            let explained = failure::explain(error);
            let title = match probe.exit() {
                Exit::Refused => "refused",
                Exit::Auth => "authentication needed",
                _ => "no connection",
            };
            layout.title(Tone::Bad, &format!("{title} ({})", explained.reason));
            about(layout, probe);
            layout.heading("Cause", "");
            layout.entry(2, &[], Tone::Plain, &explained.cause);
            for fix in &explained.fixes {
                layout.hint(2, fix);
            }
            lines(layout, "Output on stderr", stderr_of(error));
            revisions(layout, probe);
        }
        None => {}
    }
    violations(layout, probe);
}

fn agreed(layout: &mut Layout, probe: &Probe, agreement: &Agreement) {
    let pact = &agreement.pact;
    layout.title(Tone::Good, &format!("negotiated {}", pact.revision()));
    let info = pact.party(Side::Server).info.as_deref();
    let identity = info.map_or_else(
        || String::from("does not name itself"),
        |info| format!("{} {}", info.name(), info.version()),
    );
    layout.field("server", LABEL, Tone::Plain, &identity);
    about(layout, probe);
    let era = match pact.era() {
        Era::Legacy => "legacy (negotiated once, in the `initialize` handshake)",
        Era::Modern => "modern (declared in `_meta` of every request)",
    };
    layout.field("era", LABEL, Tone::Plain, era);
    layout.field("latency", LABEL, Tone::Plain, &latency(probe, agreement));
    if !agreement.unanswered.is_empty() {
        let names: Vec<String> = agreement
            .unanswered
            .iter()
            .map(|method| format!("`{method}`"))
            .collect();
        let text = format!("no response to {}", names.join(", "));
        layout.field("silence", LABEL, Tone::Bad, &text);
    }
    revisions(layout, probe);
    for side in [Side::Server, Side::Client] {
        effective_capabilities(layout, side, effective(pact, side));
    }
    ignored_capabilities(layout, &ignored(pact), false);
    method_sections(layout, pact, &Policy::default(), false);
    lines(
        layout,
        "Instructions",
        agreement.instructions.as_deref().unwrap_or_default(),
    );
}

/// Target, transport and number of starts.
fn about(layout: &mut Layout, probe: &Probe) {
    layout.field("target", LABEL, Tone::Plain, &probe.target);
    let transport = match (probe.carrier, probe.starts()) {
        (Carrier::Http, _) => String::from("HTTP"),
        (Carrier::Stdio, 1) => String::from("stdio, started once"),
        (Carrier::Stdio, starts) => format!("stdio, started {starts} times"),
    };
    layout.field("transport", LABEL, Tone::Plain, &transport);
}

fn latency(probe: &Probe, agreement: &Agreement) -> String {
    let connect = probe.attempts.first().map(|first| first.connect_time);
    let connect = milliseconds(connect.unwrap_or_default());
    match &agreement.round_trip {
        Some((method, time)) => {
            format!(
                "connected in {connect}, `{method}` in {}",
                milliseconds(*time)
            )
        }
        None => format!("connected in {connect}"),
    }
}

fn milliseconds(time: Duration) -> String {
    match time.as_millis() {
        0 => String::from("less than 1 ms"),
        time => format!("{time} ms"),
    }
}

/// Lists the revisions; those that were not tried share a line.
fn revisions(layout: &mut Layout, probe: &Probe) {
    let (untried, tried): (Vec<&RevisionVerdict>, Vec<_>) =
        probe.revisions.iter().partition(|one| one.why == NOT_TRIED);
    if tried.is_empty() {
        return;
    }
    layout.heading("Revisions", "");
    let width = widest(RevisionState::ALL.iter().map(|state| state.as_str()));
    for one in tried {
        let tone = match one.verdict {
            "accepted" => Tone::Good,
            "refused" => Tone::Bad,
            _ => Tone::Faint,
        };
        let cells = [
            cell(Tone::Name, one.revision, REVISION + 2),
            cell(tone, one.verdict, width + 2),
        ];
        layout.entry(2, &cells, Tone::Plain, &one.why);
    }
    if !untried.is_empty() {
        let names: Vec<&str> = untried.iter().map(|one| one.revision).collect();
        let text = format!("not tried: {}; see `--matrix`", names.join(", "));
        layout.entry(2, &[], Tone::Faint, &text);
    }
}

fn violations(layout: &mut Layout, probe: &Probe) {
    let count = match probe.violations.len() {
        0 => String::from("none seen"),
        count => count.to_string(),
    };
    layout.heading("Violations of the specification", &count);
    let width = widest(probe.violations.iter().map(|one| one.rule));
    for one in &probe.violations {
        let rule = cell(Tone::Bad, one.rule, width + 2);
        layout.entry(2, &[rule], Tone::Plain, &one.detail);
        layout.hint(4 + width, &one.section);
    }
}

/// Adds a text of the server, cut after some lines.
fn lines(layout: &mut Layout, title: &str, text: &str) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    layout.heading(title, "");
    let all: Vec<&str> = text.lines().collect();
    for line in all.iter().take(MAX_LINES) {
        layout.entry(2, &[], Tone::Plain, &printable_lines(line.trim_end()));
    }
    if all.len() > MAX_LINES {
        let more = all.len() - MAX_LINES;
        let text = format!("({} more; `--json` has all)", super::count(more, "line"));
        layout.entry(2, &[], Tone::Faint, &text);
    }
}
