//! The arguments, as they are typed.

mod catalog;
#[cfg(unix)]
mod control;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mcpact_config::{host_remedy, is_host, origin_fault};

pub(crate) use self::catalog::{Approve, Check, Import};
#[cfg(unix)]
pub(crate) use self::control::{Logs, Reload, Status, Which};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "mcpact",
    version,
    about = "Any MCP client with any MCP server: negotiated, gated, explained",
    after_help = "Environment: MCPACT_LOG is the filter when there is no `--log`, MCPACT_LOG_FORMAT the format when there is \
                  no `--log-format`, NO_COLOR switches colour off\n\n\
                  Exit codes: 0 ok, 1 unexpected, 2 usage or input, 4 unreachable, 6 negotiation refused,\n\
                  7 problems found",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Log more to standard error: once what happens, twice also why, thrice everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Log what the filter lets through, such as `info` or `warn,mcpact::negotiation=debug`
    #[arg(long, global = true, value_name = "FILTER", conflicts_with = "verbose")]
    pub(crate) log: Option<String>,

    /// Write the log like this instead of as text for a terminal and as JSON for everything else
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the log is written: lines for people, or an object on each line for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// One verb.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway: every configured server behind one address, for any client
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Serve),
    /// Show how a gateway that runs and its servers are
    #[cfg(unix)]
    #[command(after_help = control::STATUS_EXAMPLES)]
    Status(Status),
    /// Show the logs of the servers of a gateway that runs, and what became of them
    #[cfg(unix)]
    #[command(after_help = control::LOGS_EXAMPLES)]
    Logs(Logs),
    /// Let a gateway that runs read its config anew
    #[cfg(unix)]
    #[command(after_help = control::RELOAD_EXAMPLES)]
    Reload(Reload),
    /// Negotiate two documents without any network and explain the result
    #[command(long_about = EXPLAIN_DETAILS, after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Run the reference server: every feature of every revision
    #[command(after_help = EVERYTHING_EXAMPLES)]
    Everything(Everything),
    /// Stand between any client and one server, whatever revisions they speak
    #[command(after_help = BRIDGE_EXAMPLES)]
    Bridge(BridgeArgs),
    /// Check a config, of mcpact or of any other client, and list what it would start
    #[command(after_help = catalog::CHECK_EXAMPLES)]
    Check(Check),
    /// Make a config from what other clients have configured
    #[command(after_help = catalog::IMPORT_EXAMPLES)]
    Import(Import),
    /// Show what a config starts, and agree to it
    #[command(after_help = catalog::APPROVE_EXAMPLES)]
    Approve(Approve),
    /// Print the JSON Schema of the config
    #[command(after_help = catalog::SCHEMA_EXAMPLES)]
    Schema,
    /// Stand between a gateway and a program that it starts, so that nothing is left of the program
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// The arguments of `mcpact guard`, which nobody types.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The process that started the guard
    pub(crate) owner: u32,

    /// The program gets no rights that it does not have
    #[arg(long)]
    pub(crate) no_new_privileges: bool,

    /// How many files each process may have open
    #[arg(long, value_name = "N")]
    pub(crate) open_files: Option<u64>,

    /// How many bytes of address space each process may have
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,

    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  mcpact serve
      the servers of the nearest `mcpact.toml` or `.mcp.json`, or built-in ones to try it
  mcpact serve --config ~/.cursor/mcp.json
      the servers of a client's config, as it is
  mcpact serve --stdio --config prod.toml
      on standard input and output, for the config of a client

All servers are at /mcp, one alone at /servers/NAME/mcp, those with a tag at /tags/TAG/mcp.

The config is read anew when its file changes, or one that it takes values from, or at the signal
HUP. At TERM or INT the gateway takes no more requests, lets those that run finish, and ends; a
second signal ends it at once.
`mcpact status`, `mcpact logs` and `mcpact reload` talk to it while it runs.

Exit codes: 0 ok, 1 unexpected, 2 usage or config, or another gateway has the address or
the socket, 4 the socket of `control` cannot be opened";

/// The arguments of `mcpact serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Read the servers from this file instead of the nearest config
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve HTTP clients on this address instead of the configured one; port 0 picks a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Serve one client on standard input and output
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Ask every server anew who it is and what it has, and write nothing down
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Start and send only what `mcpact approve` has approved, as with a config that was not named
    #[arg(long)]
    pub(crate) approved_only: bool,
}

const BRIDGE_EXAMPLES: &str = "\
Examples:
  mcpact bridge -- npx -y @modelcontextprotocol/server-everything
      on standard input and output, for the config of a client
  mcpact bridge --bearer env:TICKETS_TOKEN https://tickets.example/mcp
      a server that is reached by HTTP, for a client that starts programs
  mcpact bridge --listen 127.0.0.1:6274 --sse -- my-server
      on HTTP, for clients of every revision, those of 2024-11-05 on /sse

At TERM or INT the bridge takes no more requests, lets those that run finish, and ends; a second
one ends it at once.

Exit codes: 0 ok, 1 unexpected, 2 usage";

/// The arguments of `mcpact bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// Serve one client on standard input and output (the default)
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Serve HTTP clients on this address; port 0 picks a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// With `--listen`: also serve 2024-11-05 clients on `/sse`
    #[arg(long, requires = "listen", conflicts_with = "stdio")]
    pub(crate) sse: bool,

    /// How the server is spoken to: `auto`, `legacy`, `modern` or a revision
    #[arg(long, value_name = "ERA", default_value = "auto")]
    pub(crate) era: String,

    /// Send a URL this header, as `Name: value`; `${VAR}` and `${file:PATH}` keep secrets out of sight
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,

    /// Show a URL the bearer token in a variable, as `env:NAME`, or in a file, as `file:PATH`. Clients that fill in `${VAR}` in
    /// arguments, where everybody on the machine sees it, find none here
    #[arg(long, value_name = "WHERE")]
    pub(crate) bearer: Option<String>,

    /// Ask the server for its era each time, and write nothing down
    #[arg(long)]
    pub(crate) no_cache: bool,

    #[command(flatten)]
    pub(crate) front: Front,

    /// A URL, or `--` and a command with its arguments
    #[arg(value_name = "TARGET", required = true, trailing_var_arg = true)]
    pub(crate) target: Vec<String>,
}

const EVERYTHING_EXAMPLES: &str = "\
Examples:
  mcpact everything
      on standard input and output, for the config of a client
  mcpact everything --listen 127.0.0.1:0
      on HTTP; the first line on standard output is the address
  mcpact everything --listen 127.0.0.1:6273 --revisions 2026-07-28
      a server without any handshake
  mcpact everything --listen 0.0.0.0:6273 --token-file token --tls-cert cert.pem --tls-key key.pem
      for other machines: a token is needed, TLS keeps it secret

Exit codes: 0 ok, 1 unexpected, 2 usage";

/// The arguments of `mcpact everything`.
#[derive(Debug, Args)]
pub(crate) struct Everything {
    /// Serve one client on standard input and output (the default)
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Serve HTTP clients on this address; port 0 picks a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Speak only these revisions, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) revisions: Vec<String>,

    /// List this many tools, prompts or resources at a time
    #[arg(long, value_name = "NUMBER")]
    pub(crate) page_size: Option<usize>,

    /// With `--listen`: also serve 2024-11-05 clients on `/sse`
    #[arg(long, requires = "listen", conflicts_with = "stdio")]
    pub(crate) sse: bool,

    /// With `--listen`: also serve clients on a WebSocket at `/ws`
    #[arg(long, requires = "listen", conflicts_with = "stdio")]
    pub(crate) websocket: bool,

    #[command(flatten)]
    pub(crate) front: Front,
}

/// Who may come in by HTTP, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "With `--listen`")]
pub(crate) struct Front {
    /// Let only those in who show the bearer token in this file; the variable MCPACT_TOKEN does the same
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,

    /// Listen on addresses beyond loopback without a token: whoever reaches it can use it
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,

    /// Answer to this host name as well
    #[arg(long, value_name = "NAME", requires = "listen", value_parser = host)]
    pub(crate) allow_host: Vec<String>,

    /// Let pages of this origin call as well, such as https://app.example
    #[arg(long, value_name = "ORIGIN", requires = "listen", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,

    /// Speak TLS with the certificate in this PEM file, followed by its chain
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port are needed, such as 127.0.0.1:0")
}

fn host(text: &str) -> Result<String, &'static str> {
    match is_host(text) {
        true => Ok(text.to_owned()),
        false => Err(host_remedy(text)),
    }
}

/// What a browser sends in `Origin`, and nothing that would never be equal to it.
fn origin(text: &str) -> Result<String, &'static str> {
    match origin_fault(text) {
        None => Ok(text.to_owned()),
        Some(remedy) => Err(remedy),
    }
}

const EXPLAIN_DETAILS: &str = "\
Negotiate two documents without any network and explain the result: the revision that the two \
sides agree on, what each of them may use, and for every method whether it is open, why, and what \
would open it.

FILE holds JSON: a bare capability object, the params of \
`initialize` or of a modern request, the result of `initialize` or of `server/discover`, or a whole \
JSON-RPC message with one of these. A side without a FILE is played by a bundled example.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  mcpact explain
      two bundled examples: a rich client meets an older server
  mcpact explain --client client.json --server server.json
      your own documents
  mcpact explain --client client.json --server server.json --revision 2026-07-28
      what if both spoke only this revision?
  mcpact explain --server - --json < discover-result.json
      one side from standard input, the result for machines

Exit codes: 0 agreed, 1 unexpected, 2 usage or input, 6 negotiation refused";

/// The arguments of `mcpact explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// What the client declares; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) client: Option<PathBuf>,

    /// What the server declares; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,

    /// Let both sides speak only this revision, such as 2025-06-18
    #[arg(long, value_name = "R")]
    pub(crate) revision: Option<String>,

    /// The server's policy: `spec`, `mcpv-strict` or `erlmcp`
    #[arg(long, value_name = "NAME", default_value = "spec")]
    pub(crate) profile: String,

    /// Forgive nothing: a wrongly typed capability refuses the negotiation
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON for machines instead of text for people
    #[arg(long)]
    pub(crate) json: bool,

    /// Show a row for every method, also for those that the revision does not have
    #[arg(long)]
    pub(crate) all: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }

    /// Whatever people type tells its exit codes, those that every command has among them, in lines that are not broken.
    #[test]
    fn every_command_tells_its_exit_codes() {
        let cli = super::Cli::command();
        let typed = cli.get_subcommands().filter(|one| !one.is_hide_set());
        for command in typed {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let codes = help.split("Exit codes: 0 ").nth(1).unwrap_or_default();
            assert!(codes.contains(", 1 unexpected, 2 usage"), "{help}");
            let longest = help.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(100), "{help}");
        }
    }
}
