//! What a gateway serves, for people.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use mcpact_gateway::{FilterReport, ServerReport, ServerState};

use super::page::in_one_line;

/// Where the servers come from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Nothing is configured.
    Builtin,
    /// This file.
    File(PathBuf),
}

/// What a client needs to know besides the address.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The program that clients start which speak no HTTP.
    pub(crate) program: String,
    /// What they have to show.
    pub(crate) token: Option<Token>,
    /// By which names those on other machines come.
    pub(crate) hosts: Vec<String>,
}

/// How the token of a gateway is written where it must not be told.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// For other programs: a variable.
    pub(crate) variable: String,
    /// For `mcpact`, which also reads files: this one, if the config takes it from there.
    pub(crate) file: Option<PathBuf>,
}

impl Token {
    /// The token of a config that writes it so, if it can be shown, and lies in this folder.
    pub(crate) fn of(written: Option<&str>, folder: &Path) -> Self {
        let inner = written.and_then(|written| written.strip_prefix("${")?.strip_suffix('}'));
        match inner.map(|inner| inner.split_once(':').unwrap_or(("env", inner))) {
            Some(("env", name)) => Self::in_variable(name),
            Some(("file", path)) => {
                let file = Some(folder.join(path));
                Self {
                    file,
                    ..Self::in_variable(VARIABLE)
                }
            }
            Some(_) | None => Self::in_variable(VARIABLE),
        }
    }

    /// For a client that speaks HTTP.
    fn headers(&self) -> String {
        let bearer = quoted(&format!("Bearer ${{{}}}", self.variable));
        format!(", \"headers\": {{ \"Authorization\": {bearer} }}")
    }

    /// For one that starts programs: arguments in which it finds nothing to fill in, because everybody on the machine sees
    /// them, and variables.
    fn arguments(&self) -> (String, String) {
        let name = &self.variable;
        let (place, env) = match &self.file {
            Some(file) => (format!("file:{}", file.display()), String::new()),
            None => {
                let value = quoted(&format!("${{{name}}}"));
                let env = format!(", \"env\": {{ {}: {value} }}", quoted(name));
                (format!("env:{name}"), env)
            }
        };
        (format!("\"--bearer\", {}, ", quoted(&place)), env)
    }

    /// One that this variable holds.
    pub(crate) fn in_variable(name: &str) -> Self {
        Self {
            variable: name.to_owned(),
            file: None,
        }
    }
}

/// The variable that is proposed where the config names none.
const VARIABLE: &str = "MCPACT_TOKEN";

/// What stands behind a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Every server.
    pub(crate) servers: Vec<ServerReport>,
    /// The filters that cannot be asked.
    pub(crate) filters: Vec<FilterReport>,
}

/// Every server with what was agreed on, and what to put into the config of a client.
pub(crate) fn text(url: &str, origin: &Origin, entry: &Entry, shown: &Shown) -> String {
    let servers = &shown.servers;
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
    for filter in &shown.filters {
        let FilterReport { name, failure, .. } = filter;
        let effect = match filter.is_required {
            true => "what it should see is refused",
            false => "it sees nothing",
        };
        let _ = write!(
            out,
            "\n  filter `{name}` is missing, and {effect}: {failure}\n"
        );
    }
    addresses(&mut out, url, &entry.hosts);
    paste(&mut out, url, entry);
    if let Some(host) = entry.hosts.first() {
        let here = base(url);
        let there = at_host(here, host);
        let _ = writeln!(
            out,
            "on other machines with `{there}` in the place of `{here}`\n"
        );
    }
    out
}

/// Where clients come to.
fn addresses(out: &mut String, url: &str, hosts: &[String]) {
    let base = base(url);
    let _ = writeln!(
        out,
        "\n  all of them  {url}\n  one of them  {base}/servers/NAME/mcp"
    );
    for host in hosts {
        let _ = writeln!(out, "  elsewhere    {}/mcp", at_host(base, host));
    }
    out.push('\n');
}

/// The address without what stands at the end of all of them.
fn base(url: &str) -> &str {
    url.strip_suffix("/mcp").unwrap_or(url)
}

/// The same address under another name of the host.
fn at_host(base: &str, host: &str) -> String {
    let (scheme, place) = base.split_once("://").unwrap_or(("http", base));
    let port = place.rsplit_once(':').map_or("", |(_, port)| port);
    match host.contains(':') {
        true => format!("{scheme}://[{host}]:{port}"),
        false => format!("{scheme}://{host}:{port}"),
    }
}

/// What to put into the config of a client.
fn paste(out: &mut String, url: &str, entry: &Entry) {
    let (url, program) = (quoted(url), quoted(&entry.program));
    let (headers, (args, env)) = match &entry.token {
        None => Default::default(),
        Some(token) => (token.headers(), token.arguments()),
    };
    let _ = write!(
        out,
        "for the config of a client that speaks HTTP\n\n  \
         {{ \"mcpServers\": {{ \"mcpact\": {{ \"url\": {url}{headers} }} }} }}\n\n\
         and of one that starts programs\n\n  \
         {{ \"mcpServers\": {{ \"mcpact\": {{ \"command\": {program}, \"args\": [\"bridge\", {args}{url}]{env} }} }} }}\n\n"
    );
    if let Some(token) = &entry.token {
        let name = &token.variable;
        let _ = writeln!(
            out,
            "where `{name}` is a variable of the client with the token of the gateway; a client that fills in no\n\
             variables needs the token itself in the place of `${{{name}}}`\n"
        );
    }
}

/// A server that has introduced itself when the others were shown already; nothing of one that is missing.
pub(crate) fn late(server: &ServerReport, servers: &[ServerReport]) -> String {
    match &server.failure {
        None => row(server, width(servers)),
        Some(_) => String::new(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
        (None, None) if server.revision.is_some() => server.state.as_str().to_owned(),
        (None, None) if server.state == ServerState::Starting => String::from("starting"),
        (None, None) => String::from("not met yet"),
    };
    // Some of it are words of the server.
    let (name, state) = (&server.name, in_one_line(&state));
    format!("  {name:width$}  {revision:10}  {era:6}  {state}\n")
}
