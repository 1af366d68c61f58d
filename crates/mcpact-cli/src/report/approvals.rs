//! Output of `mcpact approve`.

use std::fmt::Write;
use std::path::Path;

use mcpact_config::{ApprovalKind, ApprovalSubject, UnpinnedPackage};
use mcpact_gateway::control::ApprovedTools;

use super::layout::printable;

/// Facts about an item beside its subject.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// The config.
    pub(crate) file: &'a Path,
    /// Number of the item among those that are not approved.
    pub(crate) number: usize,
    pub(crate) total: usize,
    /// Version of a package without a pin, if it is known.
    pub(crate) version: Option<&'a str>,
    pub(crate) is_approved: bool,
    /// Lines at the last approval of the item.
    pub(crate) last: Option<&'a [(String, String)]>,
}

/// Shows everything that an approval covers, and what it does not.
pub(crate) fn subject(name: &str, subject: &ApprovalSubject, shown: &Shown<'_>) -> String {
    let state = match shown.is_approved {
        true => "approved",
        false => "not approved",
    };
    let what = match subject.kind {
        ApprovalKind::Start => "starts a command",
        ApprovalKind::Send => "sends variables or files to a URL",
        ApprovalKind::Open => "admits more clients",
    };
    let Shown { number, total, .. } = shown;
    let mut out = format!("\n{state}: `{name}` {what} ({number} of {total})\n\n");
    let file = shown.file.display().to_string();
    let _ = writeln!(out, "  config     {}", printable(&file));
    for (label, text) in &subject.lines {
        let _ = writeln!(out, "  {label:9}  {}", printable(text));
    }
    let changes = shown.last.map(|last| changes(last, &subject.lines));
    for change in changes.iter().flatten() {
        let _ = writeln!(out, "  changed    {}", printable(change));
    }
    let unpinned = subject.unpinned.as_ref();
    let unpinned = unpinned.map(|package| unpinned_note(package, shown.version));
    for note in subject.notes.iter().chain(&unpinned) {
        let _ = writeln!(out, "  note       {}", printable(note));
    }
    let _ = writeln!(out, "  mark       {}\n", subject.digest);
    out
}

/// Describes what changed since the last approval.
fn changes(before: &[(String, String)], now: &[(&'static str, String)]) -> Vec<String> {
    let is_in_now = |(label, text): &(String, String)| {
        now.iter()
            .any(|(other, same)| other == label && same == text)
    };
    let is_in_before = |(label, text): &(&'static str, String)| {
        before
            .iter()
            .any(|(other, same)| other == label && same == text)
    };
    let removed = before.iter().filter(|line| !is_in_now(line));
    let removed =
        removed.map(|(label, text)| format!("removed since the last approval: {label} {text}"));
    let added = now.iter().filter(|line| !is_in_before(line));
    let added = added.map(|(label, text)| format!("added since the last approval: {label} {text}"));
    let all: Vec<String> = removed.chain(added).collect();
    match all.is_empty() {
        false => all,
        true => vec![String::from(
            "the content of a file, the order of arguments or a value has changed since the last approval",
        )],
    }
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
        ApprovalKind::Start => "  approve this command? [y/n/all/quit/?] ",
        ApprovalKind::Send => "  approve sending these values? [y/n/all/quit/?] ",
        ApprovalKind::Open => "  approve this setting? [y/n/all/quit/?] ",
    }
}

/// The answers to that question.
pub(crate) const ANSWERS: &str = "
  y     approve this item
  n     do not approve it (default)
  all   approve this item and the remaining ones
  quit  stop; what is approved so far stays approved

";

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
