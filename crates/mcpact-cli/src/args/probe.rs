//! Arguments of the commands that inspect a server.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;

pub(super) const PROBE_DETAILS: &str = "\
Sends one `server/discover` and one `initialize`, reads the lists that the
server declares, and disconnects. Starts a command at most twice, never two at
once, because a handshake cannot be repeated on one connection.

Examples:
  # A command
  $ mcpact probe -- npx -y @modelcontextprotocol/server-everything

  # A URL
  $ mcpact probe --bearer env:TICKETS_TOKEN https://tickets.example/mcp

  # A server of the nearest config, as JSON
  $ mcpact probe files --json

  # Every revision on its own
  $ mcpact probe --matrix -- my-server

Exit codes:
  0  negotiated
  1  unexpected error
  2  usage or config error
  3  authentication needed
  4  server unreachable or silent
  6  negotiation refused";

/// Arguments of `mcpact probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Negotiate only this revision, such as 2025-06-18
    #[arg(long, value_name = "R", conflicts_with_all = ["era", "matrix"])]
    pub(crate) revision: Option<String>,

    /// Try every revision; starts a command once per legacy revision
    #[arg(long, conflicts_with = "era")]
    pub(crate) matrix: bool,

    /// Seconds to wait for each answer
    #[arg(long, value_name = "S", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) timeout: u64,

    /// Client capabilities, a document as for `explain --client`; `-` for stdin
    /// [default: roots, sampling and elicitation]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_caps: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const DOCTOR_DETAILS: &str = "\
Checks the program and its runtimes, the network and TLS, authentication, the
start, the negotiation, stdout noise, tool names that clients refuse, and the
permissions of configs and secret files. Starts a command at most twice, and
only if it is approved.

Examples:
  # Every server of the nearest config
  $ mcpact doctor

  # One server of the nearest config
  $ mcpact doctor files

  # A command
  $ mcpact doctor -- uvx mcp-server-time

Exit codes:
  0  no problems
  1  unexpected error
  2  usage or config error
  7  problems found";

/// Arguments of `mcpact doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Seconds to wait for each answer
    #[arg(long, value_name = "S", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) timeout: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
