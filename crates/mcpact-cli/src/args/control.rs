//! Arguments of the commands that talk to a running gateway.

use std::path::PathBuf;

use clap::Args;

pub(super) const STATUS_DETAILS: &str = "\
Examples:
  # Show the gateway and every server
  $ mcpact status

  # Show one server and its instances
  $ mcpact status files

  # Refresh until Ctrl-C
  $ mcpact status --watch

  # Print JSON
  $ mcpact status --json

Exit codes:
  0  success
  1  unexpected error
  2  usage error
  4  no running gateway";

pub(super) const LOGS_DETAILS: &str = "\
Examples:
  # Show recent log lines and events of every server
  $ mcpact logs

  # Follow one server
  $ mcpact logs files --follow

  # Print JSON, one object per line
  $ mcpact logs --lines 1000 --json

Exit codes:
  0  success
  1  unexpected error
  2  usage error
  4  no running gateway";

pub(super) const RELOAD_DETAILS: &str = "\
Examples:
  # Reload the config and show what changed
  $ mcpact reload

The gateway also reloads when the config changes (`watch`) or on signal HUP.
An invalid config is rejected and changes nothing.

Exit codes:
  0  success
  1  unexpected error
  2  usage or config error
  4  no running gateway";

/// Selects a running gateway.
#[derive(Debug, Args)]
pub(crate) struct GatewaySelector {
    /// Select the gateway that serves this config [default: nearest config, or
    /// the only running gateway]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Select the gateway with this control socket
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub(crate) socket: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `mcpact status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Show only this server, with its instances
    #[arg(value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Refresh until Ctrl-C; without a terminal, print again when something
    /// changes
    #[arg(short, long, conflicts_with = "bundle")]
    pub(crate) watch: bool,

    /// Write a diagnostic bundle without config secrets; `-` prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "json"])]
    pub(crate) bundle: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) gateway: GatewaySelector,
}

/// Arguments of `mcpact logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Show only this server
    #[arg(value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Keep printing new entries
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Number of recent entries to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,

    #[command(flatten)]
    pub(crate) gateway: GatewaySelector,
}

/// Arguments of `mcpact reload`.
#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewaySelector,
}
