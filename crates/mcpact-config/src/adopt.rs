//! Configs of other clients and gateways, brought into the native shape: the same tree with other keys,
//! each at the place where it was written. What is not used is noted, and nothing is refused that the
//! other client takes.

pub(super) mod meanings;
mod server;

use std::collections::{BTreeMap, BTreeSet};

use self::server::LeftOut;
use super::expand::Spelling;
use super::name::ServerName;
use super::problem::{Findings, Problem};
use super::source::{Source, Span};
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};

/// A tree of the native shape.
pub(super) struct Adopted {
    pub(super) root: Node,
    /// How its variables are written.
    pub(super) spelling: Spelling,
    /// The servers that are left out because they are wrong.
    pub(super) wrong: Vec<(ServerName, Problem)>,
    /// What the servers are called there whose names do not fit here.
    pub(super) renamed: BTreeMap<String, String>,
}

/// Where servers stand in a config.
struct Room {
    path: &'static [&'static str],
    spelling: Spelling,
}

const fn room(path: &'static [&'static str]) -> Room {
    let spelling = Spelling::Dollar;
    Room { path, spelling }
}

/// Where clients keep their servers, the most telling place first.
const ROOMS: &[Room] = &[
    room(&["mcpServers"]),
    room(&["amp.mcpServers"]),
    room(&["mcp_servers"]),
    room(&["context_servers"]),
    room(&["mcp", "servers"]),
    // The settings of VS Code take a dot for a table.
    room(&["mcp.servers"]),
    Room {
        path: &["mcp"],
        spelling: Spelling::Braces,
    },
    room(&["extensions"]),
    room(&["servers"]),
];

/// Brings a tree into the native shape; `None` if no client keeps servers in such a file.
pub(super) fn adopt(
    root: Node,
    syntax: Syntax,
    source: &Source,
    folder: &str,
    findings: &mut Findings,
) -> Option<Adopted> {
    let Some(table) = root.table() else {
        return Some(native(root));
    };
    if is_native(table, syntax, &source.name) {
        return Some(native(root));
    }
    let rooms = rooms(table);
    let (first, servers) = rooms.first()?;
    let spelling = spelling(first, servers, &source.name);
    let nodes: Vec<&Node> = rooms.iter().map(|(_, node)| *node).collect();
    let mut wrong = Vec::new();
    let around = Around {
        folder,
        text: &source.text,
    };
    let mut renamed = BTreeMap::new();
    let servers = adopted(table, &nodes, around, &mut wrong, &mut renamed, findings);
    Some(Adopted {
        renamed,
        spelling,
        root: Node::new(root.span, Value::Table(servers)),
        wrong,
    })
}

/// Whether a config is written for mcpact itself, where a slip is to be told rather than forgiven.
fn is_native(table: &Table, syntax: Syntax, name: &str) -> bool {
    let has_servers = enter(table, &["servers"]).is_some_and(|servers| servers.table().is_some());
    let is_foreign = ROOMS
        .iter()
        .any(|room| room.path != ["servers"] && enter(table, room.path).is_some());
    let is_toml = syntax == Syntax::Toml && !is_foreign;
    let is_yaml = syntax == Syntax::Yaml && !is_foreign && has_servers;
    table.member("gateway").is_some() || is_own_file(name) || is_toml || is_yaml
}

/// The places where servers stand; a weak one counts only if there is no other.
fn rooms(table: &Table) -> Vec<(&'static Room, &Node)> {
    let mut found: Vec<(&Room, &Node)> = Vec::new();
    for room in ROOMS {
        let is_weak = matches!(room.path, ["mcp"] | ["extensions"]);
        // Only VS Code has a list of inputs there, and keeps its servers beside them.
        let is_other = room.path == ["mcp"]
            && enter(table, &["mcp", "inputs"])
                .is_some_and(|inputs| matches!(inputs.value, Value::List(_)));
        if let Some(node) = enter(table, room.path)
            && (!is_weak || found.is_empty() && !is_other)
        {
            found.push((room, node));
        }
    }
    found
}

const fn native(root: Node) -> Adopted {
    Adopted {
        root,
        spelling: Spelling::Dollar,
        wrong: Vec::new(),
        renamed: BTreeMap::new(),
    }
}

fn is_own_file(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.starts_with("mcpact.")
}

/// Keys of servers that the Gemini CLI alone has.
const OF_GEMINI: [&str; 2] = ["httpUrl", "trust"];

/// The Gemini CLI is known by its folder, and elsewhere by its keys. Continue has servers in a list.
fn spelling(room: &Room, servers: &Node, name: &str) -> Spelling {
    let is_there = name.contains(".gemini/") || name.contains(".gemini\\");
    if is_there || (room.path == ["mcpServers"] && is_of_gemini(servers)) {
        Spelling::Bare
    } else if room.path == ["mcpServers"] && matches!(servers.value, Value::List(_)) {
        Spelling::Secrets
    } else {
        room.spelling
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

/// What stands around the servers.
#[derive(Clone, Copy)]
struct Around<'t> {
    /// The folder that the config is about.
    folder: &'t str,
    /// The whole config as it is written.
    text: &'t str,
}

fn adopted(
    root: &Table,
    servers: &[&Node],
    around: Around<'_>,
    wrong: &mut Vec<(ServerName, Problem)>,
    renamed: &mut BTreeMap<String, String>,
    findings: &mut Findings,
) -> Table {
    let everywhere = meanings::runtime(root);
    let entries = all_entries(root, servers, around.folder, findings);
    let mut names = Names::among(&entries);
    let mut own = Vec::new();
    for entry in entries {
        let Some(table) = entry.node.table() else {
            let message = format!("`{}` is no server and is left out", entry.key);
            let problem = findings.warning(entry.key_span, message);
            wrong.push((ServerName::near(&entry.key), problem.clone()));
            continue;
        };
        let mut server =
            match server::adopt(&entry.key, entry.key_span, table, around.text, findings) {
                Ok(server) => server,
                Err(LeftOut::Unwanted) => continue,
                Err(LeftOut::Wrong(problem)) => {
                    wrong.push((ServerName::near(&entry.key), problem));
                    continue;
                }
            };
        for member in &everywhere {
            if server.member(&member.key).is_none() {
                server.0.push(member.clone());
            }
        }
        let key = names.free(&entry, findings);
        if key != entry.key {
            renamed.insert(key.clone(), entry.key.clone());
        }
        let node = Node::new(entry.node.span, Value::Table(server));
        own.push(Member { key, node, ..entry });
    }
    let servers = meanings::table("servers", Span::default(), own);
    Table(
        meanings::gateway(root)
            .into_iter()
            .chain([servers])
            .collect(),
    )
}

/// The servers of the project, which Claude Code keeps beside those of the user, and then the others.
///
/// Both are the user's own. What stands under `projects` has the scope `local`, the usual one of `claude mcp add`: it is
/// for this user in that folder. What a project brings along stands in its `.mcp.json`, and is not copied here.
fn all_entries(
    root: &Table,
    servers: &[&Node],
    folder: &str,
    findings: &mut Findings,
) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    let of_project = enter(root, &["projects", folder, "mcpServers"]);
    for room in of_project.iter().chain(servers) {
        let known: BTreeSet<String> = all.iter().map(|entry| entry.key.clone()).collect();
        let entries = entries(room, findings).into_iter();
        all.extend(entries.filter(|entry| !known.contains(&entry.key)));
    }
    all
}

/// The servers with their names, whether they stand in a table or in a list.
fn entries(servers: &Node, findings: &mut Findings) -> Vec<Member> {
    match &servers.value {
        Value::Table(table) => table.0.clone(),
        Value::List(items) => {
            let named = items.iter().filter_map(|item| {
                let name = item.table().and_then(|table| table.member("name"));
                let key = name.and_then(|name| name.node.text());
                let Some((name, key)) = name.zip(key) else {
                    let problem = findings.error(item.span, "this server has no name");
                    problem.remedy("give it a `name`");
                    return None;
                };
                let key = key.value().to_owned();
                Some(Member::new(key, name.node.span, item.clone()))
            });
            named.collect()
        }
        Value::Null | Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) | Value::Text(_) => {
            Vec::new()
        }
    }
}

/// Names of the kind that mcpact needs, each for one server.
struct Names {
    /// Those that fit as they are belong to whoever has them, wherever it stands.
    fitting: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Names {
    fn among(entries: &[Member]) -> Self {
        let keys = entries.iter().map(|entry| entry.key.clone());
        Self {
            fitting: keys.filter(|key| ServerName::parse(key).is_ok()).collect(),
            taken: BTreeSet::new(),
        }
    }

    /// A name that no other server has.
    fn free(&mut self, entry: &Member, findings: &mut Findings) -> String {
        let near = ServerName::near(&entry.key);
        let is_free = |name: &ServerName| {
            let name = name.as_str();
            !self.taken.contains(name) && (name == entry.key || !self.fitting.contains(name))
        };
        let more = (2..).map(|number| near.numbered(number));
        let free = std::iter::once(near.clone()).chain(more).find(is_free);
        let name = free.as_ref().unwrap_or(&near);
        if name.as_str() != entry.key {
            if *name == near {
                tell_renamed(entry, name, findings);
            } else {
                tell_numbered(&entry.key, &near, name, entry.key_span, findings);
            }
        }
        self.taken.insert(name.to_string());
        name.to_string()
    }
}

/// Tells that a server is called otherwise; if not all of its letters can stand in a name, nobody may know it by that.
fn tell_renamed(entry: &Member, name: &ServerName, findings: &mut Findings) {
    let message = format!("server `{}` is called `{name}` here", entry.key);
    if name.is_like(&entry.key) {
        findings.note(entry.key_span, message);
    } else {
        let message = format!("{message}: not all of its letters fit into a name");
        let problem = findings.warning(entry.key_span, message);
        problem.remedy("give it a name of ASCII letters, digits, `-` and `_`, at most 40 of them");
    }
}

/// Tells that a server is called otherwise because another one has its name.
pub(super) fn tell_numbered(
    there: &str,
    near: &ServerName,
    name: &ServerName,
    at: Span,
    findings: &mut Findings,
) {
    let message = format!("server `{there}` is called `{name}` here: `{near}` is another server");
    let problem = findings.warning(at, message);
    problem.remedy("give it a name that differs in letters or digits");
}

#[cfg(test)]
mod tests;
