//! What a gateway serves, for people.

use std::fmt::Write;
use std::path::PathBuf;

use mcpact_gateway::{ServerReport, ServerState};

/// Where the servers come from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Nothing is configured.
    Builtin,
    /// This file.
    File(PathBuf),
}

/// Every server with what was agreed on, and what to put into the config of a client.
pub(crate) fn text(url: &str, origin: &Origin, servers: &[ServerReport]) -> String {
    let mut out = String::from("\n");
    match origin {
        Origin::Builtin => {
            out.push_str("no config found; these built-in servers show what a gateway does\n\n");
        }
        Origin::File(path) => {
            let _ = writeln!(out, "the servers of `{}`\n", path.display());
        }
    }
    if servers.is_empty() {
        out.push_str(
            "  none yet: add one to the file, and it is served at once; `mcpact import` shows what other\n  \
             clients have configured\n",
        );
    } else {
        table(&mut out, servers);
    }
    let base = url.strip_suffix("/mcp").unwrap_or(url);
    let _ = write!(
        out,
        "\n  all of them  {url}\n  one of them  {base}/servers/NAME/mcp\n\n\
         for the config of a client that speaks HTTP\n\n  \
         {{ \"mcpServers\": {{ \"mcpact\": {{ \"url\": \"{url}\" }} }} }}\n\n\
         and of one that starts programs\n\n  \
         {{ \"mcpServers\": {{ \"mcpact\": {{ \"command\": \"mcpact\", \"args\": [\"bridge\", \"{url}\"] }} }} }}\n\n"
    );
    out
}

/// A server that has introduced itself when the others were shown already; nothing of one that is missing.
pub(crate) fn late(server: &ServerReport, servers: &[ServerReport]) -> String {
    match &server.failure {
        None => row(server, width(servers)),
        Some(_) => String::new(),
    }
}

fn table(out: &mut String, servers: &[ServerReport]) {
    let width = width(servers);
    let _ = writeln!(
        out,
        "  {:width$}  {:10}  {:6}  is",
        "server", "revision", "era"
    );
    for server in servers {
        out.push_str(&row(server, width));
    }
}

/// How wide the column of names is.
fn width(servers: &[ServerReport]) -> usize {
    let names = servers.iter().map(|server| server.name.len());
    names.max().unwrap_or(0).max("server".len())
}

fn row(server: &ServerReport, width: usize) -> String {
    let (revision, era) = match server.revision {
        Some(revision) => (revision.as_str(), revision.era().as_str()),
        None => ("-", "-"),
    };
    let state = match (&server.failure, &server.calls_itself) {
        (Some(failure), _) => format!("missing: {failure}"),
        (None, Some(name)) => format!("{}, calls itself `{name}`", server.state.as_str()),
        (None, None) if server.state == ServerState::Starting => String::from("starting"),
        (None, None) => String::from("not met yet"),
    };
    let name = &server.name;
    format!("  {name:width$}  {revision:10}  {era:6}  {state}\n")
}
