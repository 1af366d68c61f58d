//! Output of `mcpact approve`.

use std::fmt::Write;
use std::path::Path;

use mcpact_config::{ApprovalKind, ApprovalSubject, UnpinnedPackage};
use mcpact_gateway::control::ApprovedTools;

use super::layout::printable;

/// Shows everything that an approval covers, and what it does not. `version` is that of a package without a pin, if it is
/// known.
pub(crate) fn subject(
    name: &str,
    subject: &ApprovalSubject,
    version: Option<&str>,
    is_approved: bool,
) -> String {
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
    let unpinned = subject.unpinned.as_ref();
    let unpinned = unpinned.map(|package| unpinned_note(package, version));
    for note in subject.notes.iter().chain(&unpinned) {
        let _ = writeln!(out, "  note       {}", printable(note));
    }
    let _ = writeln!(out, "  mark       {}\n", subject.digest);
    out
}

fn unpinned_note(unpinned: &UnpinnedPackage, version: Option<&str>) -> String {
    let UnpinnedPackage {
        runner,
        package,
        pin,
        ..
    } = unpinned;
    let mut note =
        format!("`{runner}` runs the newest version of `{package}`, and updates will not ask");
    if let Some(pin) = pin {
        let (before, version) = (&pin.before_version, version.unwrap_or("VERSION"));
        let _ = write!(note, "; to pin it, write \"{before}{version}\"");
    }
    note
}

/// The question whether to write a pin into a config.
pub(crate) fn pin_prompt(pinned: &str, file: &Path) -> String {
    let file = file.display().to_string();
    format!(
        "  write \"{}\" into {}? [y/N] ",
        printable(pinned),
        printable(&file)
    )
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
