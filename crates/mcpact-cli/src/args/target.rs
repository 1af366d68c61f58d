//! Arguments that select a server: a URL, a command, or a server of a config.

use std::path::PathBuf;

use clap::Args;

/// Selects a server.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Server URL, unix:PATH, or name of a server in the config
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Command of a server, and options of the connection.
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// Command that starts a stdio server, with its arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,

    /// Config with the named server [default: nearest mcpact.toml or .mcp.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Server era: auto, legacy, modern or a revision [default: auto, or from
    /// the config]
    #[arg(long, value_name = "ERA")]
    pub(crate) era: Option<String>,

    /// Send this header, `Name: value`; expands `${VAR}` and `${file:PATH}`
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,

    /// Send the bearer token from `env:NAME` or `file:PATH`; keeps the token
    /// out of the process list
    #[arg(long, value_name = "WHERE")]
    pub(crate) bearer: Option<String>,
}
