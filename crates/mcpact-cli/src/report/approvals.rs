//! Output of `mcpact approve`.

use std::fmt::Write;

use mcpact_config::{ApprovalKind, ApprovalSubject};
use mcpact_gateway::control::ApprovedTools;

use super::layout::printable;

/// Shows everything that an approval covers.
pub(crate) fn subject(name: &str, subject: &ApprovalSubject) -> String {
    let what = match subject.kind {
        ApprovalKind::Start => "starts a command",
        ApprovalKind::Send => "sends values of this host",
        ApprovalKind::Open => "admits more clients",
    };
    let mut out = format!("\nnot approved: `{name}` {what}\n\n");
    for (label, text) in &subject.lines {
        let _ = writeln!(out, "  {label:9}  {}", printable(text));
    }
    let _ = writeln!(out, "  mark       {}\n", subject.digest);
    out
}

/// The question below a subject.
pub(crate) const fn prompt(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Start => "  approve this command? [y/N] ",
        ApprovalKind::Send => "  approve sending these values? [y/N] ",
        ApprovalKind::Open => "  approve this setting? [y/N] ",
    }
}

/// The last line of a review.
pub(crate) fn summary(missing: usize) -> String {
    match missing {
        0 => String::from("everything is approved\n"),
        1 => String::from("1 item is not approved\n"),
        count => format!("{count} items are not approved\n"),
    }
}

/// Result of `--tools`: servers of a running gateway, then all others.
pub(crate) fn tools(approved: &[ApprovedTools], not_running: &[&str]) -> String {
    let mut out = String::new();
    for ApprovedTools { server, tools } in approved {
        let _ = match tools.as_slice() {
            [] => writeln!(out, "`{server}`: no changed tools"),
            tools => {
                let tools: Vec<String> = tools
                    .iter()
                    .map(|tool| format!("`{}`", printable(tool)))
                    .collect();
                let tools = tools.join(", ");
                writeln!(out, "`{server}`: approved in the running gateway: {tools}")
            }
        };
    }
    for server in not_running {
        let _ = writeln!(
            out,
            "`{server}`: not running; its next tool list is approved"
        );
    }
    out
}
