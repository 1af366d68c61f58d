//! The arguments of the commands that work on configs.

use std::path::PathBuf;

use clap::Args;

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  mcpact check
      the nearest `mcpact.toml` or `.mcp.json`
  mcpact check ~/.cursor/mcp.json
      the config of another client, as it is
  mcpact check --strict --json prod.toml
      warnings count as well; for machines

Exit codes: 0 ok, 1 unexpected, 2 usage or input, 7 problems found";

/// The arguments of `mcpact check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The config, of mcpact or of any other client; without it the nearest one
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Count warnings as problems, too
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON for machines instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const APPROVE_EXAMPLES: &str = "\
Examples:
  mcpact approve
      shows each command of the nearest config that is not approved yet, and each address that it
      sends values of variables or files to, and each key that lets more callers in, and asks
  mcpact approve --config prod.toml files --mark 0f3c…
      for scripts: approves what this server does if it is still the same

An approval is for one exact command: the program with what is in its file, its arguments, the
names of its variables, the values of those that decide which code runs (PATH, NODE_OPTIONS and the
like) and its folder; or for one address and the variables and files whose values go there; or for
what a key such as `listen` says in one config. Whatever of this changes needs another one; other
values of variables may change.

Exit codes: 0 everything is approved, 1 unexpected, 2 usage or input,
4 a gateway that runs does not answer, 7 something is not approved";

/// The arguments of `mcpact approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The config; without it the nearest one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Approve what has this mark without asking
    #[arg(long, value_name = "MARK")]
    pub(crate) mark: Vec<String>,

    /// Agree to what the servers say about their tools, instead of to what they start and are sent: at once where a gateway runs, and
    /// else to what they say next
    #[arg(long, conflicts_with = "mark")]
    pub(crate) tools: bool,

    /// Only these servers
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
}

pub(super) const SCHEMA_EXAMPLES: &str = "\
Examples:
  mcpact schema > mcpact.schema.json
      then name it in the config: `\"$schema\" = \"./mcpact.schema.json\"`

Exit codes: 0 ok, 1 unexpected, 2 usage";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  mcpact import
      whatever any client has configured, into `mcpact.toml`
  mcpact import cursor claude-code
      from these two; the first that has a name keeps it
  mcpact import settings.json --output -
      from a file, to standard output

Names of variables stay names. Values that stand in a config are taken over as they are, so the file
that is written can be read by you alone.

Exit codes: 0 ok, 1 unexpected, 2 usage or input";

/// The arguments of `mcpact import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Clients such as `cursor` or `claude-desktop`, or files; without any, every client that is found
    #[arg(value_name = "CLIENT|FILE")]
    pub(crate) from: Vec<String>,

    /// Where to write; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "mcpact.toml")]
    pub(crate) output: PathBuf,

    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}
