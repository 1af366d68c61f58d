//! Targets, events and fields of the library's log.
//!
//! Everything goes through `tracing`. Values of headers, environment variables, arguments and `_meta` members are
//! never logged.
//!
//! | target | content |
//! |---|---|
//! | [`NEGOTIATION`] | a span and an event for each negotiation, with the fields of [`field`] |
//! | [`CHILD`] | lifecycle of a server process, with the names of [`event`], and its stderr |
//! | [`REQUEST`] | a span for each request through a gateway, with server, method and trace |
//! | [`MESSAGES`] | log messages of MCP servers, at their own level |
//!
//! An agreement is logged at `INFO`, and at `WARN` if capabilities of the peer have the wrong type and are ignored. A
//! refusal is logged at `WARN` with the offers of both sides and advice. A repeated negotiation of the same client is logged at `DEBUG`.
//!
//! [`ClientLog`](crate::server::ClientLog) works in the other direction: it sends the log of handlers to clients.

mod negotiation;

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mcpact_spec::LogLevel;
use tracing::Level;

use crate::error::with_causes;
use crate::model::LogMessage;

pub(crate) use negotiation::{NegotiationLog, ServerNegotiationLog};

/// Target of negotiations.
pub const NEGOTIATION: &str = "mcpact::negotiation";
/// Target of the lifecycle and stderr of server processes.
pub const CHILD: &str = "mcpact::child";
/// Target of requests through a gateway.
pub const REQUEST: &str = "mcpact::request";
/// Target of log messages sent by MCP servers.
pub const MESSAGES: &str = "mcpact::messages";
/// All targets.
pub const TARGETS: &[&str] = &[NEGOTIATION, CHILD, REQUEST, MESSAGES];

/// Fields of a negotiation.
pub mod field {
    /// JSON-RPC id of the negotiating message.
    pub const REQUEST_ID: &str = "request_id";
    /// Transport: kind and number, such as `stdio-1`.
    pub const TRANSPORT_ID: &str = "transport_id";
    /// Side that logs it: `client` or `server`.
    pub const SIDE: &str = "side";
    /// Method of the negotiating message.
    pub const METHOD: &str = "method";
    /// Name of the server in the client's log.
    pub const TARGET: &str = "server";
    /// Version that the client requested, verbatim.
    pub const CLIENT_VERSION: &str = "client.protocol_version";
    /// Outcome of the client's capabilities: `negotiated`, `insufficient`, `unused` or `unread`.
    pub const CLIENT_CAPABILITIES: &str = "client.capabilities";
    /// Capability paths of the client; after an agreement, those in effect.
    pub const CLIENT_CAPABILITY_LIST: &str = "client.capabilities.list";
    /// Wrongly typed capabilities of the peer, which count as absent.
    pub const IGNORED: &str = "capabilities.ignored";
    /// Name and version of the client.
    pub const CLIENT_INFO: &str = "client.info";
    /// Versions supported by the server, as far as known.
    pub const SERVER_VERSIONS: &str = "server.protocol_versions";
    /// Capability paths of the server; after an agreement, those in effect.
    pub const SERVER_CAPABILITY_LIST: &str = "server.capabilities.list";
    /// Name and version of the server.
    pub const SERVER_INFO: &str = "server.info";
    /// Negotiated revision.
    pub const REVISION: &str = "revision";
    /// Its era: `legacy` or `modern`.
    pub const ERA: &str = "era";
    /// `agreed` or `refused`.
    pub const OUTCOME: &str = "outcome";
    /// `ok`, `protocol_version_mismatch`, or another stable word for a refusal.
    pub const STATUS: &str = "status";
    /// Error.
    pub const ERROR: &str = "error";
    /// Remedy.
    pub const ADVICE: &str = "advice";
    /// Duration, if the negotiation took more than one message.
    pub const DURATION: &str = "duration_ms";
}

/// Values of the field `event` for a server process and its connection.
pub mod event {
    /// The process is about to start.
    pub const START_ATTEMPT: &str = "start_attempt";
    /// The process runs; the negotiation is logged separately.
    pub const START_SUCCESS: &str = "start_success";
    /// The process could not be started.
    pub const START_FAILURE: &str = "start_failure";
    /// The process ended, or is being stopped, without an agreement.
    pub const INITIALIZE_FAILURE: &str = "initialize_failure";
    /// The process is being stopped.
    pub const STOP_ATTEMPT: &str = "stop_attempt";
    /// The process has exited.
    pub const STOP_SUCCESS: &str = "stop_success";
    /// The process did not stop cleanly.
    pub const STOP_FAILURE: &str = "stop_failure";
    /// Unused sessions were closed.
    pub const IDLE_REAP: &str = "idle_reap";
    /// The health check failed.
    pub const PING_FAILURE: &str = "ping_failure";
    /// A request could not be forwarded, or was never answered.
    pub const ROUTE_ERROR: &str = "route_error";
    /// All events.
    pub const ALL: &[&str] = &[
        START_ATTEMPT,
        START_SUCCESS,
        START_FAILURE,
        INITIALIZE_FAILURE,
        STOP_ATTEMPT,
        STOP_SUCCESS,
        STOP_FAILURE,
        IDLE_REAP,
        PING_FAILURE,
        ROUTE_ERROR,
    ];
}

/// Returns a new name for a transport in the log.
pub(crate) fn transport_id(kind: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("{kind}-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Maximum number of characters of a peer's text in the log.
const MAX_CHARS: usize = 500;

/// Truncates a peer's text and replaces control characters.
pub(crate) fn sanitize(text: &str) -> String {
    let clean = |letter: char| {
        if letter.is_control() {
            '\u{fffd}'
        } else {
            letter
        }
    };
    let mut short: String = text.chars().take(MAX_CHARS).map(clean).collect();
    if short.len() < text.len() && text.chars().nth(MAX_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// Maps an MCP level to a `tracing` level.
const fn local(level: LogLevel) -> Level {
    match level {
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Info | LogLevel::Notice => Level::INFO,
        LogLevel::Warning => Level::WARN,
        LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
            Level::ERROR
        }
    }
}

/// Maps a `tracing` level to an MCP level.
pub(crate) const fn remote(level: Level) -> LogLevel {
    match level {
        Level::TRACE | Level::DEBUG => LogLevel::Debug,
        Level::INFO => LogLevel::Info,
        Level::WARN => LogLevel::Warning,
        Level::ERROR => LogLevel::Error,
    }
}

macro_rules! write_at {
    ($level:ident, $server:expr, $message:expr, $text:expr) => {
        tracing::event!(
            target: MESSAGES,
            Level::$level,
            server = $server,
            severity = $message.level.as_str(),
            logger = $message.logger.as_deref().map(sanitize),
            "{}",
            $text
        )
    };
}

/// Logs the content of `notifications/message`; unreadable messages are skipped.
pub(crate) fn write_params(server: &str, params: Option<&str>) {
    if tracing::enabled!(target: MESSAGES, Level::ERROR)
        && let Ok(message) = serde_json::from_str(params.unwrap_or("{}"))
    {
        write_message(server, &message);
    }
}

/// Logs a message of a server at its level.
pub fn write_message(server: &str, message: &LogMessage) {
    let text = sanitize(&message.text());
    match local(message.level) {
        Level::ERROR => write_at!(ERROR, server, message, text),
        Level::WARN => write_at!(WARN, server, message, text),
        Level::INFO => write_at!(INFO, server, message, text),
        Level::DEBUG => write_at!(DEBUG, server, message, text),
        Level::TRACE => write_at!(TRACE, server, message, text),
    }
}

/// Lifecycle event of a process, with the names of [`event`].
#[derive(Clone, Copy, Debug)]
pub enum ProcessEvent<'a> {
    /// The process is about to start.
    StartAttempt,
    /// The process runs.
    StartSuccess,
    /// The process could not be started.
    StartFailure(&'a dyn Error),
    /// The process is stopped without an agreement.
    InitializeFailure,
    /// The process is being stopped.
    StopAttempt,
    /// The process has exited.
    StopSuccess,
    /// The process did not stop cleanly.
    StopFailure(&'a dyn Error),
}

impl<'a> ProcessEvent<'a> {
    /// Returns the event name, the new state of the process and the error.
    fn row(self) -> (&'static str, &'static str, Option<&'a dyn Error>) {
        match self {
            Self::StartAttempt => (event::START_ATTEMPT, "starting", None),
            Self::StartSuccess => (event::START_SUCCESS, "running", None),
            Self::StartFailure(error) => (event::START_FAILURE, "failed", Some(error)),
            Self::InitializeFailure => (event::INITIALIZE_FAILURE, "failed", None),
            Self::StopAttempt => (event::STOP_ATTEMPT, "stopping", None),
            Self::StopSuccess => (event::STOP_SUCCESS, "stopped", None),
            Self::StopFailure(error) => (event::STOP_FAILURE, "failed", Some(error)),
        }
    }
}

/// Logs the successive processes of one server.
#[derive(Debug)]
pub(crate) struct ProcessLog {
    server: String,
    instance: Option<u32>,
    since: Instant,
}

impl ProcessLog {
    pub(crate) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            instance: None,
            since: Instant::now(),
        }
    }

    /// Records that a process runs, with its process id.
    pub(crate) fn started(&mut self, instance: u32) {
        self.instance = Some(instance);
        self.record(ProcessEvent::StartSuccess);
    }

    /// Logs an event; `duration_ms` is the time since the previous one.
    pub(crate) fn record(&mut self, process_event: ProcessEvent<'_>) {
        let (event, state, error) = process_event.row();
        let error = error.map(with_causes);
        let server = self.server.as_str();
        let instance = self.instance;
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since = Instant::now();
        match process_event {
            ProcessEvent::StartFailure(_)
            | ProcessEvent::InitializeFailure
            | ProcessEvent::StopFailure(_) => {
                tracing::warn!(target: CHILD, event, server, instance, state, duration_ms, error, "{event}");
            }
            ProcessEvent::StartAttempt
            | ProcessEvent::StartSuccess
            | ProcessEvent::StopAttempt
            | ProcessEvent::StopSuccess => {
                tracing::info!(target: CHILD, event, server, instance, state, duration_ms, "{event}");
            }
        }
    }
}
