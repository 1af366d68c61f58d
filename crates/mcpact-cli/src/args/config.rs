//! Arguments of the commands that work on config files.

use std::path::PathBuf;

use clap::Args;

pub(super) const CHECK_DETAILS: &str = "\
Examples:
  # Check the nearest mcpact.toml or .mcp.json
  $ mcpact check

  # Check the config of another client
  $ mcpact check ~/.cursor/mcp.json

  # Fail on warnings, print JSON
  $ mcpact check --strict --json prod.toml

Exit codes:
  0  no problems
  1  unexpected error
  2  usage or input error
  7  problems found";

/// Arguments of `mcpact check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Config of mcpact or another MCP client [default: nearest config]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Fail on warnings
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const APPROVE_DETAILS: &str = "\
Examples:
  # Show what the nearest config starts and sends, and ask about each item
  $ mcpact approve

  # In scripts: approve one item, if it has not changed
  $ mcpact approve --config prod.toml files --mark 0f3c…

What needs approval:
  commands      A program and its script, including their content, with
                arguments, working directory and variables. Imported modules
                and the contents of packages are not covered
  URLs          A URL that receives variables or files, and their names
  gateway keys  A key that admits more clients, such as `listen`, in one config

A change to any of these requires a new approval. Values of `${VAR}` and
`${file:…}` may change, unless they select code (PATH, NODE_OPTIONS, …).

Exit codes:
  0  everything is approved
  1  unexpected error
  2  usage or input error
  4  running gateway does not answer
  7  approvals missing";

/// Arguments of `mcpact approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Review only these servers
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,

    /// Config file [default: nearest mcpact.toml or .mcp.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Approve the item with this mark without asking
    #[arg(long, value_name = "MARK")]
    pub(crate) mark: Vec<String>,

    /// Approve changed tool definitions instead: at once in a running gateway,
    /// otherwise with the next tool list
    #[arg(long, conflicts_with = "mark")]
    pub(crate) tools: bool,
}

pub(super) const SCHEMA_DETAILS: &str = "\
Examples:
  # Save the schema, then add `\"$schema\" = \"./mcpact.schema.json\"` to the config
  $ mcpact schema > mcpact.schema.json

Exit codes:
  0  success
  1  unexpected error
  2  usage error";

pub(super) const IMPORT_DETAILS: &str = "\
Examples:
  # Import from every client found into mcpact.toml
  $ mcpact import

  # Import from two clients; the first one to define a name wins
  $ mcpact import cursor claude-code

  # Convert a file and print the result
  $ mcpact import settings.json --output -

Variable references are kept. Literal values are copied, so only you can read
the output file.

Exit codes:
  0  success
  1  unexpected error
  2  usage or input error";

/// Arguments of `mcpact import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Clients, such as cursor or claude-desktop, or files [default: every
    /// client found]
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) from: Vec<String>,

    /// Output file; `-` writes to stdout
    #[arg(short, long, value_name = "FILE", default_value = "mcpact.toml")]
    pub(crate) output: PathBuf,

    /// Overwrite an existing output file
    #[arg(long)]
    pub(crate) force: bool,
}
