//! Command-line arguments.

mod client;
mod config;
#[cfg(unix)]
mod control;
mod generated;
mod install;
mod probe;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use mcpact::server::ListenAddress;
use mcpact_config::{host_problem, origin_problem, user_id};

pub(crate) use self::client::{
    CallArgs, ClientArgs, CompleteArgs, ListArgs, PromptArgs, ReadArgs, TasksArgs,
};
pub(crate) use self::config::{ApproveArgs, CheckArgs, ImportArgs};
#[cfg(unix)]
pub(crate) use self::control::{GatewaySelector, LogsArgs, ReloadArgs, StatusArgs};
pub(crate) use self::generated::{CompletionsArgs, ManArgs};
pub(crate) use self::install::{AddArgs, InstallArgs, RemoveArgs};
pub(crate) use self::probe::{DoctorArgs, ProbeArgs};
pub(crate) use self::target::{ConnectArgs, TargetArgs};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "mcpact",
    version,
    about = "Connect any MCP client to any MCP server",
    after_help = GLOBAL_DETAILS,
    max_term_width = 80,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Increase verbosity (-v info, -vv debug, -vvv trace)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    pub(crate) verbose: u8,

    /// Log filter, e.g. `warn,mcpact::negotiation=debug`
    #[arg(long, global = true, value_name = "FILTER", conflicts_with = "verbose", help_heading = GLOBAL)]
    pub(crate) log: Option<String>,

    /// Log format: text (default on a terminal) or json
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = GLOBAL
    )]
    pub(crate) log_format: Option<LogFormat>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line of this process. Prints an error or help and exits if it is incomplete.
    pub(crate) fn of_process() -> Self {
        #[cfg(target_os = "linux")]
        if let Some(args) = GuardArgs::of_process() {
            return Self {
                verbose: 0,
                log: None,
                log_format: None,
                command: Command::Guard(args),
            };
        }
        Self::parse()
    }
}

/// Heading of the options that every command accepts.
const GLOBAL: &str = "Global options";

const GLOBAL_DETAILS: &str = "\
Environment variables:
  MCPACT_LOG         Log filter if `--log` is not given
  MCPACT_LOG_FORMAT  Log format if `--log-format` is not given
  NO_COLOR           Disable colored output

Exit codes:
  0  success
  1  unexpected error
  2  usage, input or config error
  3  authentication needed
  4  server or gateway unreachable
  5  not found, or the server returned an error
  6  negotiation refused
  7  problems found";

/// Log output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway
    #[command(after_help = SERVE_DETAILS)]
    Serve(ServeArgs),
    /// Show the status of a running gateway and its servers
    #[cfg(unix)]
    #[command(after_help = control::STATUS_DETAILS)]
    Status(StatusArgs),
    /// Show server logs and lifecycle events of a running gateway
    #[cfg(unix)]
    #[command(after_help = control::LOGS_DETAILS)]
    Logs(LogsArgs),
    /// Reload the configuration of a running gateway
    #[cfg(unix)]
    #[command(after_help = control::RELOAD_DETAILS)]
    Reload(ReloadArgs),
    /// Connect clients to one server across protocol revisions
    #[command(
        after_help = BRIDGE_DETAILS,
        override_usage = "mcpact bridge [OPTIONS] TARGET\n       mcpact bridge [OPTIONS] -- COMMAND..."
    )]
    Bridge(BridgeArgs),
    /// List the tools of a server, or show one
    #[command(after_help = client::TOOLS_DETAILS, override_usage = client::TOOLS_USAGE)]
    Tools(ListArgs),
    /// List the resources of a server, or show one
    #[command(after_help = client::RESOURCES_DETAILS, override_usage = client::RESOURCES_USAGE)]
    Resources(ListArgs),
    /// List the prompts of a server, or show one
    #[command(after_help = client::PROMPTS_DETAILS, override_usage = client::PROMPTS_USAGE)]
    Prompts(ListArgs),
    /// Call a tool
    #[command(after_help = client::CALL_DETAILS, override_usage = client::CALL_USAGE)]
    Call(CallArgs),
    /// Read a resource
    #[command(after_help = client::READ_DETAILS, override_usage = client::READ_USAGE)]
    Read(ReadArgs),
    /// Get a prompt
    #[command(after_help = client::PROMPT_DETAILS, override_usage = client::PROMPT_USAGE)]
    Prompt(PromptArgs),
    /// Complete an argument of a prompt or resource template
    #[command(after_help = client::COMPLETE_DETAILS, override_usage = client::COMPLETE_USAGE)]
    Complete(CompleteArgs),
    /// List, show or cancel tasks of a server
    #[command(after_help = client::TASKS_DETAILS, override_usage = client::TASKS_USAGE)]
    Tasks(TasksArgs),
    /// Check a config file and list its servers
    #[command(after_help = config::CHECK_DETAILS)]
    Check(CheckArgs),
    /// Create a config from the configs of other MCP clients
    #[command(after_help = config::IMPORT_DETAILS)]
    Import(ImportArgs),
    /// Add mcpact to the config of an MCP client
    #[command(after_help = install::INSTALL_DETAILS)]
    Install(InstallArgs),
    /// Add a server to mcpact.toml
    #[command(after_help = install::ADD_DETAILS)]
    Add(AddArgs),
    /// Remove a server from mcpact.toml
    #[command(after_help = install::REMOVE_DETAILS)]
    Remove(RemoveArgs),
    /// Review and approve what a config starts and sends
    #[command(after_help = config::APPROVE_DETAILS)]
    Approve(ApproveArgs),
    /// Print the JSON Schema of the config file
    #[command(after_help = config::SCHEMA_DETAILS)]
    Schema,
    /// Show what a server negotiates, and why
    #[command(
        after_help = probe::PROBE_DETAILS,
        override_usage = "mcpact probe [OPTIONS] TARGET\n       mcpact probe [OPTIONS] -- COMMAND..."
    )]
    Probe(ProbeArgs),
    /// Find out why servers do not work, and how to fix them
    #[command(
        after_help = probe::DOCTOR_DETAILS,
        override_usage = "mcpact doctor [OPTIONS] [TARGET]\n       mcpact doctor [OPTIONS] -- COMMAND..."
    )]
    Doctor(DoctorArgs),
    /// Negotiate two capability documents offline and explain the result
    #[command(after_help = EXPLAIN_DETAILS)]
    Explain(ExplainArgs),
    /// Run the reference server, which implements every MCP feature
    #[command(after_help = EVERYTHING_DETAILS)]
    Everything(EverythingArgs),
    /// Print a completion script for a shell
    #[command(after_help = generated::COMPLETIONS_DETAILS)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = generated::MAN_DETAILS)]
    Man(ManArgs),
    /// Supervise a server process (internal)
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// Arguments of `mcpact guard`, which only mcpact itself runs.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Process ID of the parent
    pub(crate) owner: u32,

    /// Set `no_new_privs` for the program
    #[arg(long)]
    pub(crate) no_new_privileges: bool,

    /// Limit of open files per process
    #[arg(long, value_name = "N")]
    pub(crate) open_files: Option<u64>,

    /// Limit of address space per process
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,

    /// Level of the sandbox
    #[arg(long, value_name = "LEVEL", default_value = "off", value_parser = sandbox_level)]
    pub(crate) sandbox: mcpact_transport::stdio::child::SandboxLevel,

    /// Readable working folder
    #[arg(long, value_name = "PATH")]
    pub(crate) folder: Option<std::path::PathBuf>,

    /// Readable path
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<std::path::PathBuf>,

    /// Writable path
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<std::path::PathBuf>,

    /// TCP port for connections
    #[arg(long, value_name = "PORT")]
    pub(crate) allow_port: Vec<u16>,

    /// Program and its arguments
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[cfg(target_os = "linux")]
impl GuardArgs {
    /// Returns the arguments of a guard, without building the other commands: each server has a guard.
    fn of_process() -> Option<Self> {
        const NAME: &str = "guard";
        let mut args = std::env::args_os().skip(1).peekable();
        args.peek().filter(|name| *name == NAME)?;
        let command = Self::augment_args(clap::Command::new(NAME));
        let mut matches = command.try_get_matches_from(args).ok()?;
        Self::from_arg_matches_mut(&mut matches).ok()
    }
}

/// Parses a level of the sandbox.
#[cfg(target_os = "linux")]
fn sandbox_level(name: &str) -> Result<mcpact_transport::stdio::child::SandboxLevel, &'static str> {
    mcpact_transport::stdio::child::SandboxLevel::parse(name).ok_or("unknown level")
}

const SERVE_DETAILS: &str = "\
Examples:
  # Serve the nearest config, or built-in demo servers
  $ mcpact serve

  # Serve the config of another client
  $ mcpact serve --config ~/.cursor/mcp.json

  # Run as a stdio server, started by a client
  $ mcpact serve --stdio --config prod.toml

Endpoints:
  /mcp               all servers
  /servers/NAME/mcp  one server
  /tags/TAG/mcp      servers with a tag

Signals:
  HUP        Reload the config
  TERM, INT  Finish running requests, then exit; a second signal exits at once

The config is also reloaded when its file, or a file it refers to, changes.
Use `mcpact status`, `mcpact logs` and `mcpact reload` with a running gateway.

Exit codes:
  0  success
  1  unexpected error
  2  usage or config error, or address or control socket in use
  4  control socket cannot be opened";

/// Arguments of `mcpact serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Config file [default: nearest mcpact.toml or .mcp.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Listen address, or unix:PATH; port 0 picks a free port [default: from the
    /// config, or 127.0.0.1:6272]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<ListenAddress>,

    /// Serve one client on stdin/stdout instead of HTTP
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Do not read or write cached server metadata
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Require approvals even with `--config`
    #[arg(long)]
    pub(crate) approved_only: bool,

    /// Reject a config with an invalid server [default for mcpact.toml]
    #[arg(long, conflicts_with = "lenient")]
    pub(crate) strict: bool,

    /// Skip invalid servers and serve the others [default for configs of other
    /// clients]
    #[arg(long)]
    pub(crate) lenient: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

const BRIDGE_DETAILS: &str = "\
Examples:
  # Run as a stdio server, started by a client
  $ mcpact bridge -- npx -y @modelcontextprotocol/server-everything

  # Connect a stdio client to an HTTP server
  $ mcpact bridge --bearer env:TICKETS_TOKEN https://tickets.example/mcp

  # Connect a client to one server of the nearest config
  $ mcpact bridge files

  # Serve HTTP clients of every revision; 2024-11-05 clients use /sse
  $ mcpact bridge --listen 127.0.0.1:6274 --sse -- my-server

Signals:
  TERM, INT  Finish running requests, then exit; a second signal exits at once

Exit codes:
  0  success
  1  unexpected error
  2  usage or config error";

/// Arguments of `mcpact bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    /// Serve one client on stdin/stdout (default)
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Serve HTTP on this address; port 0 picks a free port
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Do not read or write the cached era of the server
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Also serve 2024-11-05 clients at `/sse`
    #[arg(long, requires = "listen", conflicts_with = "stdio", help_heading = HTTP)]
    pub(crate) sse: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

const EVERYTHING_DETAILS: &str = "\
Examples:
  # Run as a stdio server, started by a client
  $ mcpact everything

  # Serve HTTP; the first line of output is the URL
  $ mcpact everything --listen 127.0.0.1:0

  # Offer only the stateless revision
  $ mcpact everything --listen 127.0.0.1:6273 --revisions 2026-07-28

  # Serve other machines, with a token and TLS
  $ mcpact everything --listen 0.0.0.0:6273 --token-file token \\
      --tls-cert cert.pem --tls-key key.pem

Exit codes:
  0  success
  1  unexpected error
  2  usage error";

/// Arguments of `mcpact everything`.
#[derive(Debug, Args)]
pub(crate) struct EverythingArgs {
    /// Serve one client on stdin/stdout (default)
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Serve HTTP on this address; port 0 picks a free port
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Offer only these revisions (comma-separated)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) revisions: Vec<String>,

    /// Page size of tool, prompt and resource lists
    #[arg(long, value_name = "NUMBER")]
    pub(crate) page_size: Option<usize>,

    /// Also serve 2024-11-05 clients at `/sse`
    #[arg(long, requires = "listen", conflicts_with = "stdio", help_heading = HTTP)]
    pub(crate) sse: bool,

    /// Also serve WebSocket clients at `/ws`
    #[arg(long, requires = "listen", conflicts_with = "stdio", help_heading = HTTP)]
    pub(crate) websocket: bool,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Options of the protocol policy.
#[derive(Debug, Args)]
#[command(next_help_heading = "Protocol options")]
pub(crate) struct PolicyArgs {
    /// Protocol profile: spec, mcpv-strict or erlmcp
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Set a protocol key of `[gateway]`, such as `max_batch_size=10`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) policy: Vec<String>,
}

/// Heading of the options that need `--listen`.
const HTTP: &str = "HTTP options (with `--listen`)";

/// Options of an HTTP listener.
#[derive(Debug, Args)]
#[command(next_help_heading = HTTP)]
pub(crate) struct HttpArgs {
    /// Require the token in FILE (or in MCPACT_TOKEN)
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,

    /// Allow a non-loopback address without a token
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,

    /// Accept requests for this host name
    #[arg(long, value_name = "NAME", requires = "listen", value_parser = host)]
    pub(crate) allow_host: Vec<String>,

    /// Accept browser requests from this origin, such as https://app.example
    #[arg(long, value_name = "ORIGIN", requires = "listen", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,

    /// Accept requests of this user of this machine, a name or id
    #[arg(long, value_name = "USER", requires = "listen", value_parser = user)]
    pub(crate) allow_user: Vec<u32>,

    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:0")
}

fn host(text: &str) -> Result<String, &'static str> {
    host_problem(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Accepts only values that a browser can send in `Origin`.
fn origin(text: &str) -> Result<String, &'static str> {
    origin_problem(text).map_or_else(|| Ok(text.to_owned()), Err)
}

fn user(text: &str) -> Result<u32, &'static str> {
    user_id(text).ok_or("no such user in /etc/passwd; use a name of it, or a user id")
}

const EXPLAIN_DETAILS: &str = "\
Shows the negotiated revision, the capabilities in effect on each side, and for
every method whether it is allowed, why, and what would allow it.

Documents:
  FILE contains JSON: a capability object, the params of `initialize` or of a
  modern request, the result of `initialize` or `server/discover`, or a whole
  JSON-RPC message with one of these.

Examples:
  # Two bundled examples: a recent client and an older server
  $ mcpact explain

  # Your own documents
  $ mcpact explain --client client.json --server server.json

  # The same with both sides limited to one revision
  $ mcpact explain --client client.json --server server.json \\
      --revision 2026-07-28

  # Server document from stdin, output as JSON
  $ mcpact explain --server - --json < discover-result.json

Exit codes:
  0  negotiation succeeded
  1  unexpected error
  2  usage or input error
  6  negotiation refused";

/// Arguments of `mcpact explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Client document, `-` for stdin [default: an example]
    #[arg(long, value_name = "FILE")]
    pub(crate) client: Option<PathBuf>,

    /// Server document, `-` for stdin [default: an example]
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,

    /// Limit both sides to this revision, such as 2025-06-18
    #[arg(long, value_name = "R")]
    pub(crate) revision: Option<String>,

    /// Policy: spec, mcpv-strict or erlmcp
    #[arg(long, value_name = "NAME", default_value = "spec")]
    pub(crate) profile: String,

    /// Refuse wrongly typed capabilities
    #[arg(long)]
    pub(crate) strict: bool,

    /// Also show methods that the revision does not define
    #[arg(long)]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_documents_its_exit_codes() {
        let cli = super::Cli::command();
        let visible = cli.get_subcommands().filter(|one| !one.is_hide_set());
        for command in visible {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let codes = help.split("Exit codes:\n  0  ").nth(1).unwrap_or_default();
            assert!(
                codes.contains("\n  1  unexpected error\n  2  usage"),
                "{help}"
            );
        }
    }

    #[test]
    fn help_fits_in_80_columns() {
        let mut cli = super::Cli::command();
        cli.build();
        let names: Vec<String> = cli
            .get_subcommands()
            .map(|one| one.get_name().to_owned())
            .collect();
        let mut all = vec![cli.render_long_help().to_string()];
        for name in names {
            let command = cli.find_subcommand_mut(&name);
            all.extend(command.map(|command| command.render_long_help().to_string()));
        }
        for help in all {
            let longest = help.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{help}");
        }
    }
}
