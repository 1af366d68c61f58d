//! Output of `mcpact approve`.

use std::fmt::Write;

use mcpact_config::{ApprovalKind, ApprovalSubject};
use mcpact_gateway::control::ApprovedTools;

use super::layout::printable;

/// Shows everything that an approval covers.
pub(crate) fn subject(name: &str, subject: &ApprovalSubject, is_approved: bool) -> String {
    let state = match is_approved {
        true => "approved",
        false => "not approved",
    };
    let what = match subject.kind {
        ApprovalKind::Start => "starts a command",
        ApprovalKind::Send => "sends variables or files to a URL",
        ApprovalKind::Open => "admits more clients",
    };
    let mut out = format!("\n{state}: `{name}` {what}\n\n");
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

/// The last line of a review of the whole config, or of some servers.
pub(crate) fn summary(missing: usize, is_whole: bool) -> String {
    match missing {
        0 if is_whole => String::from("everything is approved\n"),
        0 => String::from("the selected servers are approved\n"),
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
            "`{server}`: not running; its next tool list will be approved"
        );
    }
    out
}
