//! What the library tells the local log: targets, events and fields, for filters and programs.
//!
//! Everything goes through `tracing`; without a subscriber it costs next to nothing. No value of a
//! header, an environment variable, an argument or a `_meta` member is ever written.
//!
//! | target | what |
//! |---|---|
//! | [`NEGOTIATION`] | a span and an event for each negotiation, with the fields of [`field`] |
//! | [`CHILD`] | the life of a server process, with the names of [`event`], and what it writes to its log |
//! | [`REQUEST`] | a span for each request that a gateway passes on, with server, method and trace |
//! | [`MESSAGES`] | log messages of MCP servers, at the level that they have there |
//!
//! An agreement is told at `INFO`, a refusal at `WARN` with both sides' offers and an advice. What a
//! server has told of the same client before is told again only at `DEBUG`.
//!
//! The other way, what handlers tell the local log, goes to clients with
//! [`ClientLog`](crate::server::ClientLog).

mod diary;
mod life;
mod messages;
mod witness;

use std::sync::atomic::{AtomicU64, Ordering};

pub use diary::Diary;
pub(crate) use life::{Life, Turn};
pub(crate) use messages::{remote, write_message};
pub(crate) use witness::Witness;

/// The target of everything about negotiations.
pub const NEGOTIATION: &str = "mcpact::negotiation";
/// The target of the life and the log of server processes.
pub const CHILD: &str = "mcpact::child";
/// The target of requests on their way through a gateway.
pub const REQUEST: &str = "mcpact::request";
/// The target of log messages that MCP servers send.
pub const MESSAGES: &str = "mcpact::messages";
/// All targets.
pub const TARGETS: &[&str] = &[NEGOTIATION, CHILD, REQUEST, MESSAGES];

/// The fields of a negotiation.
pub mod field {
    /// The JSON-RPC id of the message that it took place in.
    pub const REQUEST_ID: &str = "request_id";
    /// The carrier: its kind and a number, such as `stdio-1`.
    pub const TRANSPORT_ID: &str = "transport_id";
    /// Which side tells it: `client` or `server`.
    pub const SIDE: &str = "side";
    /// The method of the message.
    pub const METHOD: &str = "method";
    /// What a client calls the server that it connects to.
    pub const TARGET: &str = "server";
    /// The version that the client asked for, as it wrote it.
    pub const CLIENT_VERSION: &str = "client.protocol_version";
    /// What became of the client's capabilities: `negotiated`, `insufficient`, `unused` or `unread`.
    pub const CLIENT_CAPABILITIES: &str = "client.capabilities";
    /// The paths that the client declares; of an agreement, those in effect.
    pub const CLIENT_CAPABILITY_LIST: &str = "client.capabilities.list";
    /// Who the client says it is.
    pub const CLIENT_INFO: &str = "client.info";
    /// The versions that the server speaks, as far as they are known.
    pub const SERVER_VERSIONS: &str = "server.protocol_versions";
    /// The paths that the server declares; of an agreement, those in effect.
    pub const SERVER_CAPABILITY_LIST: &str = "server.capabilities.list";
    /// Who the server says it is.
    pub const SERVER_INFO: &str = "server.info";
    /// The revision that was agreed on.
    pub const REVISION: &str = "revision";
    /// Its era: `legacy` or `modern`.
    pub const ERA: &str = "era";
    /// `agreed` or `refused`.
    pub const OUTCOME: &str = "outcome";
    /// `ok`, `protocol_version_mismatch`, or another stable word for a refusal.
    pub const STATUS: &str = "status";
    /// What was wrong.
    pub const ERROR: &str = "error";
    /// What would help.
    pub const ADVICE: &str = "advice";
    /// How long it took, where it took more than one message.
    pub const DURATION: &str = "duration_ms";
}

/// What the field `event` says about a server process and its connection.
pub mod event {
    /// The process is about to be started.
    pub const START_ATTEMPT: &str = "start_attempt";
    /// It runs; whether there is an agreement is for the negotiation to tell.
    pub const START_SUCCESS: &str = "start_success";
    /// It could not be started.
    pub const START_FAILURE: &str = "start_failure";
    /// It has ended, or is ended, without an agreement.
    pub const INITIALIZE_FAILURE: &str = "initialize_failure";
    /// It is asked to end.
    pub const STOP_ATTEMPT: &str = "stop_attempt";
    /// It has ended.
    pub const STOP_SUCCESS: &str = "stop_success";
    /// It did not end as it should.
    pub const STOP_FAILURE: &str = "stop_failure";
    /// Sessions that nobody used were ended.
    pub const IDLE_REAP: &str = "idle_reap";
    /// It did not answer as it should when asked whether it is well.
    pub const PING_FAILURE: &str = "ping_failure";
    /// A request could not be passed on to it, or its answer never came.
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

/// The name of a carrier in the log.
pub(crate) fn transport_id(kind: &str) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("{kind}-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// How much of a text that a peer wrote goes into the log.
const LONGEST: usize = 500;

/// A text of a peer, short and without control characters.
pub(crate) fn legible(text: &str) -> String {
    let clean = |letter: char| {
        if letter.is_control() {
            '\u{fffd}'
        } else {
            letter
        }
    };
    let mut short: String = text.chars().take(LONGEST).map(clean).collect();
    if short.len() < text.len() && text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
