//! What a command does, before anybody agrees to it.

use std::fmt::Write;

use mcpact_gateway::Deed;

use super::page::printable;

/// A command in full: nothing of it is left out.
pub(crate) fn text(server: &str, deed: &Deed) -> String {
    let mut out = format!("\n`{server}` wants to start\n\n");
    for (at, word) in deed.command.iter().enumerate() {
        let what = if at == 0 { "program" } else { "argument" };
        let _ = writeln!(out, "  {what:9}  {}", printable(word));
    }
    for name in &deed.variables {
        let _ = writeln!(out, "  variable   {}", printable(name));
    }
    if let Some(folder) = &deed.folder {
        let _ = writeln!(out, "  in folder  {}", printable(folder));
    }
    let _ = writeln!(out, "  mark       {}\n", deed.mark);
    out
}
