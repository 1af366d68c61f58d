//! Log of negotiations, for servers and clients.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::time::Instant;

use mcpact_engine::client::TransportKind;
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::transcript::{Transcript, TranscriptEvent};
use mcpact_spec::{Method, Side};
use mcpact_transport::stdio::child::Masks;
use mcpact_wire::model::implementation::Implementation;
use tracing::field::Empty;
use tracing::{Level, Span};

use super::{NEGOTIATION, field, sanitize};
use crate::lock;

/// Number of distinct negotiations remembered to recognize repetitions.
const MAX_REMEMBERED: usize = 256;

/// Log of a server's negotiations. Repeated negotiations of the same client are logged at `DEBUG`.
#[derive(Debug, Default)]
pub(crate) struct ServerNegotiationLog {
    logged: Mutex<VecDeque<u64>>,
}

impl ServerNegotiationLog {
    /// Logs a negotiation that took a single message.
    pub(crate) fn record(&self, transport_id: &str, negotiation: &Negotiation) {
        if !tracing::enabled!(target: NEGOTIATION, Level::WARN) {
            return;
        }
        let facts = Facts::of(negotiation, Side::Server, transport_id);
        let level = if self.is_new(negotiation, &facts) {
            facts.level()
        } else {
            Level::DEBUG
        };
        close(&open(), level, &facts);
    }

    /// Every handshake is new; the offer in each modern request is new only once.
    fn is_new(&self, negotiation: &Negotiation, facts: &Facts) -> bool {
        let is_handshake = facts.method.as_deref() == Some(Method::Initialize.as_str());
        if is_handshake && negotiation.verdict.is_ok() {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        facts.offer().hash(&mut hasher);
        let hash = hasher.finish();
        let mut logged = lock(&self.logged);
        if logged.contains(&hash) {
            return false;
        }
        if logged.len() >= MAX_REMEMBERED {
            logged.pop_front();
        }
        logged.push_back(hash);
        true
    }
}

/// Log of a client's negotiations.
#[derive(Debug)]
pub(crate) struct NegotiationLog {
    transport_id: String,
    /// Values that are masked in the log, even if the server repeats them.
    masks: Masks,
    open: Option<OpenNegotiation>,
}

#[derive(Debug)]
struct OpenNegotiation {
    server: String,
    span: Span,
    since: Instant,
    /// Number of transcript events already logged.
    logged: usize,
}

impl NegotiationLog {
    /// Creates the log of a client on this transport.
    pub(crate) fn new(transport: TransportKind, masks: Masks) -> Self {
        let kind = match transport {
            TransportKind::Child => "child",
            TransportKind::Stream => "stream",
            TransportKind::Http => "http",
        };
        Self {
            transport_id: super::transport_id(kind),
            masks,
            open: None,
        }
    }

    /// Starts a negotiation, or continues it on a reopened transport.
    pub(crate) fn begin(&mut self, server: &str) {
        self.open.get_or_insert_with(|| {
            let span = open();
            span.record(field::SIDE, Side::Client.as_str());
            span.record(field::TRANSPORT_ID, &self.transport_id);
            span.record(field::TARGET, server);
            OpenNegotiation {
                server: server.to_owned(),
                span,
                since: Instant::now(),
                logged: 0,
            }
        });
    }

    /// Logs new transcript events, and the result if the negotiation ended.
    pub(crate) fn record(&mut self, transcript: &Transcript, ended: Option<Box<Negotiation>>) {
        let Some(open) = &mut self.open else {
            return;
        };
        let events = transcript.events();
        for event in events.get(open.logged..).unwrap_or_default() {
            if let TranscriptEvent::Probed { saw, concluded } = event {
                tracing::debug!(
                    target: NEGOTIATION,
                    parent: &open.span,
                    saw = self.masks.cover(sanitize(saw)),
                    concluded = self.masks.cover(sanitize(concluded)),
                    "probed"
                );
            }
        }
        open.logged = events.len();
        if let Some(negotiation) = ended
            && let Some(open) = self.open.take()
        {
            self.end(open, &negotiation);
        }
    }

    /// Logs the result.
    fn end(&self, open: OpenNegotiation, negotiation: &Negotiation) {
        if !tracing::enabled!(target: NEGOTIATION, Level::WARN) {
            return;
        }
        let mut facts = Facts::of(negotiation, Side::Client, &self.transport_id);
        facts.error = facts.error.map(|error| self.masks.cover(error));
        facts.advice = facts.advice.map(|advice| self.masks.cover(advice));
        facts.ignored = facts.ignored.map(|ignored| self.masks.cover(ignored));
        facts.server = Some(open.server);
        facts.duration = u64::try_from(open.since.elapsed().as_millis()).ok();
        close(&open.span, facts.level(), &facts);
    }
}

/// Loggable fields of a negotiation.
struct Facts {
    side: &'static str,
    transport_id: String,
    server: Option<String>,
    request_id: Option<String>,
    method: Option<String>,
    client_version: Option<String>,
    client_capabilities: &'static str,
    client_list: String,
    client_info: Option<String>,
    ignored: Option<String>,
    server_versions: Option<String>,
    server_list: String,
    server_info: Option<String>,
    revision: Option<&'static str>,
    era: Option<&'static str>,
    outcome: &'static str,
    status: &'static str,
    error: Option<String>,
    advice: Option<String>,
    duration: Option<u64>,
}

impl Facts {
    fn of(negotiation: &Negotiation, side: Side, transport_id: &str) -> Self {
        let list = |side| sanitize(&negotiation.capabilities(side).join(", "));
        let supported = negotiation.supported.join(", ");
        let ignored = negotiation.ignored(side.peer()).iter();
        let ignored: Vec<String> = ignored.map(ToString::to_string).collect();
        Self {
            side: side.as_str(),
            transport_id: transport_id.to_owned(),
            server: None,
            request_id: negotiation.request_id.as_ref().map(|id| sanitize(id.raw())),
            method: negotiation.method.as_deref().map(sanitize),
            client_version: negotiation.requested.as_deref().map(sanitize),
            client_capabilities: negotiation.capabilities_outcome(),
            client_list: list(Side::Client),
            client_info: negotiation.info(Side::Client).map(name_and_version),
            ignored: (!ignored.is_empty()).then(|| sanitize(&ignored.join("; "))),
            server_versions: Some(sanitize(&supported)).filter(|all| !all.is_empty()),
            server_list: list(Side::Server),
            server_info: negotiation.info(Side::Server).map(name_and_version),
            revision: negotiation.revision().map(mcpact_spec::Revision::as_str),
            era: negotiation.revision().map(|r| r.era().as_str()),
            outcome: negotiation.outcome(),
            status: negotiation.status(),
            error: negotiation
                .verdict
                .as_ref()
                .err()
                .map(|e| sanitize(&e.to_string())),
            advice: negotiation.advice(),
            duration: None,
        }
    }

    /// Returns the key that identifies a repeated negotiation.
    fn offer(&self) -> impl Hash {
        (
            self.status,
            &self.client_version,
            &self.client_list,
            &self.client_info,
            &self.ignored,
            &self.error,
        )
    }

    const fn message(&self) -> &'static str {
        match (self.revision, &self.ignored) {
            (Some(_), None) => "negotiated",
            (Some(_), Some(_)) => "negotiated; wrongly typed capabilities are ignored",
            (None, _) => "not negotiated",
        }
    }

    /// Returns the log level of a negotiation that was not logged before.
    const fn level(&self) -> Level {
        match (self.revision, &self.ignored) {
            (Some(_), None) => Level::INFO,
            (Some(_), Some(_)) | (None, _) => Level::WARN,
        }
    }
}

fn name_and_version(info: &Implementation) -> String {
    sanitize(&format!("{} {}", info.name(), info.version()))
}

/// Passes every field with its value to another macro: the single list of logged fields.
macro_rules! with_fields {
    ($write:ident, $facts:expr, $($given:expr),*) => {
        $write! { ($($given),*)
            SIDE = $facts.side,
            TRANSPORT_ID = $facts.transport_id.as_str(),
            TARGET = $facts.server.as_deref(),
            REQUEST_ID = $facts.request_id.as_deref(),
            METHOD = $facts.method.as_deref(),
            CLIENT_VERSION = $facts.client_version.as_deref(),
            CLIENT_CAPABILITIES = $facts.client_capabilities,
            CLIENT_CAPABILITY_LIST = $facts.client_list.as_str(),
            CLIENT_INFO = $facts.client_info.as_deref(),
            IGNORED = $facts.ignored.as_deref(),
            SERVER_VERSIONS = $facts.server_versions.as_deref(),
            SERVER_CAPABILITY_LIST = $facts.server_list.as_str(),
            SERVER_INFO = $facts.server_info.as_deref(),
            REVISION = $facts.revision,
            ERA = $facts.era,
            OUTCOME = $facts.outcome,
            STATUS = $facts.status,
            ERROR = $facts.error.as_deref(),
            ADVICE = $facts.advice.as_deref(),
            DURATION = $facts.duration,
        }
    };
}

macro_rules! empty_span {
    (() $($name:ident = $value:expr,)*) => {
        tracing::info_span!(target: NEGOTIATION, "negotiation", $({ field::$name } = Empty,)*)
    };
}

macro_rules! record_all {
    (($span:expr) $($name:ident = $value:expr,)*) => {
        $($span.record(field::$name, $value);)*
    };
}

macro_rules! event {
    (($level:expr, $message:expr) $($name:ident = $value:expr,)*) => {
        tracing::event!(target: NEGOTIATION, $level, $({ field::$name } = $value,)* "{}", $message)
    };
}

/// Opens the span of a negotiation.
fn open() -> Span {
    with_fields!(empty_span, (),)
}

/// Records the result on the span and as an event.
fn close(span: &Span, level: Level, facts: &Facts) {
    with_fields!(record_all, facts, span);
    let message = facts.message();
    span.in_scope(|| match level {
        Level::INFO => with_fields!(event, facts, Level::INFO, message),
        Level::WARN => with_fields!(event, facts, Level::WARN, message),
        _ => with_fields!(event, facts, Level::DEBUG, message),
    });
}
