//! Arguments of the commands that edit configs.

use std::path::PathBuf;

use clap::Args;

pub(super) const INSTALL_DETAILS: &str = "\
Examples:
  # List the clients, and where mcpact is installed
  $ mcpact install

  # Add the gateway of the nearest config to Cursor; show the change first
  $ mcpact install cursor --dry-run
  $ mcpact install cursor

  # Add each server of the config on its own, under its own tool names
  $ mcpact install codex --all

  # Restore the file as it was
  $ mcpact install cursor --undo

Clients:
  claude-desktop, claude-code, cursor, vscode, windsurf, zed, codex, gemini,
  opencode, cline

Only the entry is changed; comments and formatting stay. The original is kept
beside the file as FILE.mcpact-backup. A token is never written, only a
reference to its variable or file.

Exit codes:
  0  installed, or nothing to change
  1  unexpected error
  2  usage or input error";

/// Arguments of `mcpact install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Client, such as cursor or claude-desktop; none lists all
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<String>,

    /// Add this server instead of the whole gateway
    #[arg(long, value_name = "NAME", requires = "client")]
    pub(crate) server: Option<String>,

    /// Add every server as an entry of its own
    #[arg(long, requires = "client", conflicts_with = "server")]
    pub(crate) all: bool,

    /// Print the change as a diff, write nothing
    #[arg(long, requires = "client")]
    pub(crate) dry_run: bool,

    /// Restore the file as it was before
    #[arg(long, requires = "client", conflicts_with_all = ["server", "all", "config"])]
    pub(crate) undo: bool,

    /// Config of the gateway [default: nearest mcpact.toml or .mcp.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

pub(super) const ADD_DETAILS: &str = "\
Examples:
  # A command
  $ mcpact add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs

  # A package of npm or PyPI, with or without a version
  $ mcpact add time pypi:mcp-server-time
  $ mcpact add memory npm:@modelcontextprotocol/server-memory@2025.9.25

  # A URL
  $ mcpact add tickets https://tickets.example/mcp

  # A variable that the server needs; the config refers to it
  $ mcpact add search npm:@acme/search --env SEARCH_API_KEY

  # A server.json of the MCP registry
  $ mcpact add search ./server.json

Secrets are written as references such as ${SEARCH_API_KEY}, never as values.
Comments and formatting of the config stay.

Exit codes:
  0  added
  1  unexpected error
  2  usage or input error";

/// Arguments of `mcpact add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// URL, npm:PACKAGE, pypi:PACKAGE, or a server.json of the MCP registry
    #[arg(
        value_name = "SOURCE",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) source: Option<String>,

    /// Command with its arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,

    /// Variable of the server: NAME refers to the variable of that name,
    /// NAME=VALUE sets a value or another reference
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) force: bool,

    /// Config file [default: nearest mcpact.toml, or a new one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

pub(super) const REMOVE_DETAILS: &str = "\
Examples:
  # Remove a server from the nearest mcpact.toml
  $ mcpact remove time

Exit codes:
  0  removed
  1  unexpected error
  2  usage or input error";

/// Arguments of `mcpact remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Config file [default: nearest mcpact.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
