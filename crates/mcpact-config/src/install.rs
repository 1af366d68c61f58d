//! Entries for mcpact in the configs of other clients.

use std::path::PathBuf;

use super::edit::{Entry, EntryValue};
use super::import::{Client, Folders};

/// A client that mcpact can be added to.
#[derive(Clone, Copy, Debug)]
pub struct InstallClient {
    /// Name on the command line, the same as for an import.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Keys of the table of servers.
    pub servers: &'static [&'static str],
    /// End of the path of its user-wide config.
    file: &'static str,
    /// Variable with the folder of the config, and the name of the file there.
    folder_variable: Option<(&'static str, &'static str)>,
    http: Option<HttpEntry>,
    stdio: StdioEntry,
}

/// Form of an entry with a URL.
#[derive(Clone, Copy, Debug)]
struct HttpEntry {
    /// Members with the same value in every entry.
    fixed: Fixed,
    /// Key of the URL.
    url: &'static str,
    token: TokenForms,
}

/// Members with the same value in every entry.
#[derive(Clone, Copy, Debug)]
struct Fixed(&'static [(&'static str, &'static str)]);

/// References to a token in the client's own syntax; `*` stands for the name of the variable or the path of the file.
#[derive(Clone, Copy, Debug)]
struct TokenForms {
    variable: Option<TokenForm>,
    file: Option<TokenForm>,
}

#[derive(Clone, Copy, Debug)]
enum TokenForm {
    /// Value of the header `Authorization`.
    Header(&'static str),
    /// Key with the name of a variable.
    Key(&'static str),
}

/// Form of an entry with a command.
#[derive(Clone, Copy, Debug)]
struct StdioEntry {
    fixed: Fixed,
    command: CommandForm,
    /// Servers inherit the environment of the client.
    inherits: bool,
}

#[derive(Clone, Copy, Debug)]
enum CommandForm {
    /// Program in `command`, the rest in `args`.
    Split,
    /// One list in `command`.
    List,
}

const NO_TOKEN: TokenForms = TokenForms {
    variable: None,
    file: None,
};

const fn variable(form: &'static str) -> TokenForms {
    TokenForms {
        variable: Some(TokenForm::Header(form)),
        file: None,
    }
}

const fn variable_or_file(form: &'static str, file: &'static str) -> TokenForms {
    TokenForms {
        variable: Some(TokenForm::Header(form)),
        file: Some(TokenForm::Header(file)),
    }
}

const fn http(
    fixed: &'static [(&'static str, &'static str)],
    url: &'static str,
    token: TokenForms,
) -> Option<HttpEntry> {
    Some(HttpEntry {
        fixed: Fixed(fixed),
        url,
        token,
    })
}

const fn stdio(fixed: &'static [(&'static str, &'static str)], inherits: bool) -> StdioEntry {
    StdioEntry {
        fixed: Fixed(fixed),
        command: CommandForm::Split,
        inherits,
    }
}

const MCP_SERVERS: &[&str] = &["mcpServers"];

/// Supported clients.
pub const INSTALL_CLIENTS: &[InstallClient] = &[
    InstallClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        servers: MCP_SERVERS,
        file: "claude_desktop_config.json",
        folder_variable: None,
        // Remote servers are set in its user interface only.
        http: None,
        stdio: stdio(&[], false),
    },
    InstallClient {
        name: "claude-code",
        title: "Claude Code",
        servers: MCP_SERVERS,
        file: ".claude.json",
        folder_variable: Some(("CLAUDE_CONFIG_DIR", ".claude.json")),
        http: http(&[("type", "http")], "url", variable("Bearer ${*}")),
        stdio: stdio(&[("type", "stdio")], true),
    },
    InstallClient {
        name: "cursor",
        title: "Cursor",
        servers: MCP_SERVERS,
        file: ".cursor/mcp.json",
        folder_variable: None,
        http: http(&[], "url", variable("Bearer ${env:*}")),
        stdio: stdio(&[], false),
    },
    InstallClient {
        name: "vscode",
        title: "VS Code",
        servers: &["servers"],
        file: "User/mcp.json",
        folder_variable: None,
        http: http(&[("type", "http")], "url", variable("Bearer ${env:*}")),
        stdio: stdio(&[("type", "stdio")], true),
    },
    InstallClient {
        name: "windsurf",
        title: "Windsurf",
        servers: MCP_SERVERS,
        file: "mcp_config.json",
        folder_variable: None,
        // A line end of a token file would become part of the header.
        http: http(&[], "serverUrl", variable("Bearer ${env:*}")),
        stdio: stdio(&[], false),
    },
    InstallClient {
        name: "zed",
        title: "Zed",
        servers: &["context_servers"],
        file: "settings.json",
        folder_variable: None,
        http: http(&[], "url", NO_TOKEN),
        stdio: stdio(&[("source", "custom")], true),
    },
    InstallClient {
        name: "codex",
        title: "Codex",
        servers: &["mcp_servers"],
        file: "config.toml",
        folder_variable: Some(("CODEX_HOME", "config.toml")),
        http: http(
            &[],
            "url",
            TokenForms {
                variable: Some(TokenForm::Key("bearer_token_env_var")),
                file: None,
            },
        ),
        stdio: stdio(&[], false),
    },
    InstallClient {
        name: "gemini",
        title: "Gemini CLI",
        servers: MCP_SERVERS,
        file: "settings.json",
        folder_variable: None,
        http: http(&[], "httpUrl", variable("Bearer ${*}")),
        stdio: stdio(&[], false),
    },
    InstallClient {
        name: "opencode",
        title: "opencode",
        servers: &["mcp"],
        file: "",
        folder_variable: None,
        http: http(
            &[("type", "remote")],
            "url",
            variable_or_file("Bearer {env:*}", "Bearer {file:*}"),
        ),
        stdio: StdioEntry {
            fixed: Fixed(&[("type", "local")]),
            command: CommandForm::List,
            inherits: true,
        },
    },
    InstallClient {
        name: "cline",
        title: "Cline",
        servers: MCP_SERVERS,
        file: "cline_mcp_settings.json",
        folder_variable: None,
        http: http(&[("type", "streamableHttp")], "url", NO_TOKEN),
        stdio: stdio(&[], false),
    },
];

/// Operating system, as far as it decides about the places of configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux and other systems with `~/.config`.
    Unix,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl Os {
    /// Returns the system of this program.
    #[must_use]
    pub const fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Unix
        }
    }

    /// Start of the places that only this system has.
    const fn own_folder(self) -> Option<&'static str> {
        match self {
            Self::Unix => None,
            Self::Mac => Some("~/Library/"),
            Self::Windows => Some("~/AppData/"),
        }
    }
}

/// An endpoint of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// URL, for clients with and without HTTP.
    Url(String),
    /// Target of `mcpact bridge` that only mcpact understands, such as `unix:PATH`.
    Bridge(String),
    /// Config that the client serves itself, on stdio.
    Config(PathBuf),
}

/// Reference to the token of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// Environment variable of the client.
    Variable(String),
    /// File.
    File(PathBuf),
}

/// The client cannot refer to the variable with the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{client} does not pass the variable `{variable}` with the token to mcpact")]
pub struct TokenUnreachable {
    /// Client.
    pub client: &'static str,
    /// Variable.
    pub variable: String,
}

impl InstallClient {
    /// Returns the client with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        INSTALL_CLIENTS.iter().find(|client| client.name == name)
    }

    /// Possible paths of its user-wide config on a system; the first one is the default. `variable` looks up an
    /// environment variable.
    #[must_use]
    pub fn paths(
        &self,
        folders: &Folders,
        os: Os,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> Vec<PathBuf> {
        if let Some((folder, file)) = self.folder_variable
            && let Some(folder) = variable(folder)
        {
            return vec![folder.join(file)];
        }
        let files = Client::named(self.name).map_or(&[][..], Client::files);
        let files = files
            .iter()
            .filter(|file| file.starts_with("~/") && file.ends_with(self.file));
        let files: Vec<&str> = files.copied().collect();
        let is_own = |file: &str| os.own_folder().is_some_and(|own| file.starts_with(own));
        let is_common = |file: &str| {
            !["~/Library/", "~/AppData/"]
                .iter()
                .any(|start| file.starts_with(start))
        };
        let has_own = files.iter().any(|file| is_own(file));
        let here = files.iter().filter(|file| match has_own {
            true => is_own(file),
            false => is_common(file),
        });
        here.map(|file| folders.path(file)).collect()
    }

    /// Returns an entry for an endpoint. `program` starts mcpact.
    ///
    /// # Errors
    /// The client has no way to the variable with the token.
    pub fn entry(
        &self,
        program: &str,
        endpoint: &Endpoint,
        token: Option<&TokenSource>,
    ) -> Result<Entry, TokenUnreachable> {
        match endpoint {
            Endpoint::Url(url) => match self.http_entry(url, token) {
                Some(entry) => Ok(entry),
                None => self.bridge(program, url, token),
            },
            Endpoint::Bridge(target) => self.bridge(program, target, token),
            Endpoint::Config(file) => {
                let file = file.to_string_lossy();
                Ok(self.command(program, &["serve", "--stdio", "--config", &file]))
            }
        }
    }

    /// Returns an entry with a URL, if the client has a form for it and for the token.
    fn http_entry(&self, url: &str, token: Option<&TokenSource>) -> Option<Entry> {
        let http = self.http?;
        let entry = http.fixed.entry().with(http.url, url);
        let (form, name) = match token {
            None => return Some(entry),
            Some(TokenSource::Variable(name)) => (http.token.variable?, name.clone()),
            Some(TokenSource::File(file)) => {
                (http.token.file?, file.to_string_lossy().into_owned())
            }
        };
        Some(match form {
            TokenForm::Key(key) => entry.with(key, name),
            TokenForm::Header(form) => {
                let headers = Entry::default().with("Authorization", form.replace('*', &name));
                entry.with("headers", EntryValue::Table(headers))
            }
        })
    }

    fn bridge(
        &self,
        program: &str,
        target: &str,
        token: Option<&TokenSource>,
    ) -> Result<Entry, TokenUnreachable> {
        let token = match token {
            None => return Ok(self.command(program, &["bridge", target])),
            Some(TokenSource::Variable(name)) if self.stdio.inherits => format!("env:{name}"),
            Some(TokenSource::Variable(name)) => {
                return Err(TokenUnreachable {
                    client: self.title,
                    variable: name.clone(),
                });
            }
            Some(TokenSource::File(file)) => format!("file:{}", file.display()),
        };
        Ok(self.command(program, &["bridge", "--bearer", &token, target]))
    }

    fn command(&self, program: &str, args: &[&str]) -> Entry {
        let entry = self.stdio.fixed.entry();
        let args = args.iter().map(|arg| String::from(*arg));
        match self.stdio.command {
            CommandForm::Split => entry
                .with("command", program)
                .with("args", EntryValue::Texts(args.collect())),
            CommandForm::List => {
                let words = std::iter::once(program.to_owned()).chain(args);
                entry.with("command", EntryValue::Texts(words.collect()))
            }
        }
    }
}

impl Fixed {
    fn entry(self) -> Entry {
        let members = self.0.iter();
        members.fold(Entry::default(), |entry, (key, value)| {
            entry.with(*key, *value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::set_entry;

    const URL: &str = "http://127.0.0.1:6272/mcp";

    fn folders() -> Folders {
        Folders {
            home: PathBuf::from("/h"),
            configs: PathBuf::from("/h/.config"),
            project: PathBuf::from("/p"),
        }
    }

    fn paths(name: &str, os: Os) -> Vec<String> {
        let client = InstallClient::named(name).unwrap();
        let paths = client.paths(&folders(), os, |_| None);
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    /// Formats an entry for a client in its syntax.
    fn written(name: &str, endpoint: &Endpoint, token: Option<&TokenSource>) -> String {
        let client = InstallClient::named(name).unwrap();
        let entry = client.entry("mcpact", endpoint, token).unwrap();
        let file = match name {
            "codex" => "config.toml",
            _ => "mcp.json",
        };
        let text = set_entry(file, "", client.servers, "mcpact", &entry)
            .unwrap()
            .text;
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn configs_are_found_on_every_system() {
        for (name, unix, mac, windows) in [
            (
                "claude-desktop",
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/h/AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            (
                "claude-code",
                "/h/.claude.json",
                "/h/.claude.json",
                "/h/.claude.json",
            ),
            (
                "cursor",
                "/h/.cursor/mcp.json",
                "/h/.cursor/mcp.json",
                "/h/.cursor/mcp.json",
            ),
            (
                "vscode",
                "/h/.config/Code/User/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/h/AppData/Roaming/Code/User/mcp.json",
            ),
            (
                "windsurf",
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/windsurf/mcp_config.json",
                "/h/.codeium/windsurf/mcp_config.json",
            ),
            (
                "zed",
                "/h/.config/zed/settings.json",
                "/h/.config/zed/settings.json",
                "/h/AppData/Roaming/Zed/settings.json",
            ),
            (
                "codex",
                "/h/.codex/config.toml",
                "/h/.codex/config.toml",
                "/h/.codex/config.toml",
            ),
            (
                "gemini",
                "/h/.gemini/settings.json",
                "/h/.gemini/settings.json",
                "/h/.gemini/settings.json",
            ),
            (
                "opencode",
                "/h/.config/opencode/opencode.json",
                "/h/.config/opencode/opencode.json",
                "/h/.config/opencode/opencode.json",
            ),
            (
                "cline",
                "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "/h/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "/h/AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
        ] {
            assert_eq!(paths(name, Os::Unix)[0], unix);
            assert_eq!(paths(name, Os::Mac)[0], mac);
            assert_eq!(paths(name, Os::Windows)[0], windows);
        }
        assert_eq!(INSTALL_CLIENTS.len(), 10);
        assert_eq!(
            paths("opencode", Os::Unix)[1],
            "/h/.config/opencode/opencode.jsonc"
        );
    }

    #[test]
    fn variable_moves_the_config_folder() {
        let codex = InstallClient::named("codex").unwrap();
        let moved = |name: &str| (name == "CODEX_HOME").then(|| PathBuf::from("/x"));
        let paths = codex.paths(&folders(), Os::Unix, moved);
        assert_eq!(paths, [PathBuf::from("/x/config.toml")]);
    }

    #[test]
    fn every_client_gets_its_own_form() {
        let url = Endpoint::Url(URL.to_owned());
        for (name, expected) in [
            (
                "claude-desktop",
                r#"{ "mcpServers": { "mcpact": { "command": "mcpact", "args": ["bridge", "http://127.0.0.1:6272/mcp"] } } }"#,
            ),
            (
                "claude-code",
                r#"{ "mcpServers": { "mcpact": { "type": "http", "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "cursor",
                r#"{ "mcpServers": { "mcpact": { "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "vscode",
                r#"{ "servers": { "mcpact": { "type": "http", "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "windsurf",
                r#"{ "mcpServers": { "mcpact": { "serverUrl": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "zed",
                r#"{ "context_servers": { "mcpact": { "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "codex",
                "[mcp_servers.mcpact] url = \"http://127.0.0.1:6272/mcp\"",
            ),
            (
                "gemini",
                r#"{ "mcpServers": { "mcpact": { "httpUrl": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "opencode",
                r#"{ "mcp": { "mcpact": { "type": "remote", "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
            (
                "cline",
                r#"{ "mcpServers": { "mcpact": { "type": "streamableHttp", "url": "http://127.0.0.1:6272/mcp" } } }"#,
            ),
        ] {
            assert_eq!(written(name, &url, None), expected);
        }
    }

    #[test]
    fn tokens_are_referred_to_in_the_syntax_of_the_client() {
        let url = Endpoint::Url(URL.to_owned());
        let variable = TokenSource::Variable(String::from("GATEWAY_TOKEN"));
        let file = TokenSource::File(PathBuf::from("/run/token"));
        let bridge = r#""bridge", "--bearer", "file:/run/token", "http://127.0.0.1:6272/mcp""#;
        for (name, of_variable, of_file) in [
            ("claude-desktop", None, bridge),
            (
                "claude-code",
                Some(r#""Authorization": "Bearer ${GATEWAY_TOKEN}""#),
                bridge,
            ),
            (
                "cursor",
                Some(r#""Authorization": "Bearer ${env:GATEWAY_TOKEN}""#),
                bridge,
            ),
            (
                "vscode",
                Some(r#""Authorization": "Bearer ${env:GATEWAY_TOKEN}""#),
                bridge,
            ),
            (
                "windsurf",
                Some(r#""Authorization": "Bearer ${env:GATEWAY_TOKEN}""#),
                bridge,
            ),
            ("zed", Some(r#""--bearer", "env:GATEWAY_TOKEN""#), bridge),
            (
                "codex",
                Some(r#"bearer_token_env_var = "GATEWAY_TOKEN""#),
                bridge,
            ),
            (
                "gemini",
                Some(r#""Authorization": "Bearer ${GATEWAY_TOKEN}""#),
                bridge,
            ),
            (
                "opencode",
                Some(r#""Authorization": "Bearer {env:GATEWAY_TOKEN}""#),
                r#""Authorization": "Bearer {file:/run/token}""#,
            ),
            ("cline", None, bridge),
        ] {
            let text = written(name, &url, Some(&file));
            assert!(text.contains(of_file), "{text}");
            match of_variable {
                Some(expected) => {
                    let text = written(name, &url, Some(&variable));
                    assert!(text.contains(expected), "{text}");
                }
                None => {
                    let client = InstallClient::named(name).unwrap();
                    let refused = client.entry("mcpact", &url, Some(&variable));
                    assert!(refused.is_err(), "{refused:?}");
                }
            }
        }
    }

    #[test]
    fn configs_and_sockets_are_served_on_stdio() {
        let config = Endpoint::Config(PathBuf::from("/h/mcpact.toml"));
        let socket = Endpoint::Bridge(String::from("unix:/run/mcpact.sock"));
        assert_eq!(
            written("opencode", &config, None),
            r#"{ "mcp": { "mcpact": { "type": "local", "command": ["mcpact", "serve", "--stdio", "--config", "/h/mcpact.toml"] } } }"#
        );
        assert_eq!(
            written("zed", &socket, None),
            r#"{ "context_servers": { "mcpact": { "source": "custom", "command": "mcpact", "args": ["bridge", "unix:/run/mcpact.sock"] } } }"#
        );
    }

    /// The clients of an import read what is installed.
    #[test]
    fn installed_entries_can_be_imported() {
        use crate::import::Import;
        use crate::{LocalHost, Source};
        let url = Endpoint::Url(URL.to_owned());
        for client in INSTALL_CLIENTS {
            let entry = client.entry("mcpact", &url, None).unwrap();
            let path = &client.paths(&folders(), Os::Unix, |_| None)[0];
            let path = path.to_str().unwrap();
            let text = set_entry(path, "", client.servers, "mcpact", &entry).unwrap();
            let mut import = Import::default();
            import.add(
                Source::new(path, text.text),
                &LocalHost::at(PathBuf::from("/p")),
            );
            assert_eq!(
                import.servers,
                ["mcpact"],
                "{}: {:?}",
                client.name,
                import.reports
            );
            assert!(import.text.contains(URL), "{}", import.text);
        }
    }
}
