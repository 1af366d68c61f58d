//! Import of configs of other clients as a native config.

mod relative_paths;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::expand::{Expansion, ExpansionMode, OnMissing, TargetFolder};
use super::fields::{number_in, warn_of_nulls};
use super::foreign::{ConvertedConfig, convert, report_numbered};
use super::keys;
use super::name::ServerName;
use super::problem::{Findings, Problem};
use super::read::{check_import, is_unknown_number};
use super::source::{Source, is_misleading};
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};
use crate::local_host::HostEnvironment;

/// A client with an importable config.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Name on the command line.
    pub name: &'static str,
    /// Config paths by precedence. `~` is the home folder, `.` the project, and `*` every file of a folder.
    files: &'static [&'static str],
}

const fn client(name: &'static str, files: &'static [&'static str]) -> Client {
    Client { name, files }
}

/// Supported clients.
pub const CLIENTS: &[Client] = &[
    client(
        "claude-desktop",
        &[
            "~/.config/Claude/claude_desktop_config.json",
            "~/.config/claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "~/AppData/Roaming/Claude/claude_desktop_config.json",
        ],
    ),
    client("claude-code", &["./.mcp.json", "~/.claude.json"]),
    client(
        "vscode",
        &[
            "./.vscode/mcp.json",
            "./.vscode/settings.json",
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
            "~/AppData/Roaming/Code/User/mcp.json",
            "~/.config/Code/User/settings.json",
            "~/Library/Application Support/Code/User/settings.json",
            "~/AppData/Roaming/Code/User/settings.json",
            "~/.copilot/mcp-config.json",
        ],
    ),
    client("cursor", &["./.cursor/mcp.json", "~/.cursor/mcp.json"]),
    client("windsurf", &["~/.codeium/windsurf/mcp_config.json"]),
    client(
        "zed",
        &[
            "./.zed/settings.json",
            "~/.config/zed/settings.json",
            "~/AppData/Roaming/Zed/settings.json",
        ],
    ),
    client("codex", &["./.codex/config.toml", "~/.codex/config.toml"]),
    client(
        "gemini",
        &["./.gemini/settings.json", "~/.gemini/settings.json"],
    ),
    client(
        "opencode",
        &[
            "./opencode.json",
            "./opencode.jsonc",
            "~/.config/opencode/opencode.json",
            "~/.config/opencode/opencode.jsonc",
        ],
    ),
    client(
        "cline",
        &[
            "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "~/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "~/AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ],
    ),
    client("goose", &["~/.config/goose/config.yaml"]),
    client(
        "continue",
        &["./.continue/mcpServers/*", "~/.continue/config.yaml"],
    ),
];

impl Client {
    /// Returns the client with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Config paths by precedence, as in [`CLIENTS`].
    pub(super) const fn files(&self) -> &'static [&'static str] {
        self.files
    }

    /// Possible config paths. A path that ends with `*` stands for every file of its folder.
    pub fn paths(&self, folders: &Folders) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|file| folders.path(file))
    }
}

/// Base folders of config paths.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Home folder.
    pub home: PathBuf,
    /// Config folder of the user: `XDG_CONFIG_HOME` or `~/.config`.
    pub configs: PathBuf,
    /// Project folder.
    pub project: PathBuf,
}

impl Folders {
    pub(super) fn path(&self, file: &str) -> PathBuf {
        let starts = [
            ("~/.config/", &self.configs),
            ("~/", &self.home),
            ("./", &self.project),
        ];
        let inner = starts
            .into_iter()
            .find_map(|(start, folder)| Some(folder.join(file.strip_prefix(start)?)));
        inner.unwrap_or_else(|| PathBuf::from(file))
    }

    /// Returns whether this is a user-wide config file.
    #[must_use]
    pub fn is_for_all_projects(&self, path: &Path) -> bool {
        let files = CLIENTS.iter().flat_map(|client| client.files);
        let mut files = files.filter(|file| file.starts_with("~/"));
        files.any(|file| self.path(file) == path)
    }
}

/// A native config made from configs of other clients. Without a target folder, all its paths are absolute.
#[derive(Debug, Default)]
pub struct Import {
    /// Text of the config.
    pub text: String,
    /// Servers in the order of the text.
    pub servers: Vec<String>,
    /// Problems of each source.
    pub reports: Vec<(Source, Vec<Problem>)>,
    /// Original name and file of each server, by its new name.
    names: BTreeMap<String, (String, String)>,
    folder: Option<String>,
    /// Settings of the gateway in the text.
    gateway: Option<String>,
}

impl Import {
    /// Creates an import for a config in this folder.
    pub fn into_folder(folder: impl Into<String>) -> Self {
        Self {
            folder: Some(folder.into()),
            ..Self::default()
        }
    }

    /// Adds the servers of a config. If a name is taken, the first server keeps it.
    pub fn add(&mut self, source: Source, host: &dyn HostEnvironment) {
        let mut findings = Findings::default();
        let syntax = Syntax::of(&source);
        let problems = match syntax.parse(&source) {
            Err(_) if has_no_servers(&source) => Vec::new(),
            Err(problem) => vec![problem],
            Ok(root) => {
                let folder = host.folder();
                let target = match &self.folder {
                    Some(own) if *own == folder => TargetFolder::Same,
                    Some(_) | None => TargetFolder::Other,
                };
                // A client without servers is not an error.
                if let Some(ConvertedConfig {
                    mut root,
                    variable_syntax,
                    renamed,
                    is_native,
                    ..
                }) = convert(root, syntax, &source, &folder, &mut findings)
                {
                    if is_native {
                        keep_servers(&mut root, &mut findings);
                    }
                    let expansion = |mode| Expansion {
                        source: &source,
                        host,
                        variable_syntax,
                        mode,
                    };
                    let values = expansion(ExpansionMode::Values(OnMissing::Keep));
                    fill_numbers(&mut root, &values, &mut findings);
                    let expansion = expansion(ExpansionMode::Names(target));
                    expansion.run(&mut root, &mut findings);
                    if target == TargetFolder::Other {
                        relative_paths::resolve(&mut root, host, &mut findings);
                    }
                    let mut written = root.clone();
                    drop_nulls(&mut written);
                    let (errors, refused) = check_import(&written, &source, host);
                    findings.extend(errors);
                    remove(&refused, &mut root);
                    self.gateway(&root, &source, &mut findings);
                    self.servers(&root, &renamed, &source, &mut findings);
                }
                findings.finish()
            }
        };
        self.reports.push((source, problems));
    }

    /// Adds the settings of the gateway, if no other config had any.
    fn gateway(&mut self, root: &Node, source: &Source, findings: &mut Findings) {
        let member = root.table().and_then(|root| root.member("gateway"));
        let Some((member, table)) = member.and_then(|member| Some((member, member.node.table()?)))
        else {
            return;
        };
        let mut text = format!("# from {}\n[gateway]\n", one_line(&source.name));
        for Member { key, node, .. } in &table.0 {
            if let Some(value) = toml_value(node) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} = {value}", toml_key(key));
            }
        }
        match &self.gateway {
            None if self.text.is_empty() => self.text = text.clone(),
            None => self.text.insert_str(0, &format!("{text}\n")),
            Some(known) if known.split_once('\n') == text.split_once('\n') => return,
            Some(_) => {
                let message = "settings of the gateway were already imported from another file";
                findings.warning_with(member.key_span, message, "import one of the files");
                return;
            }
        }
        self.gateway = Some(text);
    }

    fn servers(
        &mut self,
        root: &Node,
        renamed: &BTreeMap<String, String>,
        source: &Source,
        findings: &mut Findings,
    ) {
        let of_others: BTreeMap<String, String> = self.names.values().cloned().collect();
        let servers = root.table().and_then(|table| table.member("servers"));
        let servers = servers.and_then(|servers| servers.node.table());
        for Member {
            key,
            key_span,
            node,
            ..
        } in servers.into_iter().flat_map(|table| &table.0)
        {
            let Some(table) = node.table() else {
                continue;
            };
            let there = renamed.get(key).unwrap_or(key);
            if let Some(file) = of_others.get(there) {
                let message =
                    format!("server `{there}` was already imported from another file: `{file}`");
                findings.note(*key_span, message);
                continue;
            }
            let near = ServerName::near(key);
            let name = near.first_free(|name| !self.names.contains_key(name.as_str()));
            if name != near {
                report_numbered(there, &near, &name, *key_span, findings);
            }
            warn_of_nulls(table, |_| true, &format!("server `{there}`"), findings);
            let origin = (there.clone(), source.name.clone());
            self.names.insert(name.to_string(), origin);
            self.server(name.as_str(), table, source);
        }
    }

    fn server(&mut self, name: &str, table: &Table, source: &Source) {
        let lead = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = write!(
            self.text,
            "{lead}# from {}\n[servers.{name}]\n",
            one_line(&source.name)
        );
        for key in keys::SERVER {
            let value = table
                .member(key.name)
                .and_then(|member| toml_value(&member.node));
            if let Some(value) = value {
                let _ = writeln!(self.text, "{} = {value}", key.name);
            }
        }
        self.servers.push(name.to_owned());
    }
}

/// Removes the tables of a native config that are not imported.
fn keep_servers(root: &mut Node, findings: &mut Findings) {
    if let Value::Table(root) = &mut root.value {
        for member in root.0.extract_if(.., |member| member.key != "servers") {
            if member.key != "$schema" {
                let message = format!("`{}` is not imported, only the servers", member.key);
                let remedy = "copy it from the original";
                findings.warning_with(member.key_span, message, remedy);
            }
        }
    }
}

/// Drops what has no value in TOML.
fn drop_nulls(node: &mut Node) {
    match &mut node.value {
        Value::List(items) => {
            items.retain(|item| item.value != Value::Null);
            items.iter_mut().for_each(drop_nulls);
        }
        Value::Table(table) => {
            table.0.retain(|member| member.node.value != Value::Null);
            let members = table.0.iter_mut();
            members.for_each(|member| drop_nulls(&mut member.node));
        }
        _ => {}
    }
}

/// The servers of a native tree.
fn servers_in(root: &mut Node) -> Option<&mut Table> {
    let Value::Table(root) = &mut root.value else {
        return None;
    };
    let mut members = root.0.iter_mut();
    match &mut members.find(|member| member.key == "servers")?.node.value {
        Value::Table(servers) => Some(servers),
        _ => None,
    }
}

/// Removes servers that cannot be served.
fn remove(refused: &BTreeMap<ServerName, String>, root: &mut Node) {
    if let Some(servers) = servers_in(root) {
        let is_refused = |server: &Member| refused.contains_key(&ServerName::near(&server.key));
        servers.0.retain(|server| !is_refused(server));
    }
}

/// Replaces variables in numbers by their values: a native config has none there.
fn fill_numbers(root: &mut Node, values: &Expansion<'_>, findings: &mut Findings) {
    for server in servers_in(root)
        .into_iter()
        .flat_map(|servers| &mut servers.0)
    {
        let Value::Table(server) = &mut server.node.value else {
            continue;
        };
        for member in server
            .0
            .iter_mut()
            .filter(|member| is_unknown_number(member))
        {
            // `check_import` reports unset variables.
            values.run(&mut member.node, &mut Findings::default());
            let text = member.node.text().filter(|text| text.has_variables());
            let number = text.map(|text| number_in(text.value()));
            if let Some(number) = number.filter(|number| *number != Value::Null) {
                let message = format!("the current value of `{}` is imported", member.written());
                findings.note(member.key_span, message);
                member.node.value = number;
            }
        }
        let enabled = server.member("enabled").map(|member| &member.node.value);
        if enabled == Some(&Value::Flag(false)) {
            server.0.retain(|member| !is_unknown_number(member));
        }
    }
}

/// Returns whether a file is a VS Code settings file without servers. Other problems in it are ignored.
fn has_no_servers(source: &Source) -> bool {
    let name = source.name.replace('\\', "/");
    let ways = [".vscode/settings.json", "Code/User/settings.json"];
    ways.iter().any(|way| name.ends_with(way)) && !source.text.contains("mcp")
}

fn one_line(text: &str) -> String {
    text.replace(is_misleading, " ")
}

/// Formats a value on one line, with escapes for misleading characters.
fn toml_value(node: &Node) -> Option<String> {
    Some(match &node.value {
        Value::Null => return None,
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Fraction(number) => toml::Value::Float(*number).to_string(),
        Value::Text(text) => toml_text(text.value()),
        Value::List(items) => {
            let items: Vec<String> = items.iter().filter_map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let members = table.0.iter().filter_map(|member| {
                Some(format!(
                    "{} = {}",
                    toml_key(&member.key),
                    toml_value(&member.node)?
                ))
            });
            let members: Vec<String> = members.collect();
            match members.is_empty() {
                true => String::from("{}"),
                false => format!("{{ {} }}", members.join(", ")),
            }
        }
    })
}

fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => toml_text(key),
    }
}

/// Formats a string; TOML has escapes only in basic strings, the form that is used if they are needed.
fn toml_text(text: &str) -> String {
    if !text.contains(is_misleading) {
        return toml::Value::String(text.to_owned()).to_string();
    }
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_misleading(c) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{TestHost, taken_from};
    use crate::{Catalog, Launch};

    fn imported(files: &[(&str, &str)]) -> Import {
        imported_into("/work/shop", files)
    }

    fn imported_into(folder: &str, files: &[(&str, &str)]) -> Import {
        let mut import = Import::into_folder(folder);
        for (name, text) in files {
            import.add(Source::new(*name, *text), &TestHost);
        }
        import
    }

    /// Imported servers keep their meaning, and variables stay references.
    #[test]
    fn import_is_a_native_config() {
        let import = imported(&[
            (
                "a.json",
                r#"{"mcpServers": {"my files": {"command": "npx", "args": ["-y", "a\"b"], "env": {"K": "${TOKEN}", "L M": "1"}, "disabled": true},
                    "b": {"url": "https://b.example/", "headers": {"Authorization": "Bearer ${input:api-key}"}}}}"#,
            ),
            (
                "b.toml",
                "[mcp_servers.b]\ncommand = \"b\"\n[mcp_servers.c]\ncommand = \"c\"\ntool_timeout_sec = 5",
            ),
        ]);
        assert_eq!(import.servers, ["my-files", "b", "c"]);
        assert_eq!(
            import.text,
            "# from a.json\n[servers.my-files]\ncommand = \"npx\"\nargs = [\"-y\", 'a\"b']\nenv = { K = \"${TOKEN}\", \"L M\" = \"1\" }\nenabled = false\n\n\
             # from a.json\n[servers.b]\nurl = \"https://b.example/\"\nheaders = { Authorization = \"Bearer ${API_KEY}\" }\n\n\
             # from b.toml\n[servers.c]\ncommand = \"c\"\ncall_seconds = 5\n"
        );
        let twice = &import.reports[1].1[0];
        assert!(
            twice.message.contains("imported from another file"),
            "{twice:?}"
        );
        let text = import.text.replace("${API_KEY}", "x");
        assert_eq!(taken_from("mcpact.toml", &text).servers.len(), 3);
    }

    /// Characters that a terminal obeys or hides are escaped in every part, and the text stays a config.
    #[test]
    fn misleading_characters_are_escaped() {
        let json = r#"{"mcpServers": {"a\u001b[2J": {"command": "x\u202ey", "args": ["one\ntwo", "\u009b31m\"", "tab\t"],
            "env": {"K\u200b": "v\u0007"}}}}"#;
        let import = imported(&[("a\u{1b}]0;\u{202e}.json", json)]);
        assert!(
            !import.text.contains(|c| c != '\n' && is_misleading(c)),
            "{}",
            import.text
        );
        let catalog = taken_from("mcpact.toml", &import.text);
        let launch = &catalog.servers.values().next().unwrap().launch;
        let Launch::Command(command) = launch else {
            panic!("{launch:?}");
        };
        let args: Vec<&str> = command.args.iter().map(|arg| arg.value()).collect();
        assert_eq!(command.program.value(), "x\u{202e}y");
        assert_eq!(args, ["one\ntwo", "\u{9b}31m\"", "tab\t"]);
        assert_eq!(command.env["K\u{200b}"].reveal(), "v\u{7}");
    }

    /// Null values are dropped and reported.
    #[test]
    fn null_values_are_reported() {
        let json = r#"{"mcpServers": {
  "a": {"command": "a", "args": ["-p", null], "env": {"K": null}, "dev": {"x": null}, "cwd": null},
  "b": {"url": "https://b.example/", "http_headers": {"X": null, "Y": "1"}}}}"#;
        let yaml = "servers:\n  c:\n    command: c\n    args: [a, ~]\n    env:\n      K:\n";
        let import = imported(&[("a.json", json), ("mcpact.yaml", yaml)]);
        let told = import.reports.iter().flat_map(|(source, problems)| {
            let warnings = problems.iter().filter(|problem| problem.remedy.is_some());
            warnings.map(|problem| problem.in_one_line(source))
        });
        let end = "and is ignored; set a value or remove the key";
        let expected = [
            (
                "a.json:2:40",
                "an item of `args` has no value in server `a`",
            ),
            ("a.json:2:55", "`env.K` has no value in server `a`"),
            ("a.json:2:87", "`cwd` has no value in server `a`"),
            ("a.json:3:55", "`http_headers.X` has no value in server `b`"),
            (
                "mcpact.yaml:4:15",
                "an item of `args` has no value in server `c`",
            ),
            ("mcpact.yaml:6:7", "`env.K` has no value in server `c`"),
        ];
        let expected = expected.map(|(at, what)| format!("{at}: warning: {what} {end}"));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(
            import.text.contains("args = [\"-p\"]\nenv = {}\n"),
            "{}",
            import.text
        );
    }

    /// Servers of different clients with colliding names are kept apart.
    #[test]
    fn colliding_names_of_clients_are_kept_apart() {
        let import = imported(&[
            ("a.json", r#"{"mcpServers": {"Dup X": {"command": "a"}}}"#),
            (
                "b.json",
                r#"{"mcpServers": {"Dup-X": {"command": "b"}, "Dup X": {"command": "c"}}}"#,
            ),
            ("c.json", r#"{"mcpServers": {"Dup-X": {"command": "d"}}}"#),
        ]);
        assert_eq!(import.servers, ["Dup-X", "Dup-X-2"]);
        let told = |at: usize| format!("{:?}", import.reports[at].1);
        assert!(
            told(1).contains("`Dup-X` is renamed to `Dup-X-2`: the name `Dup-X` is taken"),
            "{}",
            told(1)
        );
        assert!(told(1).contains("`Dup X` was already imported from another file"));
        assert!(told(2).contains("`Dup-X` was already imported from another file"));
    }

    /// A literal dollar sign before a Gemini CLI variable is kept.
    #[test]
    fn literal_dollar_before_a_variable_is_kept() {
        let text = r#"{"mcpServers": {"a": {"command": "a", "args": ["a$$HOME", "$$$TOKEN", "$$", "$${TOKEN}"], "env": {"K": "pa$$TOKEN"}}}}"#;
        let name = "/home/ada/.gemini/settings.json";
        let import = imported(&[(name, text)]);
        let direct = taken_from(name, text);
        let again = taken_from("mcpact.toml", &import.text);
        assert_eq!(direct.servers.len(), 1);
        let started = |catalog: &Catalog| match &catalog.servers["a"].launch {
            Launch::Command(command) => {
                let args = command.args.iter().map(|arg| arg.value().to_owned());
                let env = command.env.iter();
                let env = env.map(|(name, value)| (name.clone(), value.reveal().to_owned()));
                (args.collect::<Vec<_>>(), env.collect::<Vec<_>>())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(started(&direct), started(&again));
        assert!(
            import
                .text
                .contains("\"a${$}${HOME}\", \"${$}${$}${TOKEN}\", \"$$\", \"${$}${TOKEN}\""),
            "{}",
            import.text
        );
        let twice = imported(&[("mcpact.toml", &import.text)]);
        assert_eq!(
            import.text.split_once('\n').unwrap().1,
            twice.text.split_once('\n').unwrap().1
        );
    }

    /// Secrets of Continue become variables, also in headers and keys.
    #[test]
    fn continue_secrets_become_variables() {
        let text = "mcpServers:\n- name: a\n  url: https://a.example/\n  apiKey: ${{ secrets.KEY }}\n  requestOptions: {headers: {X: '${{secrets.X}}!'}}\n";
        let import = imported(&[("config.yaml", text)]);
        for header in ["Authorization = \"Bearer ${KEY}\"", "X = \"${X}!\""] {
            assert!(import.text.contains(header), "{}", import.text);
        }
        assert!(import.reports[0].1.is_empty(), "{:?}", import.reports);
    }

    /// Servers of a project in Claude Code win over those of the user.
    #[test]
    fn project_servers_win() {
        let text = r#"{"mcpServers": {"a": {"command": "user"}, "b": {"command": "b"}},
            "projects": {"/work/shop": {"mcpServers": {"a": {"command": "local"}}}, "/other": {"mcpServers": {"x": {"command": "x"}}}}}"#;
        let catalog = taken_from(".claude.json", text);
        let names: Vec<&str> = catalog.servers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(format!("{:?}", catalog.servers["a"].launch).contains("local"));
    }

    /// Relative paths become absolute, unless the import stays in the same folder.
    #[test]
    fn relative_paths_become_absolute() {
        let text = r#"{"servers": {
            "a": {"command": "node", "args": ["${workspaceFolder}/x.js"], "envFile": ".env", "env": {"K": "${file:key}", "N": "${workspaceFolderBasename}"}},
            "b": {"command": "./bin/b", "args": ["-v"]},
            "c": {"command": "c", "args": ["--data=../data"], "cwd": "sub"},
            "d": {"command": "d", "args": ["docs"]},
            "e": {"command": "npx", "args": ["-y", "@a/b", "https://x.example/", "docs"], "cwd": "${userHome}"},
            "f": {"command": "f", "args": ["-y", "a/b"], "env": {"K": "v"}}
        }}"#;
        let files = [("mcp.json", text)];
        let native = |lines: [&str; 6]| {
            let servers = ["a", "b", "c", "d", "e", "f"].iter().zip(lines);
            let servers =
                servers.map(|(name, lines)| format!("# from mcp.json\n[servers.{name}]\n{lines}"));
            servers.collect::<Vec<_>>().join("\n")
        };
        let e = "command = \"npx\"\nargs = [\"-y\", \"@a/b\", \"https://x.example/\", \"docs\"]\ncwd = \"${userHome}\"\n";
        let f = "command = \"f\"\nargs = [\"-y\", \"a/b\"]\nenv = { K = \"v\" }\n";
        let same = native([
            "command = \"node\"\nargs = [\"${workspaceFolder}/x.js\"]\nenv = { K = \"${file:key}\", N = \"${workspaceFolderBasename}\" }\nenv_file = \".env\"\n",
            "command = \"./bin/b\"\nargs = [\"-v\"]\n",
            "command = \"c\"\nargs = [\"--data=../data\"]\ncwd = \"sub\"\n",
            "command = \"d\"\nargs = [\"docs\"]\n",
            e,
            f,
        ]);
        assert_eq!(imported_into("/work/shop", &files).text, same);
        let other = native([
            "command = \"node\"\nargs = [\"/work/shop/x.js\"]\nenv = { K = \"${file:/work/shop/key}\", N = \"shop\" }\nenv_file = \"/work/shop/.env\"\n",
            "command = \"./bin/b\"\nargs = [\"-v\"]\ncwd = \"/work/shop\"\n",
            "command = \"c\"\nargs = [\"--data=../data\"]\ncwd = \"/work/shop/sub\"\n",
            "command = \"d\"\nargs = [\"docs\"]\ncwd = \"/work/shop\"\n",
            e,
            f,
        ]);
        let import = imported_into("/elsewhere", &files);
        assert_eq!(import.text, other);
        let told: Vec<&str> = import.reports[0]
            .1
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(
            told,
            [
                "server `b` uses relative paths: `cwd` is set to `/work/shop`",
                "server `d` uses relative paths: `cwd` is set to `/work/shop`"
            ]
        );
        let mut unknown = Import::default();
        unknown.add(Source::new("mcp.json", text), &TestHost);
        assert_eq!(unknown.text, other);
    }

    /// Script arguments count as paths even if the file does not exist; packages, URLs and repository names do not.
    #[test]
    fn missing_scripts_count_as_paths() {
        for (words, is_settled) in [
            (&["node", "dist/none.js"][..], true),
            (
                &["/usr/bin/node", "--enable-source-maps", "dist/server"],
                true,
            ),
            (&["python3.12", "-u", "server.py"], true),
            (&["npx", "-y", "tsx", "src/main"], true),
            (&["uv", "run", "server.py"], true),
            (&["java", "-jar", "build/app.jar"], true),
            (&["node", "--import", "tsx", "src/index.ts"], true),
            (&["node", "/srv/server.js", "owner/repository"], false),
            (&["node", "${userHome}/server.js"], false),
            (&["python", "-m", "server"], false),
            (&["bun", "x", "@a/b.js"], false),
            (&["server", "https://a.example/x.js", "a/b"], false),
        ] {
            let (command, args) = (words[0], &words[1..]);
            let text = serde_json::json!({"mcpServers": {"a": {"command": command, "args": args}}});
            let import = imported_into("/elsewhere", &[("mcp.json", &text.to_string())]);
            let settled = import.text.contains("cwd = \"/work/shop\"");
            assert_eq!(settled, is_settled, "{words:?}: {}", import.text);
        }
    }

    /// VS Code settings hold servers under `mcp`, or none.
    #[test]
    fn vs_code_settings_are_read() {
        let import = imported(&[
            (
                ".vscode/mcp.json",
                r#"{"servers": {"a": {"command": "newer"}}}"#,
            ),
            (
                ".vscode/settings.json",
                "{ // mine\n \"editor.tabSize\": 4,\n \"mcp\": {\"inputs\": [], \"servers\": {\"a\": {\"command\": \"older\"}, \"b\": {\"command\": \"b\"}}},\n}",
            ),
        ]);
        assert_eq!(import.servers, ["a", "b"]);
        assert!(
            import.text.contains("command = \"newer\""),
            "{}",
            import.text
        );
        assert!(!import.text.contains("older"), "{}", import.text);

        let dotted = r#"{"mcp.servers": {"c": {"command": "c"}}}"#;
        assert_eq!(
            imported(&[(".vscode/settings.json", dotted)]).servers,
            ["c"]
        );
        let quiet = [
            r#"{"editor.tabSize": 4, "extensions.autoUpdate": false}"#,
            r#"{"a": 1, "a": 2}"#,
            r#"{"mcp": {"inputs": []}}"#,
            "",
        ];
        for text in quiet {
            let import = imported(&[("/home/ada/.config/Code/User/settings.json", text)]);
            assert!(import.servers.is_empty());
            assert!(import.reports[0].1.is_empty(), "{:?}", import.reports);
        }
        let broken = imported(&[(".vscode/settings.json", r#"{"mcp": {"servers": "#)]);
        assert!(!broken.reports[0].1.is_empty());
    }

    #[test]
    fn client_paths_are_resolved() {
        let folders = Folders {
            home: PathBuf::from("/h"),
            configs: PathBuf::from("/c"),
            project: PathBuf::from("/p"),
        };
        let paths = |name: &str| {
            let paths = Client::named(name).unwrap().paths(&folders);
            paths.collect::<Vec<_>>()
        };
        assert_eq!(
            paths("cursor"),
            [
                PathBuf::from("/p/.cursor/mcp.json"),
                PathBuf::from("/h/.cursor/mcp.json")
            ]
        );
        assert_eq!(
            paths("zed"),
            [
                PathBuf::from("/p/.zed/settings.json"),
                PathBuf::from("/c/zed/settings.json"),
                PathBuf::from("/h/AppData/Roaming/Zed/settings.json")
            ]
        );
        assert!(Client::named("nope").is_none());
        assert!(folders.is_for_all_projects(Path::new("/h/.cursor/mcp.json")));
        assert!(!folders.is_for_all_projects(Path::new("/p/.cursor/mcp.json")));
    }
}
