//! Conversion of configs of other clients and gateways: the same tree with native keys, at the original source
//! positions. Unused keys of clients are noted. Keys of gateways protect something, so they are converted or rejected.

pub(super) mod key_mapping;
mod mcpv;
mod server_entry;

use std::collections::{BTreeMap, BTreeSet};

use super::expand::VariableSyntax;
use super::name::ServerName;
use super::problem::{Findings, Problem};
use super::source::{Source, Span};
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};

/// A tree in native format.
pub(super) struct ConvertedConfig {
    pub(super) root: Node,
    /// Syntax of its variables.
    pub(super) variable_syntax: VariableSyntax,
    /// Servers that are skipped because they are invalid.
    pub(super) wrong: Vec<(ServerName, Problem)>,
    /// Original names of renamed servers.
    pub(super) renamed: BTreeMap<String, String>,
    /// True if the config was written for mcpact.
    pub(super) is_native: bool,
}

/// Kind of a config of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignKind {
    /// Catalog of mcpv, which has no optional keys that could be ignored.
    Catalog,
    Client,
}

/// Known paths of server tables, most specific first.
const SERVER_PATHS: &[&[&str]] = &[
    &["mcpServers"],
    &["amp.mcpServers"],
    &["mcp_servers"],
    &["context_servers"],
    &["mcp", "servers"],
    // VS Code settings use dotted keys.
    &["mcp.servers"],
    &["mcp"],
    &["extensions"],
    &["servers"],
];

/// Converts a tree to the native format; `None` if it contains no servers.
pub(super) fn convert(
    root: Node,
    syntax: Syntax,
    source: &Source,
    folder: &str,
    findings: &mut Findings,
) -> Option<ConvertedConfig> {
    let mut converted = ConvertedConfig {
        root,
        variable_syntax: VariableSyntax::Dollar,
        wrong: Vec::new(),
        renamed: BTreeMap::new(),
        is_native: false,
    };
    let table = converted.root.table();
    let Some(table) = table.filter(|table| !is_native(table, syntax, &source.name)) else {
        converted.is_native = true;
        return Some(converted);
    };
    let locations = locations(table);
    let (path, servers) = locations.first()?;
    converted.variable_syntax = variable_syntax(path, servers, &source.name);
    let everywhere = key_mapping::runtime(table);
    let (kind, defaults) = match (*path, &servers.value) {
        (["servers"], Value::List(_)) => {
            mcpv::check(table, findings);
            (ForeignKind::Catalog, mcpv::defaults(table, findings))
        }
        _ => (ForeignKind::Client, Vec::new()),
    };
    let entries = all_entries(table, &locations, folder, findings);
    let mut names = NameAllocator::new(&entries);
    let mut own = Vec::new();
    for mut entry in entries {
        mcpv::add_defaults(&defaults, &mut entry);
        let mut server = match server_entry::convert(&entry, kind, &source.text, findings) {
            Ok(server) => server,
            Err(problem) => {
                let name = ServerName::near(&entry.key);
                converted
                    .wrong
                    .extend(problem.map(|problem| (name, problem)));
                continue;
            }
        };
        for member in &everywhere {
            if server.member(&member.key).is_none() {
                server.0.push(member.clone());
            }
        }
        let key = names.allocate(&entry, findings);
        if key != entry.key {
            converted.renamed.insert(key.clone(), entry.key.clone());
        }
        let node = Node::new(entry.node.span, Value::Table(server));
        own.push(Member { key, node, ..entry });
    }
    let servers = key_mapping::table("servers", Span::default(), own);
    let members = key_mapping::gateway(table).into_iter().chain([servers]);
    converted.root.value = Value::Table(Table(members.collect()));
    Some(converted)
}

/// Returns whether a config is written for mcpact, where unknown keys are errors.
fn is_native(table: &Table, syntax: Syntax, name: &str) -> bool {
    let has_servers = enter(table, &["servers"]).is_some_and(|servers| servers.table().is_some());
    let is_foreign = SERVER_PATHS
        .iter()
        .any(|path| *path != ["servers"] && enter(table, path).is_some());
    let is_toml = syntax == Syntax::Toml && !is_foreign;
    let is_yaml = syntax == Syntax::Yaml && !is_foreign && has_servers;
    table.member("gateway").is_some() || is_own_file(name) || is_toml || is_yaml
}

/// Server tables of a config with their paths; ambiguous paths count only if there are no others.
fn locations(table: &Table) -> Vec<(&'static [&'static str], &Node)> {
    let mut found = Vec::new();
    for path in SERVER_PATHS.iter().copied() {
        let is_weak = matches!(path, ["mcp"] | ["extensions"]);
        // Only VS Code has a list of inputs here, beside its servers.
        let is_other = path == ["mcp"]
            && enter(table, &["mcp", "inputs"])
                .is_some_and(|inputs| matches!(inputs.value, Value::List(_)));
        if let Some(node) = enter(table, path)
            && (!is_weak || found.is_empty() && !is_other)
        {
            found.push((path, node));
        }
    }
    found
}

fn is_own_file(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.starts_with("mcpact.")
}

/// Server keys that only the Gemini CLI has.
const OF_GEMINI: [&str; 2] = ["httpUrl", "trust"];

/// Detects the Gemini CLI by its folder or its keys, Continue and mcpv by their lists of servers, and opencode by its
/// table.
fn variable_syntax(path: &[&str], servers: &Node, name: &str) -> VariableSyntax {
    let is_there = name.contains(".gemini/") || name.contains(".gemini\\");
    match path {
        _ if is_there => VariableSyntax::Bare,
        ["mcpServers"] if is_of_gemini(servers) => VariableSyntax::Bare,
        ["mcpServers"] if matches!(servers.value, Value::List(_)) => VariableSyntax::Secrets,
        ["servers"] if matches!(servers.value, Value::List(_)) => VariableSyntax::Bare,
        ["mcp"] => VariableSyntax::Braces,
        _ => VariableSyntax::Dollar,
    }
}

fn is_of_gemini(servers: &Node) -> bool {
    let mut tables = servers.table().into_iter().flat_map(|all| &all.0);
    tables.any(|server| {
        let server = server.node.table();
        OF_GEMINI
            .iter()
            .any(|key| server.is_some_and(|server| server.member(key).is_some()))
    })
}

fn enter<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Node> {
    let (last, folders) = path.split_last()?;
    let mut table = table;
    for folder in folders {
        table = table.member(folder)?.node.table()?;
    }
    let node = &table.member(last)?.node;
    matches!(node.value, Value::Table(_) | Value::List(_)).then_some(node)
}

/// Servers of the project, which Claude Code keeps beside those of the user, then the others.
///
/// Both belong to the user: entries under `projects` have the scope `local`, the default of `claude mcp add`. Servers
/// that a project ships are in its `.mcp.json`, and are not copied here.
fn all_entries(
    root: &Table,
    locations: &[(&[&str], &Node)],
    folder: &str,
    findings: &mut Findings,
) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    let of_project = enter(root, &["projects", folder, "mcpServers"]);
    let others = locations.iter().map(|(_, node)| *node);
    for location in of_project.into_iter().chain(others) {
        let known: BTreeSet<String> = all.iter().map(|entry| entry.key.clone()).collect();
        let entries = entries(location, findings).into_iter();
        all.extend(entries.filter(|entry| !known.contains(&entry.key)));
    }
    all
}

/// Named servers of a table or list.
fn entries(servers: &Node, findings: &mut Findings) -> Vec<Member> {
    match &servers.value {
        Value::Table(table) => table.0.clone(),
        Value::List(items) => {
            let named = items.iter().filter_map(|item| {
                let name = item.table().and_then(|table| table.member("name"));
                let key = name.and_then(|name| name.node.text());
                let key = key.filter(|key| !key.value().is_empty());
                let Some((name, key)) = name.zip(key) else {
                    findings.error_with(item.span, "server without a name", "add a `name`");
                    return None;
                };
                let key = key.value().to_owned();
                Some(Member::new(key, name.node.span, item.clone()))
            });
            named.collect()
        }
        _ => Vec::new(),
    }
}

/// Allocator of valid, unique server names.
struct NameAllocator {
    /// Valid names, which their servers keep regardless of order.
    fitting: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl NameAllocator {
    fn new(entries: &[Member]) -> Self {
        let keys = entries.iter().map(|entry| entry.key.clone());
        Self {
            fitting: keys.filter(|key| ServerName::parse(key).is_ok()).collect(),
            taken: BTreeSet::new(),
        }
    }

    /// Allocates an unused name.
    fn allocate(&mut self, entry: &Member, findings: &mut Findings) -> String {
        let near = ServerName::near(&entry.key);
        let name = near.first_free(|name| {
            let name = name.as_str();
            !self.taken.contains(name) && (name == entry.key || !self.fitting.contains(name))
        });
        if name != near {
            report_numbered(&entry.key, &near, &name, entry.key_span, findings);
        } else if name.as_str() != entry.key {
            report_renamed(entry, &name, findings);
        }
        self.taken.insert(name.to_string());
        name.to_string()
    }
}

/// Reports a renamed server; as a warning if the new name loses letters.
fn report_renamed(entry: &Member, name: &ServerName, findings: &mut Findings) {
    let message = format!("server `{}` is renamed to `{name}`", entry.key);
    if name.is_like(&entry.key) {
        findings.note(entry.key_span, message);
    } else {
        let message = format!("{message}: names consist of ASCII letters, digits, `-` and `_`");
        let problem = findings.warning(entry.key_span, message);
        problem.remedy("give it a name of at most 40 such characters");
    }
}

/// Reports a server that was renamed because its name is taken.
pub(super) fn report_numbered(
    there: &str,
    near: &ServerName,
    name: &ServerName,
    at: Span,
    findings: &mut Findings,
) {
    let message = format!("server `{there}` is renamed to `{name}`: the name `{near}` is taken");
    findings.warning_with(at, message, "give it another name");
}

#[cfg(test)]
mod tests;
