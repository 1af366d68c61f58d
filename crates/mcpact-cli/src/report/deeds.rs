//! What a server does, before anybody agrees to it.

use std::fmt::Write;

use mcpact_config::{Deed, DeedKind};
use mcpact_gateway::control::AgreedTools;

use super::page::printable;

/// All of it: nothing is left out.
pub(crate) fn text(server: &str, deed: &Deed) -> String {
    let does = match deed.kind {
        DeedKind::Start => "wants to start",
        DeedKind::Send => "wants to be sent values of this machine",
        DeedKind::Open => "wants to let more callers in",
    };
    let mut out = format!("\n`{server}` {does}\n\n");
    for (what, text) in &deed.lines {
        let _ = writeln!(out, "  {what:9}  {}", printable(text));
    }
    let _ = writeln!(out, "  mark       {}\n", deed.mark);
    out
}

/// What became of a yes to tools: at servers of a gateway that runs, and at those of which none does.
pub(crate) fn agreed(agreed: &[AgreedTools], left: &[&str]) -> String {
    let mut out = String::new();
    for AgreedTools { server, tools } in agreed {
        let _ = match tools.as_slice() {
            [] => writeln!(out, "`{server}` says about its tools what it said before"),
            tools => {
                let tools: Vec<String> = tools
                    .iter()
                    .map(|tool| format!("`{}`", printable(tool)))
                    .collect();
                let tools = tools.join(", ");
                writeln!(
                    out,
                    "agreed to what `{server}` says about {tools}; the gateway that runs serves that from now on"
                )
            }
        };
    }
    for server in left {
        let _ = writeln!(
            out,
            "no gateway runs `{server}`; what its tools are is taken anew from its next list"
        );
    }
    out
}
