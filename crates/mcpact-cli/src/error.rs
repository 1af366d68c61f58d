//! Errors of commands, with exit code and hints.

mod edit;

use std::path::PathBuf;

use mcpact::server::ListenAddress;
use mcpact_config::{CatalogError, nearest};
use mcpact_gateway::StartLoop;
use mcpact_transport::error::TransportError;

use crate::client::ClientFailure;
use crate::document::{DocumentFault, Source};
use crate::target::TargetError;

pub(crate) use self::edit::EditError;

#[cfg(unix)]
use mcpact_gateway::control::ControlError;

/// Error of a command, printed to stderr.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A document cannot be read.
    #[error("failed to read {origin}")]
    ReadDocument {
        origin: Source,
        #[source]
        cause: std::io::Error,
    },
    /// A document cannot be negotiated.
    #[error("{}", .fault.describe(.origin))]
    Document {
        origin: Source,
        fault: DocumentFault,
    },
    /// Both documents are to be read from stdin.
    #[error("`--client -` and `--server -` cannot both read stdin")]
    StdinTwice,
    /// An argument names something that does not exist.
    #[error("unknown {what} `{given}`")]
    Unknown {
        what: &'static str,
        given: String,
        /// Heading of the known values.
        label: &'static str,
        known: Vec<String>,
    },
    /// `--log` or `MCPACT_LOG` is not a filter.
    #[error("invalid log filter `{given}`")]
    LogFilter {
        given: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// `MCPACT_LOG_FORMAT` is not a format.
    #[error("invalid log format `{given}`")]
    LogFormat { given: String },
    /// The target cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A request to a server failed.
    #[error(transparent)]
    Client(#[from] ClientFailure),
    /// A header cannot be sent.
    #[error("cannot send the header: {reason}")]
    Header { reason: String, hint: String },
    /// `--profile` or `--policy` is invalid.
    #[error("{}", .0.message)]
    Policy(mcpact_config::Problem),
    /// The token of `--bearer` cannot be read.
    #[error("`--bearer`: {reason}")]
    Bearer { reason: String },
    /// The gateway cannot be built from the config.
    #[error("cannot serve the config")]
    Gateway(#[from] mcpact_gateway::GatewayError),
    /// A server failed.
    #[error("server failed")]
    Serve(#[source] mcpact::Error),
    /// A listener cannot be opened.
    #[error("cannot listen on `{address}`")]
    Listen {
        address: ListenAddress,
        settings: ListenSettings,
        #[source]
        source: mcpact::Error,
    },
    /// A config is invalid or cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// No config was given or found.
    #[error("no config found in this directory or its parents")]
    NoConfig,
    /// The gateway would start itself.
    #[error("cannot serve `{}`", .config.display())]
    StartLoop {
        config: PathBuf,
        #[source]
        source: StartLoop,
    },
    /// The current directory is unknown.
    #[error("failed to determine the current directory")]
    CurrentDir(#[source] std::io::Error),
    /// There is no directory for approvals.
    #[error("no directory to store approvals")]
    NoStateDir,
    /// An approval cannot be read or saved.
    #[error("failed to check or save the approval of `{server}`")]
    Approve {
        server: String,
        #[source]
        source: std::io::Error,
    },
    /// The version of a package cannot be written into the config.
    #[error("failed to write `{}`", .file.display())]
    Pin {
        file: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// `--mark` is not the mark of an item in the config.
    #[error("no item has the mark `{mark}`")]
    UnknownMark { mark: String },
    /// A client has no config.
    #[error("no config found for client `{client}`")]
    ClientWithoutConfig {
        client: &'static str,
        searched: Vec<PathBuf>,
    },
    /// No client has servers.
    #[error("no servers found")]
    NothingToImport,
    /// The output file exists.
    #[error("`{}` already exists", .0.display())]
    OutputExists(PathBuf),
    /// The output file has another extension than `.toml`.
    #[error("output file `{}` must end in `.toml`", .0.display())]
    OutputNotToml(PathBuf),
    /// A file cannot be written.
    #[error("failed to write `{}`", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A config cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The address is that of a running gateway.
    #[error("address `{address}` is in use: {gateway}")]
    ServedAddress {
        address: ListenAddress,
        /// Description of the gateway.
        gateway: String,
    },
    /// A token cannot be read or is too weak.
    #[error("cannot use the token in {origin}: {reason}")]
    Token { origin: String, reason: String },
    /// A certificate or its key is invalid.
    #[error("failed to set up TLS")]
    Tls(#[source] mcpact::Error),
    /// The control socket cannot be opened or used.
    #[cfg(unix)]
    #[error("control socket failed")]
    Control(#[source] ControlError),
    /// No gateway is running, or none that serves the config.
    #[cfg(unix)]
    #[error("{}", match .config {
        None => String::from("no running gateway"),
        Some(path) => format!("no running gateway serves `{}`", path.display()),
    })]
    NoGateway {
        config: Option<PathBuf>,
        /// Descriptions of those that run.
        running: Vec<String>,
    },
    /// Several gateways are running.
    #[cfg(unix)]
    #[error("{}", match .config {
        None => String::from("several gateways are running"),
        Some(path) => format!("several running gateways serve `{}`", path.display()),
    })]
    AmbiguousGateway {
        /// The config that all of them serve.
        config: Option<PathBuf>,
        /// Descriptions of those that run.
        running: Vec<String>,
    },
    /// The gateway sent another kind of response.
    #[cfg(unix)]
    #[error("unexpected response from the gateway")]
    UnexpectedResponse,
    /// The gateway cannot parse the request.
    #[cfg(unix)]
    #[error("the gateway rejected the request: {0}")]
    RequestRejected(String),
    /// The gateway has too many control connections.
    #[cfg(unix)]
    #[error("the gateway has too many control connections")]
    Busy,
    /// The gateway has no such server.
    #[cfg(unix)]
    #[error("unknown server `{name}`")]
    NoServer {
        name: String,
        servers: Vec<String>,
        filters: Vec<String>,
    },
    /// A second signal ended the process.
    #[error("exited on second signal; running calls were aborted")]
    Aborted,
    /// The async runtime cannot be started.
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
    /// The guard cannot start its program.
    #[cfg(target_os = "linux")]
    #[error("failed to start `{program}`")]
    Guard {
        program: String,
        #[source]
        source: std::io::Error,
    },
    /// The result cannot be written to stdout.
    #[error("failed to write the output")]
    Output(#[source] std::io::Error),
}

/// Source of the settings of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenSettings {
    /// Command-line flags.
    Flags,
    /// The config.
    Config,
}

impl ListenSettings {
    /// Hints for a listener that other machines could reach.
    const fn remote_hints(self) -> [&'static str; 3] {
        match self {
            Self::Flags => [
                "listen on 127.0.0.1 or [::1]",
                "or require a token: `--token-file FILE`, or the variable MCPACT_TOKEN",
                "or pass `--allow-remote` to accept clients without a token",
            ],
            Self::Config => [
                "listen on 127.0.0.1 or [::1]",
                "or require a token: `token` in `[gateway]`",
                "or set `allow_remote = true` in `[gateway]` to accept clients without a token",
            ],
        }
    }
}

impl CliError {
    /// Error for an argument that is none of the known values.
    pub(crate) fn unknown(
        what: &'static str,
        given: &str,
        label: &'static str,
        known: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        Self::Unknown {
            what,
            given: given.to_owned(),
            label,
            known: known.into_iter().map(|one| one.to_string()).collect(),
        }
    }

    /// Error for a header that cannot be sent.
    pub(crate) fn header(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Header {
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// Error for a listener that cannot be opened.
    pub(crate) fn listen(
        address: impl Into<ListenAddress>,
        settings: ListenSettings,
    ) -> impl FnOnce(mcpact::Error) -> Self {
        let address = address.into();
        move |source| Self::Listen {
            address,
            settings,
            source,
        }
    }

    /// Returns the exit code.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => error.exit(),
            Self::CurrentDir(_)
            | Self::Approve { .. }
            | Self::Pin { .. }
            | Self::Write { .. }
            | Self::Output(_)
            | Self::Serve(_)
            | Self::Aborted
            | Self::Runtime(_) => Exit::Unexpected,
            #[cfg(target_os = "linux")]
            Self::Guard { .. } => Exit::Unexpected,
            #[cfg(unix)]
            Self::UnexpectedResponse | Self::RequestRejected(_) => Exit::Unexpected,
            #[cfg(unix)]
            Self::Control(ControlError::InUse { .. }) => Exit::Usage,
            #[cfg(unix)]
            Self::Control(_) | Self::NoGateway { .. } | Self::Busy => Exit::Unreachable,
            // Everything else is a mistake in the arguments, the input or the config.
            _ => Exit::Usage,
        }
    }

    /// Returns the hints, each without a final period.
    pub(crate) fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![String::from(hint)];
        let two = |first: &str, then: &str| vec![String::from(first), String::from(then)];
        match self {
            Self::ReadDocument { .. } => one("pass the path of a JSON document, or `-` for stdin"),
            Self::Document { fault, .. } => one(fault.hint()),
            Self::Policy(problem) => problem.remedy.iter().cloned().collect(),
            Self::StdinTwice => one("save one of the documents to a file"),
            Self::Unknown {
                given,
                label,
                known,
                ..
            } => suggestions(given, known, label),
            Self::LogFilter { .. } => two(
                "use a level: off, error, warn, info, debug or trace",
                "or `TARGET=LEVEL` pairs, separated by commas",
            ),
            Self::LogFormat { given } => suggestions(given, &["text", "json"], "formats"),
            Self::Target(error) => error.hints(),
            Self::Client(error) => error.hints(),
            Self::Header { hint, .. } => one(hint),
            Self::Listen {
                source: mcpact::Error::NotLoopback(_),
                settings,
                ..
            } => settings.remote_hints().map(String::from).to_vec(),
            Self::Listen {
                source: mcpact::Error::Transport(TransportError::Io(error)),
                ..
            } if error.kind() == std::io::ErrorKind::AddrInUse => one(
                "another gateway may be running, see `mcpact status`; or use `--listen 127.0.0.1:0`",
            ),
            Self::Listen { .. } => one("use port 0 to pick a free port"),
            Self::ServedAddress { .. } => two(
                "use that gateway; `mcpact status` shows its servers",
                "or use another address, such as `--listen 127.0.0.1:0`",
            ),
            Self::Token { .. } => two(
                "a token needs at least 16 visible ASCII characters",
                "generate one with `openssl rand -hex 32`",
            ),
            Self::Tls(_) => {
                one("both files must be PEM: the certificate chain and its unencrypted key")
            }
            Self::Catalog(CatalogError::Unreadable { .. }) => {
                one("pass a config of mcpact or another MCP client, in TOML, JSON or YAML")
            }
            Self::Catalog(CatalogError::Refused { source_text, .. }) => vec![format!(
                "run `mcpact check {}` to see every problem with its line",
                source_text.name
            )],
            Self::Gateway(_) => one("correct the config"),
            Self::NoConfig => two(
                "pass a file: `mcpact check FILE`, `mcpact approve --config FILE`",
                "or create a config from other clients: `mcpact import`",
            ),
            Self::StartLoop { source, .. } => vec![source.remedy()],
            Self::Edit(error) => error.hints(),
            Self::UnknownMark { .. } => {
                one("run `mcpact approve` to see the items that need approval")
            }
            Self::NoStateDir => one("set the variable HOME or XDG_STATE_HOME"),
            Self::ClientWithoutConfig { searched, .. } => {
                let paths = searched
                    .iter()
                    .map(|path| format!("searched `{}`", path.display()));
                paths.collect()
            }
            Self::NothingToImport => {
                one("pass a client, such as `cursor`, or a config file that has servers")
            }
            Self::OutputExists(_) => {
                one("pass `--force` to overwrite it, or `--output FILE` to write another file")
            }
            Self::OutputNotToml(path) => vec![format!(
                "write to `{}`, or to stdout with `--output -`",
                path.with_extension("toml").display()
            )],
            #[cfg(unix)]
            Self::Control(ControlError::InUse { .. }) => two(
                "stop that gateway",
                "or set another socket: `control` in `[gateway]`",
            ),
            #[cfg(unix)]
            Self::Control(error @ ControlError::Timeout { .. }) => {
                control_hint(error).into_iter().collect()
            }
            #[cfg(unix)]
            Self::Control(_) => one(
                "the socket is `control` in `[gateway]`, or in `mcpact/` of the runtime directory",
            ),
            #[cfg(unix)]
            Self::NoGateway { running, .. } if running.is_empty() => two(
                "start one with `mcpact serve`",
                "or pass `--socket PATH` if its config sets `control`",
            ),
            #[cfg(unix)]
            Self::NoGateway { running, .. } | Self::AmbiguousGateway { running, .. } => {
                let flags = match self {
                    Self::AmbiguousGateway {
                        config: Some(_), ..
                    } => "`--socket PATH`",
                    _ => "`--config FILE` or `--socket PATH`",
                };
                let mut hints = vec![format!("select one with {flags}")];
                hints.extend(running.iter().map(|one| format!("running: {one}")));
                hints
            }
            #[cfg(unix)]
            Self::NoServer { name, filters, .. } if filters.contains(name) => vec![format!(
                "`{name}` is a filter; run `mcpact logs` without a name to see its output"
            )],
            #[cfg(unix)]
            Self::NoServer { servers, .. } if servers.is_empty() => {
                one("the gateway has no servers")
            }
            #[cfg(unix)]
            Self::NoServer { name, servers, .. } => suggestions(name, servers, "servers"),
            #[cfg(unix)]
            Self::UnexpectedResponse | Self::RequestRejected(_) => one(
                "the gateway may run another version of mcpact; `mcpact status --json` shows it",
            ),
            #[cfg(unix)]
            Self::Busy => one("stop some `mcpact logs --follow`, or try again"),
            _ => Vec::new(),
        }
    }
}

/// Returns the hint for a gateway that does not answer.
#[cfg(unix)]
pub(crate) fn control_hint(error: &ControlError) -> Option<String> {
    let ControlError::Timeout { process, .. } = error else {
        return None;
    };
    Some(match process {
        Some(id) => format!(
            "resume it with `kill -CONT {id}` if it was stopped, or end it with `kill -KILL {id}`"
        ),
        None => String::from("end the process that holds the socket, and remove the socket"),
    })
}

/// Hints for an unknown value: the nearest one, and all of them.
pub(crate) fn suggestions(given: &str, all: &[impl AsRef<str>], label: &str) -> Vec<String> {
    let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    let similar = nearest(given, &all).map(|near| format!("did you mean `{near}`?"));
    let quoted: Vec<String> = all.iter().map(|one| format!("`{one}`")).collect();
    similar
        .into_iter()
        .chain([format!("{label}: {}", quoted.join(", "))])
        .collect()
}

/// Exit code, with the same meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// Unexpected error, such as a full disk.
    Unexpected,
    /// Invalid arguments, input or config.
    Usage,
    /// Authentication needed.
    Auth,
    /// No answer from a gateway or server.
    Unreachable,
    /// The tool failed or does not exist.
    Tool,
    /// Negotiation refused.
    Refused,
    /// A check found problems.
    Problems,
    /// Exit status of the guarded program.
    #[cfg(target_os = "linux")]
    Child(u8),
}

impl Exit {
    /// Every code that mcpact chooses itself.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Ok,
        Self::Unexpected,
        Self::Usage,
        Self::Auth,
        Self::Unreachable,
        Self::Tool,
        Self::Refused,
        Self::Problems,
    ];

    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Auth => 3,
            Self::Unreachable => 4,
            Self::Tool => 5,
            Self::Refused => 6,
            Self::Problems => 7,
            #[cfg(target_os = "linux")]
            Self::Child(status) => status,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
