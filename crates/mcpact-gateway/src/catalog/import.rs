//! What other clients have configured, as a native config.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::adopt::{Adopted, adopt};
use super::expand::{Expansion, Filling};
use super::keys;
use super::problem::{Findings, Problem};
use super::source::Source;
use super::surroundings::Surroundings;
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};

/// A client whose config can be taken over.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Where it keeps its config, the one that wins first; `~` is the home folder, `.` the project.
    files: &'static [&'static str],
}

/// The clients that are known.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude-desktop",
        files: &[
            "~/.config/Claude/claude_desktop_config.json",
            "~/.config/claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "~/AppData/Roaming/Claude/claude_desktop_config.json",
        ],
    },
    Client {
        name: "claude-code",
        files: &["./.mcp.json", "~/.claude.json"],
    },
    Client {
        name: "vscode",
        files: &[
            "./.vscode/mcp.json",
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
            "~/AppData/Roaming/Code/User/mcp.json",
            "~/.copilot/mcp-config.json",
        ],
    },
    Client {
        name: "cursor",
        files: &["./.cursor/mcp.json", "~/.cursor/mcp.json"],
    },
    Client {
        name: "windsurf",
        files: &["~/.codeium/windsurf/mcp_config.json"],
    },
    Client {
        name: "zed",
        files: &["./.zed/settings.json", "~/.config/zed/settings.json"],
    },
    Client {
        name: "codex",
        files: &["./.codex/config.toml", "~/.codex/config.toml"],
    },
    Client {
        name: "gemini",
        files: &["./.gemini/settings.json", "~/.gemini/settings.json"],
    },
    Client {
        name: "opencode",
        files: &[
            "./opencode.json",
            "./opencode.jsonc",
            "~/.config/opencode/opencode.json",
            "~/.config/opencode/opencode.jsonc",
        ],
    },
    Client {
        name: "goose",
        files: &["~/.config/goose/config.yaml"],
    },
    Client {
        name: "continue",
        files: &["~/.continue/config.yaml"],
    },
];

impl Client {
    /// The client with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Where its config may lie.
    #[must_use]
    pub fn paths(&self, home: &Path, project: &Path) -> Vec<PathBuf> {
        let paths = self.files.iter().filter_map(|file| {
            let (start, rest) = file.split_once('/')?;
            let start = if start == "~" { home } else { project };
            Some(start.join(rest))
        });
        paths.collect()
    }
}

/// A native config that was made from others.
#[derive(Debug, Default)]
pub struct Import {
    /// The config.
    pub text: String,
    /// The servers in it, in the order of the text.
    pub servers: Vec<String>,
    /// What should be known about each source.
    pub reports: Vec<(Source, Vec<Problem>)>,
    names: BTreeSet<String>,
}

impl Import {
    /// Adds the servers of a config. A name that is there already keeps its first meaning.
    pub fn add(&mut self, source: Source, surroundings: &dyn Surroundings) {
        let mut findings = Findings::default();
        let syntax = Syntax::of(&source);
        let problems = match syntax.parse(&source) {
            Err(problem) => vec![problem],
            Ok(root) => {
                let folder = surroundings.folder();
                // A client may have nothing configured, which is no fault.
                if let Some(Adopted {
                    mut root, spelling, ..
                }) = adopt(root, syntax, &source, &folder, &mut findings)
                {
                    let expansion = Expansion {
                        source: &source,
                        surroundings,
                        spelling,
                        filling: Filling::Names,
                    };
                    expansion.run(&mut root, &mut findings);
                    self.servers(&root, &source, &mut findings);
                }
                findings.finish()
            }
        };
        self.reports.push((source, problems));
    }

    fn servers(&mut self, root: &Node, source: &Source, findings: &mut Findings) {
        let servers = root.table().and_then(|table| table.member("servers"));
        let servers = servers.and_then(|servers| servers.node.table());
        for Member {
            key,
            key_span,
            node,
        } in servers.into_iter().flat_map(|table| &table.0)
        {
            let Some(table) = node.table() else {
                continue;
            };
            if !self.names.insert(key.clone()) {
                let message = format!("server `{key}` was taken from another file already");
                findings.note(*key_span, message);
                continue;
            }
            self.server(key, table, source);
        }
    }

    fn server(&mut self, name: &str, table: &Table, source: &Source) {
        let lead = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a text cannot fail.
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

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn toml_value(node: &Node) -> Option<toml::Value> {
    Some(match &node.value {
        Value::Null => return None,
        Value::Flag(flag) => toml::Value::Boolean(*flag),
        Value::Whole(number) => toml::Value::Integer(*number),
        Value::Fraction(number) => toml::Value::Float(*number),
        Value::Text(text) => toml::Value::String(text.value().to_owned()),
        Value::List(items) => toml::Value::Array(items.iter().filter_map(toml_value).collect()),
        Value::Table(table) => {
            let members = table
                .0
                .iter()
                .filter_map(|member| Some((member.key.clone(), toml_value(&member.node)?)));
            toml::Value::Table(members.collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::read::tests::{Machine, taken_from};

    fn imported(files: &[(&str, &str)]) -> Import {
        let mut import = Import::default();
        for (name, text) in files {
            import.add(Source::new(*name, *text), &Machine);
        }
        import
    }

    /// K8: what is imported means what it meant, and names of variables stay names.
    #[test]
    fn an_import_is_a_native_config() {
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
            twice.message.contains("from another file already"),
            "{twice:?}"
        );
        let text = import.text.replace("${API_KEY}", "x");
        assert_eq!(taken_from("mcpact.toml", &text).servers.len(), 3);
    }

    /// K8: Claude Code keeps servers of a project beside those of the user, and the project wins.
    #[test]
    fn servers_of_the_project_come_first() {
        let text = r#"{"mcpServers": {"a": {"command": "user"}, "b": {"command": "b"}},
            "projects": {"/work/shop": {"mcpServers": {"a": {"command": "local"}}}, "/other": {"mcpServers": {"x": {"command": "x"}}}}}"#;
        let catalog = taken_from(".claude.json", text);
        let names: Vec<&str> = catalog.servers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(format!("{:?}", catalog.servers["a"].launch).contains("local"));
    }

    #[test]
    fn paths_start_at_home_or_at_the_project() {
        let paths = Client::named("cursor")
            .unwrap()
            .paths(Path::new("/h"), Path::new("/p"));
        assert_eq!(
            paths,
            [
                PathBuf::from("/p/.cursor/mcp.json"),
                PathBuf::from("/h/.cursor/mcp.json")
            ]
        );
        assert!(Client::named("nope").is_none());
    }
}
