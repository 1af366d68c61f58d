//! Output of `mcpact install`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mcpact_config::EntryChange;
use similar::TextDiff;

use super::layout::{Layout, cell, printable, width};
use super::style::{Tone, for_stream};

/// A client in the list.
pub(crate) struct ClientRow {
    pub(crate) name: &'static str,
    pub(crate) state: ClientState,
    /// Its config, which may be missing.
    pub(crate) file: PathBuf,
}

/// State of mcpact in a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    Installed,
    Found,
    Unreadable,
    Missing,
}

/// Formats the list of clients.
pub(crate) fn list(rows: &[ClientRow]) -> String {
    let mut layout = Layout::new(width());
    let header = [
        cell(Tone::Faint, "CLIENT", 16),
        cell(Tone::Faint, "MCPACT", 15),
    ];
    layout.entry(0, &header, Tone::Faint, "CONFIG");
    for ClientRow { name, state, file } in rows {
        let (tone, state) = match state {
            ClientState::Installed => (Tone::Good, "installed"),
            ClientState::Found => (Tone::Plain, "not installed"),
            ClientState::Unreadable => (Tone::Bad, "unreadable"),
            ClientState::Missing => (Tone::Faint, "-"),
        };
        let file = match state {
            "-" => String::from("not found"),
            _ => file.display().to_string(),
        };
        let cells = [cell(Tone::Name, name, 16), cell(tone, state, 15)];
        layout.entry(0, &cells, Tone::Plain, &file);
    }
    layout.finish(&std::io::stdout())
}

/// Formats what happened to each entry of a file.
pub(crate) fn changes(file: &Path, changes: &[(String, EntryChange)]) -> String {
    let file = file.display().to_string();
    let file = printable(&file);
    let mut out = String::new();
    for (name, change) in changes {
        let _ = match change {
            EntryChange::Added => writeln!(out, "added `{name}` to {file}"),
            EntryChange::Replaced => writeln!(out, "replaced `{name}` in {file}"),
            EntryChange::Unchanged => {
                writeln!(out, "unchanged: `{name}` is already in {file}")
            }
        };
    }
    out
}

/// Formats the difference between two texts of a file; `None` is a missing file.
pub(crate) fn diff(file: &Path, before: Option<&str>, after: &str) -> String {
    let name = file.display().to_string();
    let old = if before.is_some() {
        &*name
    } else {
        "/dev/null"
    };
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after);
    let diff = diff.unified_diff().header(old, &name).to_string();
    let mut out = String::new();
    for line in diff.lines() {
        let tone = match line.as_bytes().first() {
            Some(b'+') => Tone::Good,
            Some(b'-') => Tone::Bad,
            Some(b'@') => Tone::Hint,
            _ => Tone::Plain,
        };
        let parts: Vec<String> = line.split('\t').map(|part| tone.paint(part)).collect();
        let _ = writeln!(out, "{}", parts.join("\t"));
    }
    for_stream(out, &std::io::stdout())
}
