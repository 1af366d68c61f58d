//! Overview that `mcpact serve` prints at startup.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::stderr;
use std::path::{Path, PathBuf};

use mcpact_gateway::{FilterReport, ServerReport, ServerState};

use super::count;
use super::layout::{Cell, Layout, cell, in_one_line, width};
use super::style::Tone;

/// Facts for the config of a client, besides the URL.
#[derive(Clone, Debug)]
pub(crate) struct ClientSetup {
    /// Program for clients without HTTP.
    pub(crate) program: String,
    /// Token reference, if the gateway requires a token.
    pub(crate) token: Option<TokenReference>,
    /// Host names for clients on other machines.
    pub(crate) hosts: Vec<String>,
}

/// Reference to the gateway's token that does not reveal it.
#[derive(Clone, Debug)]
pub(crate) struct TokenReference {
    /// Environment variable, for any client.
    pub(crate) variable: String,
    /// Token file, if the config uses one; `mcpact bridge` can read it.
    pub(crate) file: Option<PathBuf>,
}

impl TokenReference {
    /// Parses the token as written in a config in this directory.
    pub(crate) fn parse(written: Option<&str>, dir: &Path) -> Self {
        let inner = written.and_then(|written| written.strip_prefix("${")?.strip_suffix('}'));
        match inner.map(|inner| inner.split_once(':').unwrap_or(("env", inner))) {
            Some(("env", name)) => Self::variable(name),
            Some(("file", path)) => {
                let file = Some(dir.join(path));
                Self {
                    file,
                    ..Self::variable(DEFAULT_VARIABLE)
                }
            }
            Some(_) | None => Self::variable(DEFAULT_VARIABLE),
        }
    }

    /// A token in an environment variable.
    pub(crate) fn variable(name: &str) -> Self {
        Self {
            variable: name.to_owned(),
            file: None,
        }
    }

    /// Returns the headers for an HTTP client.
    fn headers(&self) -> String {
        let bearer = quoted(&format!("Bearer ${{{}}}", self.variable));
        format!(", \"headers\": {{ \"Authorization\": {bearer} }}")
    }

    /// Returns arguments and variables for a stdio client. The arguments contain no `${…}` that a
    /// client would expand, because the process list shows them.
    fn arguments(&self) -> (String, String) {
        let name = &self.variable;
        let (source, env) = match &self.file {
            Some(file) => (format!("file:{}", file.display()), String::new()),
            None => {
                let value = quoted(&format!("${{{name}}}"));
                let env = format!(", \"env\": {{ {}: {value} }}", quoted(name));
                (format!("env:{name}"), env)
            }
        };
        (format!("\"--bearer\", {}, ", quoted(&source)), env)
    }
}

/// Variable to suggest if the config names none.
const DEFAULT_VARIABLE: &str = "MCPACT_TOKEN";

/// Parts of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) servers: &'a [ServerReport],
    /// Skipped servers, with the reason.
    pub(crate) invalid: &'a BTreeMap<String, String>,
    /// Unapproved filters.
    pub(crate) filters: &'a [FilterReport],
    /// Configs of other clients, with the number of servers.
    pub(crate) found: &'a [(PathBuf, usize)],
}

/// Formats the servers, the unapproved filters, the endpoints and the config for clients. Without a config, the servers
/// are built-in ones.
pub(crate) fn text(
    url: &str,
    config: Option<&Path>,
    setup: &ClientSetup,
    parts: &Parts<'_>,
) -> String {
    let mut layout = Layout::new(width());
    layout.blank();
    let title = match config {
        None => String::from("No config found; serving built-in demo servers"),
        Some(path) => format!("Serving {}", path.display()),
    };
    layout.title(Tone::Plain, &title);
    layout.blank();
    if parts.servers.is_empty() && parts.invalid.is_empty() {
        let empty = "no servers yet: add one to the config, which is reloaded at once, or run `mcpact import`";
        layout.entry(2, &[], Tone::Plain, empty);
    } else {
        table(&mut layout, parts);
    }
    for filter in parts.filters {
        let FilterReport { name, failure, .. } = filter;
        let effect = match filter.is_required {
            true => "matching requests are refused",
            false => "it is skipped",
        };
        let text = format!("filter `{name}` is not running, {effect}: {failure}");
        layout.blank();
        layout.entry(2, &[], Tone::Bad, &in_one_line(&text));
    }
    if !parts.found.is_empty() {
        layout.blank();
        layout.title(
            Tone::Plain,
            "Found configs of other clients; to serve one, run:",
        );
        for (path, servers) in parts.found {
            let path = in_one_line(&path.display().to_string());
            let quote = if path.contains(' ') { "\"" } else { "" };
            let command = format!("mcpact serve --config {quote}{path}{quote}");
            let text = format!("{command}  ({})", count(*servers, "server"));
            layout.entry(2, &[], Tone::Name, &text);
        }
    }
    let mut out = layout.finish(&stderr());
    endpoints(&mut out, url, &setup.hosts);
    client_configs(&mut out, url, setup);
    if let Some(host) = setup.hosts.first() {
        let local = base(url);
        let remote = at_host(local, host);
        let _ = writeln!(
            out,
            "On other machines, replace `{local}` with `{remote}`.\n"
        );
    }
    out
}

fn endpoints(out: &mut String, url: &str, hosts: &[String]) {
    let base = base(url);
    let _ = writeln!(
        out,
        "\nEndpoints:\n  all servers  {url}\n  one server   {base}/servers/NAME/mcp"
    );
    for host in hosts {
        let _ = writeln!(out, "  remote       {}/mcp", at_host(base, host));
    }
    out.push('\n');
}

/// Strips the path from the URL.
fn base(url: &str) -> &str {
    url.strip_suffix("/mcp").unwrap_or(url)
}

/// Replaces the host of a base URL.
fn at_host(base: &str, host: &str) -> String {
    let (scheme, authority) = base.split_once("://").unwrap_or(("http", base));
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    match host.contains(':') {
        true => format!("{scheme}://[{host}]:{port}"),
        false => format!("{scheme}://{host}:{port}"),
    }
}

fn client_configs(out: &mut String, url: &str, setup: &ClientSetup) {
    let (url, program) = (quoted(url), quoted(&setup.program));
    let (headers, (args, env)) = match &setup.token {
        None => Default::default(),
        Some(token) => (token.headers(), token.arguments()),
    };
    // No HTTP client has a common form for Unix sockets.
    if !url.starts_with("\"unix:") {
        let _ = write!(
            out,
            "Add to an HTTP client:\n  \
             {{ \"mcpServers\": {{ \"mcpact\": {{ \"url\": {url}{headers} }} }} }}\n\n"
        );
    }
    let _ = write!(
        out,
        "Add to a stdio client:\n  \
         {{ \"mcpServers\": {{ \"mcpact\": {{ \"command\": {program}, \"args\": [\"bridge\", {args}{url}]{env} }} }} }}\n\n"
    );
    if let Some(token) = &setup.token {
        let name = &token.variable;
        let _ = writeln!(
            out,
            "Set `{name}` to the token in the environment of the client. If the client\n\
             does not expand variables, replace `${{{name}}}` with the token.\n"
        );
    }
}

/// Formats a server that started after the overview; nothing for a failed one.
pub(crate) fn late(server: &ServerReport, servers: &[ServerReport]) -> String {
    let mut layout = Layout::new(width());
    if server.failure.is_none() {
        row(&mut layout, server, name_width(servers));
    }
    layout.finish(&stderr())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn table(layout: &mut Layout, parts: &Parts<'_>) {
    let invalid = parts.invalid.keys().map(String::len).max();
    let width = name_width(parts.servers).max(invalid.unwrap_or(0));
    let header = cell(Tone::Faint, "SERVER", width + 2);
    entry(
        layout,
        header,
        [Tone::Faint; 2],
        ["REVISION", "ERA", "STATE"],
    );
    for server in parts.servers {
        row(layout, server, width);
    }
    for (name, why) in parts.invalid {
        let name = cell(Tone::Name, name, width + 2);
        let why = in_one_line(&format!("unusable: {why}"));
        entry(layout, name, [Tone::Plain, Tone::Bad], ["-", "-", &why]);
    }
}

fn name_width(servers: &[ServerReport]) -> usize {
    let names = servers.iter().map(|server| server.name.len());
    names.max().unwrap_or(0).max("SERVER".len())
}

fn row(layout: &mut Layout, server: &ServerReport, width: usize) {
    let (revision, era) = match server.revision {
        Some(revision) => (revision.as_str(), revision.era().as_str()),
        None => ("-", "-"),
    };
    let state = server.state.as_str();
    let (tone, state) = match (&server.failure, &server.calls_itself) {
        (Some(failure), _) => (Tone::Bad, format!("unavailable: {failure}")),
        (None, Some(name)) => (Tone::Good, format!("{state} (`{name}`)")),
        (None, None) if server.revision.is_some() => (Tone::Good, state.to_owned()),
        (None, None) if server.state == ServerState::Starting => {
            (Tone::Plain, String::from("starting"))
        }
        (None, None) => (Tone::Plain, String::from("not started")),
    };
    let name = cell(Tone::Name, &server.name, width + 2);
    // The state may contain text of the server.
    let state = in_one_line(&state);
    entry(layout, name, [Tone::Plain, tone], [revision, era, &state]);
}

fn entry(layout: &mut Layout, name: Cell<'_>, tones: [Tone; 2], texts: [&str; 3]) {
    let ([tone, last], [revision, era, state]) = (tones, texts);
    let cells = [name, cell(tone, revision, 12), cell(tone, era, 8)];
    layout.entry(2, &cells, last, state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_configs_and_skipped_servers_are_listed() {
        let setup = ClientSetup {
            program: String::from("mcpact"),
            token: None,
            hosts: Vec::new(),
        };
        let found = [(PathBuf::from("/home/ada/.cursor/mcp.json"), 2)];
        let why = String::from("variable `KEY` is not set");
        let invalid = BTreeMap::from([(String::from("files"), why)]);
        let parts = Parts {
            servers: &[],
            invalid: &invalid,
            filters: &[],
            found: &found,
        };
        let shown = text("http://127.0.0.1:1/mcp", None, &setup, &parts);
        let shown = anstream::adapter::strip_str(&shown).to_string();
        for words in [
            "files   -           -       unusable: variable `KEY` is not set\n",
            "  mcpact serve --config /home/ada/.cursor/mcp.json  (2 servers)\n",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
    }
}
