//! Why a command could not do its work.

use std::path::PathBuf;

use mcpact_config::import::CLIENTS;
use mcpact_config::{CatalogError, nearest};
use mcpact_engine::policy::Profile;
use mcpact_gateway::Descent;
#[cfg(unix)]
use mcpact_gateway::control::ControlError;
use mcpact_spec::Revision;
use mcpact_wire::model::fault::BodyFault;

use crate::document::{Misfit, Place, Source};
use crate::exit::Exit;

/// A failure, told to the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A document cannot be read at all.
    #[error("cannot read {origin}")]
    Unreadable {
        origin: Source,
        #[source]
        cause: std::io::Error,
    },
    /// A document is larger than any capability document can be.
    #[error("{origin} is larger than {} MiB", limit >> 20)]
    TooLarge { origin: Source, limit: u64 },
    /// A document is not JSON.
    #[error("{origin} is not JSON: {detail} at {place}")]
    NotJson {
        origin: Source,
        detail: String,
        place: Place,
    },
    /// A document is JSON, but none that declares capabilities.
    #[error("{origin} {misfit}")]
    Misfit { origin: Source, misfit: Misfit },
    /// A member of a document is of the wrong kind.
    #[error("{origin} cannot be understood: {fault}")]
    Member { origin: Source, fault: BodyFault },
    /// Both documents are to come from standard input.
    #[error("`--client -` and `--server -` cannot both read standard input")]
    StdinTwice,
    /// `--revision` names no revision.
    #[error("unknown revision `{given}`")]
    UnknownRevision { given: String },
    /// `--profile` names no profile.
    #[error("unknown profile `{given}`")]
    UnknownProfile { given: String },
    /// `--log` or `MCPACT_LOG` is no filter.
    #[error("`{given}` is no filter for the log")]
    LogFilter {
        given: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// `MCPACT_LOG_FORMAT` is no format.
    #[error("`{given}` is no format for the log")]
    LogFormat { given: String },
    /// What a bridge shall lead to is neither an address nor a program.
    #[error("`{given}` is neither an `http://` or `https://` address nor a program")]
    Target { given: String },
    /// Something stands behind an address.
    #[error("`{given}` stands behind the address of the server")]
    Behind { given: String },
    /// A header cannot be sent, or not to this server.
    #[error("cannot use this header: {why}")]
    Header { why: String, remedy: String },
    /// `--era` names no era and no revision.
    #[error("unknown era `{given}`")]
    Era { given: String },
    /// What the config asks for cannot be served.
    #[error("cannot serve the config")]
    Gateway(#[from] mcpact_gateway::GatewayError),
    /// A server could not do its work.
    #[error("cannot serve")]
    Serve(#[source] mcpact::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on `{address}`")]
    Listen {
        address: std::net::SocketAddr,
        settings: Settings,
        #[source]
        source: mcpact::Error,
    },
    /// A config cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// No config was named, and there is none.
    #[error("there is no config here or in any folder above")]
    NoConfig,
    /// The gateway would be started without end.
    #[error("cannot serve `{}` here", .config.display())]
    Descent {
        config: PathBuf,
        #[source]
        source: Descent,
    },
    /// The current folder is gone.
    #[error("cannot tell the current folder")]
    Here(#[source] std::io::Error),
    /// There is no such server in the config.
    #[error("there is no server `{given}`")]
    UnknownServer { given: String, all: Vec<String> },
    /// There is no place where approvals could be kept.
    #[error("there is no place to keep approvals")]
    NoState,
    /// An approval can be neither looked up nor given.
    #[error("cannot tell whether `{server}` is approved")]
    Approve {
        server: String,
        #[source]
        source: std::io::Error,
    },
    /// What is to be imported is no client.
    #[error("there is no client and no file `{given}`")]
    UnknownClient { given: String },
    /// A client has no config.
    #[error("no config of `{client}` was found")]
    ClientWithoutConfig {
        client: &'static str,
        looked: Vec<PathBuf>,
    },
    /// No client has configured anything.
    #[error("no servers were found")]
    NothingToImport,
    /// A file is not replaced.
    #[error("`{}` is there already", .0.display())]
    OutputExists(PathBuf),
    /// A file would not be read as what is written into it.
    #[error("`{}` does not end with `.toml`, and TOML is what is written", .0.display())]
    OutputEnding(PathBuf),
    /// A file cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A token cannot be read or is too weak.
    #[error("cannot use the token in {origin}: {why}")]
    Token { origin: String, why: String },
    /// A certificate or its key cannot be used.
    #[error("cannot speak TLS")]
    Tls(#[source] mcpact::Error),
    /// The private socket of a gateway cannot be opened or used.
    #[cfg(unix)]
    #[error("the private socket cannot be used")]
    Control(#[source] ControlError),
    /// No gateway runs, or none that serves this config.
    #[cfg(unix)]
    #[error("no gateway runs{}", .config.as_ref().map(|path| format!(" that serves `{}`", path.display())).unwrap_or_default())]
    NoGateway {
        config: Option<PathBuf>,
        /// Those that run, by their configs.
        running: Vec<String>,
    },
    /// Several gateways run.
    #[cfg(unix)]
    #[error("several gateways run{}", .config.as_ref().map(|path| format!(" that serve `{}`", path.display())).unwrap_or_default())]
    WhichGateway {
        /// What all of them serve.
        config: Option<PathBuf>,
        /// Those that run, by their configs.
        running: Vec<String>,
    },
    /// A gateway does not answer as it should.
    #[cfg(unix)]
    #[error("the gateway answered something else")]
    Answer,
    /// A gateway does not understand the request.
    #[cfg(unix)]
    #[error("the gateway does not understand this: {0}")]
    Unread(String),
    /// A gateway has too much to do.
    #[cfg(unix)]
    #[error("too many ask this gateway at the same time")]
    Busy,
    /// A gateway has no such server.
    #[cfg(unix)]
    #[error("there is no server `{name}`")]
    NoServer {
        name: String,
        servers: Vec<String>,
        filters: Vec<String>,
    },
    /// Somebody did not want to wait until calls have ended.
    #[error("ended at once; calls that ran were cut off")]
    CutOff,
    /// The asynchronous runtime could not be started.
    #[error("cannot start the runtime")]
    Runtime(#[source] std::io::Error),
    /// A program cannot be started under guard.
    #[cfg(target_os = "linux")]
    #[error("cannot start `{program}`")]
    Guard {
        program: String,
        #[source]
        source: std::io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write the result")]
    Output(#[source] std::io::Error),
}

/// Where the settings of a listener stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settings {
    /// On the command line.
    Options,
    /// In the config.
    Config,
}

impl Settings {
    /// What to do if others could reach the listener.
    const fn for_others(self) -> [&'static str; 3] {
        match self {
            Self::Options => [
                "listen on 127.0.0.1 or [::1], or",
                "set a token: `--token-file FILE`, or the variable MCPACT_TOKEN, or",
                "say `--allow-remote` if whoever reaches it may use it",
            ],
            Self::Config => [
                "listen on 127.0.0.1 or [::1], or",
                "set `token` in `[gateway]` of the config, or",
                "say `allow_remote = true` in `[gateway]` of the config if whoever reaches it may use it",
            ],
        }
    }
}

impl CliError {
    /// The exit code that the failure ends with.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::NotJson { .. }
            | Self::Misfit { .. }
            | Self::Member { .. }
            | Self::StdinTwice
            | Self::UnknownRevision { .. }
            | Self::UnknownProfile { .. }
            | Self::LogFilter { .. }
            | Self::LogFormat { .. }
            | Self::Target { .. }
            | Self::Behind { .. }
            | Self::Header { .. }
            | Self::Era { .. }
            | Self::Gateway(_)
            | Self::Token { .. }
            | Self::Tls(_)
            | Self::Catalog(_)
            | Self::NoConfig
            | Self::UnknownServer { .. }
            | Self::NoState
            | Self::Descent { .. }
            | Self::UnknownClient { .. }
            | Self::ClientWithoutConfig { .. }
            | Self::NothingToImport
            | Self::OutputExists(_)
            | Self::OutputEnding(_)
            | Self::Listen { .. } => Exit::Usage,
            #[cfg(unix)]
            Self::WhichGateway { .. } | Self::NoServer { .. } => Exit::Usage,
            #[cfg(unix)]
            Self::Control(ControlError::Held { .. }) => Exit::Usage,
            #[cfg(unix)]
            Self::Control(_) | Self::NoGateway { .. } | Self::Busy => Exit::Unreachable,
            #[cfg(unix)]
            Self::Answer | Self::Unread(_) => Exit::Unexpected,
            Self::Here(_)
            | Self::Approve { .. }
            | Self::Write { .. }
            | Self::Output(_)
            | Self::Serve(_)
            | Self::CutOff
            | Self::Runtime(_) => Exit::Unexpected,
            #[cfg(target_os = "linux")]
            Self::Guard { .. } => Exit::Unexpected,
        }
    }

    /// What to do about it, one sentence each.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreadable { .. } => vec![String::from(
                "FILE is a path to a JSON document, or `-` for standard input",
            )],
            Self::TooLarge { .. } => vec![String::from("only the handshake is needed")],
            Self::NotJson { .. } => vec![String::from(
                "one JSON object is expected, without comments or trailing commas",
            )],
            Self::Misfit { misfit, .. } => vec![misfit.hint()],
            Self::Member { .. } => vec![String::from("correct the member, or leave it out")],
            Self::StdinTwice => vec![String::from("put one of the two documents into a file")],
            Self::UnknownRevision { given } => choice(given, &Revision::ALL.map(Revision::as_str)),
            Self::LogFilter { .. } => vec![String::from(
                "a level (`off`, `error`, `warn`, `info`, `debug`, `trace`), or `TARGET=LEVEL` pairs \
                 with commas between them",
            )],
            Self::LogFormat { given } => choice(given, &["text", "json"]),
            Self::UnknownProfile { given } => choice(given, &Profile::ALL.map(Profile::as_str)),
            Self::Target { .. } => vec![String::from(
                "such as `mcpact bridge https://tickets.example/mcp` or `mcpact bridge -- npx -y some-server`",
            )],
            Self::Behind { .. } => vec![String::from("options stand before the address")],
            Self::Header { remedy, .. } => vec![remedy.clone()],
            Self::Era { given } => choice(given, &eras()),
            Self::Listen {
                source: mcpact::Error::NotLoopback(_),
                settings,
                ..
            } => settings.for_others().map(String::from).to_vec(),
            Self::Listen { .. } => vec![String::from("port 0 picks a free one")],
            Self::Token { .. } => vec![String::from(
                "a token has at least 16 visible ASCII characters; `openssl rand -hex 32` makes one",
            )],
            Self::Tls(_) => vec![String::from(
                "both files are PEM: the certificate with its chain, and its unencrypted key",
            )],
            Self::Catalog(CatalogError::Unreadable { .. }) => vec![String::from(
                "FILE is a config of mcpact or of another client, in TOML, JSON or YAML",
            )],
            Self::Catalog(CatalogError::Refused { .. }) => {
                vec![String::from(
                    "`mcpact check FILE` shows every problem with its line",
                )]
            }
            Self::Gateway(_) => vec![String::from(
                "correct the config; `mcpact check FILE` shows what else is wrong",
            )],
            Self::NoConfig => vec![
                String::from("name one: `mcpact check FILE`, `mcpact approve --config FILE`; or"),
                String::from("make one from what other clients have configured: `mcpact import`"),
            ],
            Self::UnknownServer { given, all } => {
                let all: Vec<&str> = all.iter().map(String::as_str).collect();
                choice(given, &all)
            }
            Self::Descent { source, .. } => vec![source.remedy()],
            Self::NoState => vec![String::from("set the variable HOME or XDG_STATE_HOME")],
            Self::UnknownClient { given } => {
                let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
                choice(given, &names)
            }
            Self::ClientWithoutConfig { looked, .. } => {
                let paths = looked
                    .iter()
                    .map(|path| format!("looked for `{}`", path.display()));
                paths.collect()
            }
            Self::NothingToImport => vec![String::from(
                "name a client such as `cursor`, or a file that has servers in it",
            )],
            Self::OutputExists(_) => vec![String::from(
                "say `--force` to replace it, or `--output FILE` to write elsewhere",
            )],
            Self::OutputEnding(path) => vec![format!(
                "write to `{}`, or to standard output with `--output -`",
                path.with_extension("toml").display()
            )],
            Self::Here(_)
            | Self::Approve { .. }
            | Self::Write { .. }
            | Self::Serve(_)
            | Self::Runtime(_)
            | Self::CutOff
            | Self::Output(_) => Vec::new(),
            #[cfg(unix)]
            Self::Control(ControlError::Held { .. }) => vec![
                String::from("stop that one, or"),
                String::from("give this one another socket: `control` in `[gateway]`"),
            ],
            #[cfg(unix)]
            Self::Control(error @ ControlError::Stuck { .. }) => {
                remedy(error).into_iter().collect()
            }
            #[cfg(unix)]
            Self::Control(_) => vec![String::from(
                "the socket is that of `control` in `[gateway]`, or in the folder `mcpact` of the runtime folder",
            )],
            #[cfg(unix)]
            Self::NoGateway { running, .. } if running.is_empty() => vec![String::from(
                "start one with `mcpact serve`; one with `control` in its config is found by `--socket PATH`",
            )],
            #[cfg(unix)]
            Self::NoGateway { running, .. } | Self::WhichGateway { running, .. } => {
                let by = match self {
                    Self::WhichGateway {
                        config: Some(_), ..
                    } => "`--socket PATH`",
                    _ => "`--config FILE` or `--socket PATH`",
                };
                let mut hints = vec![format!("say which one: {by}")];
                hints.extend(running.iter().map(|one| format!("there is {one}")));
                hints
            }
            #[cfg(unix)]
            Self::NoServer { name, filters, .. } if filters.contains(name) => vec![format!(
                "`{name}` is a filter: what it writes is among what `mcpact logs` shows without a name"
            )],
            #[cfg(unix)]
            Self::NoServer { name, servers, .. } if servers.is_empty() => {
                vec![format!("the gateway has no servers, and so no `{name}`")]
            }
            #[cfg(unix)]
            Self::NoServer { name, servers, .. } => {
                let names: Vec<&str> = servers.iter().map(String::as_str).collect();
                choice(name, &names)
            }
            #[cfg(unix)]
            Self::Answer | Self::Unread(_) => vec![String::from(
                "it may be of another version than this program: `mcpact status --json` tells its version",
            )],
            #[cfg(unix)]
            Self::Busy => vec![String::from(
                "end some `mcpact logs --follow`, or try again",
            )],
            #[cfg(target_os = "linux")]
            Self::Guard { .. } => Vec::new(),
        }
    }
}

/// What to do about a gateway that does not answer, if something can be said.
#[cfg(unix)]
pub(crate) fn remedy(error: &ControlError) -> Option<String> {
    let ControlError::Stuck { process, .. } = error else {
        return None;
    };
    Some(match process {
        Some(id) => format!(
            "if it was stopped, `kill -CONT {id}` lets it go on; else `kill -KILL {id}` ends it"
        ),
        None => String::from("end the process that holds this socket, and remove the socket"),
    })
}

/// What `--era` takes.
fn eras() -> Vec<&'static str> {
    let revisions = Revision::ALL.map(Revision::as_str);
    ["auto", "legacy", "modern"]
        .into_iter()
        .chain(revisions)
        .collect()
}

/// The hints for a value that is none of a few.
fn choice(given: &str, all: &[&str]) -> Vec<String> {
    let meant = nearest(given, all).map(|near| format!("did you mean `{near}`?"));
    let quoted: Vec<String> = all.iter().map(|one| format!("`{one}`")).collect();
    meant
        .into_iter()
        .chain([format!("one of {}", quoted.join(", "))])
        .collect()
}
