//! The arguments of the commands that talk to a gateway that runs.

use std::path::PathBuf;

use clap::Args;

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  mcpact status
      the gateway and every server: state, revision, instances, what it has, what went wrong
  mcpact status files
      one server with each of its instances
  mcpact status --json
      for machines

Exit codes: 0 ok, 1 unexpected, 2 usage, 4 no gateway runs";

pub(super) const LOGS_EXAMPLES: &str = "\
Examples:
  mcpact logs
      the last lines of every server, and what became of its instances
  mcpact logs files --follow
      one server, as it happens
  mcpact logs --lines 1000 --json
      for machines, one object in each line

Exit codes: 0 ok, 1 unexpected, 2 usage, 4 no gateway runs";

pub(super) const RELOAD_EXAMPLES: &str = "\
Examples:
  mcpact reload
      the config is read anew, and what that changed is told

A gateway that watches its config does so by itself; so does the signal HUP. A config that is wrong
changes nothing.

Exit codes: 0 ok, 1 unexpected, 2 usage or config, 4 no gateway runs";

/// Which gateway is meant.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The gateway that serves this config; needed if several run and none serves the nearest one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The gateway with this private socket
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,

    /// Print JSON for machines instead of text for people
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `mcpact status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Only this server, with each of its instances
    #[arg(value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Write everything that helps to find out what is wrong to this file, without secrets; `-` prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "json"])]
    pub(crate) bundle: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) which: Which,
}

/// The arguments of `mcpact logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Only this server
    #[arg(value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Go on as it happens
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How many of the last lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,

    #[command(flatten)]
    pub(crate) which: Which,
}

/// The arguments of `mcpact reload`.
#[derive(Debug, Args)]
pub(crate) struct Reload {
    #[command(flatten)]
    pub(crate) which: Which,
}
