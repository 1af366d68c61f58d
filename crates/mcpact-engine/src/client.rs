//! The asking side of a connection: finding out the era, shaking hands, and the conversation.

mod conversation;
pub mod era_cache;
mod failure;
mod handshake;
pub mod probe;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::id::Id;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::Object;

use crate::capability::CapabilitySet;
use crate::effect::{Effect, Effects, End, Step};
use crate::outstanding::{PendingRequests, RequestTimeout};
use crate::pact::{Pact, Party};
use crate::policy::Policy;
use crate::refusal::{ApiMisuse, WireError};
use crate::revisions::RevisionSet;
use crate::time::Moment;
use crate::transcript::Transcript;

pub use era_cache::EraVerdict;
pub use failure::Failure;
pub use probe::ProbeFailure;

/// Eras that a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraMode {
    /// Modern first, legacy when the server is not modern.
    Auto,
    /// Only the handshake.
    Legacy,
    /// Only per-request metadata.
    Modern,
    /// Only this revision.
    Pin(Revision),
}

/// Transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// A child process on pipes.
    Child,
    /// A connection that cannot be restarted: a socket, or memory.
    Stream,
    /// HTTP.
    Http,
}

/// Settings of a client for every connection.
#[derive(Clone, Debug)]
pub struct ClientTerms {
    /// Its choices; `policy.version` is what it speaks.
    pub policy: Policy,
    /// Name, version and capabilities.
    pub party: Party,
    /// Eras to try.
    pub mode: EraMode,
    /// The oldest revision that it will fall back to.
    pub floor: Option<Revision>,
    /// Era of the server according to earlier connections.
    pub prior: Option<EraVerdict>,
    /// Transport of a connection.
    pub transport: TransportKind,
    /// Time to answer the probe, from the first byte of the server.
    pub probe_timeout: Duration,
    /// Time to the first byte of the server before the probe is given up.
    pub silence_limit: Duration,
    /// Time to answer `initialize`.
    pub init_timeout: Duration,
    /// Limit of requests in flight, in each direction.
    pub in_flight_limit: usize,
}

impl ClientTerms {
    /// The usual terms for these capabilities.
    #[must_use]
    pub fn new(info: Implementation, capabilities: CapabilitySet, policy: Policy) -> Self {
        Self {
            policy,
            party: Party::new(Some(info), capabilities),
            mode: EraMode::Auto,
            floor: None,
            prior: None,
            transport: TransportKind::Stream,
            probe_timeout: Duration::from_secs(3),
            silence_limit: Duration::from_secs(10),
            init_timeout: Duration::from_secs(60),
            in_flight_limit: 1024,
        }
    }

    /// Revisions to negotiate, given mode and floor.
    #[must_use]
    pub fn supported(&self) -> RevisionSet {
        let by_mode = match self.mode {
            EraMode::Auto => RevisionSet::ALL,
            EraMode::Legacy => RevisionSet::of_era(Era::Legacy),
            EraMode::Modern => RevisionSet::of_era(Era::Modern),
            EraMode::Pin(revision) => RevisionSet::of(&[revision]),
        };
        crate::version::announced(&self.policy.version)
            .and(by_mode)
            .iter()
            .filter(|r| self.floor.is_none_or(|floor| *r >= floor))
            .collect()
    }
}

impl ClientTerms {
    /// Adds to the parameters of a modern request what every request declares. The log level is taken from them.
    ///
    /// # Errors
    /// The parameters are no object.
    pub fn stamp(&self, revision: Revision, params: Option<&str>) -> Result<String, ApiMisuse> {
        let (capabilities, _) = self.party.capabilities.encode(revision, &self.policy);
        let info = self.party.info.as_ref();
        let info = info.map(|info| info.encode(revision));
        let level = params
            .and_then(|raw| Object::parse(raw).ok()?.get("_meta"))
            .and_then(|raw| Object::parse(raw).ok()?.get_str(meta::LOG_LEVEL));
        let stamp = Stamp {
            version: revision.as_str(),
            capabilities: &capabilities,
            client_info: info.as_deref(),
            log_level: level.as_deref(),
        };
        stamp.apply(params).map_err(|_| ApiMisuse::Params)
    }
}

/// State of a connection.
///
/// ```text
///                       ┌───────────── legacy: result ──────────────┐
///  Disconnected ─▶ Connecting ─▶ Probing ─▶ Initializing ─▶ Ready ◀─┘ modern: DiscoverResult
///                       │           │ ▲          │  │          │
///                       └───────────┘ └─ -32022 ─┘  │          ▼
///                        known legacy               │        Closing ─▶ Closed
///                                                   ▼
///                   no common version, refused, silent: Failed
/// ```
#[derive(Clone, Debug)]
pub enum Phase {
    /// Nothing was tried.
    Disconnected,
    /// The carrier is being opened.
    Connecting,
    /// The era is being found out.
    Probing(handshake::Opening),
    /// `initialize` was sent.
    Initializing(handshake::Opening),
    /// Requests may be sent.
    Ready(Arc<Pact>),
    /// The owner wants to end; what is in flight may finish.
    Closing,
    /// It has ended.
    Closed,
    /// It never came about.
    Failed(Failure),
}

impl Phase {
    const fn word(&self) -> &'static str {
        match self {
            Self::Disconnected => "not open",
            Self::Connecting => "being opened",
            Self::Probing(_) => "being probed",
            Self::Initializing(_) => "shaking hands",
            Self::Ready(_) => "ready",
            Self::Closing => "closing",
            Self::Closed => "closed",
            Self::Failed(_) => "failed",
        }
    }
}

/// One connection, from the client's side.
#[derive(Clone, Debug)]
pub struct Client {
    terms: Arc<ClientTerms>,
    phase: Phase,
    asked: PendingRequests,
    serving: BTreeMap<Id, Serving>,
    last_id: Option<i64>,
    probes: u32,
    respawned: bool,
    tried_http_sse: bool,
    guessed: bool,
    era: Option<Era>,
    transcript: Transcript,
}

/// A request of the server that the owner is serving.
#[derive(Clone, Copy, Debug, Default)]
struct Serving {
    cancelled: bool,
}

/// Input of the client machine.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The owner wants to connect.
    Open,
    /// The carrier is open.
    Connected,
    /// The server process shows life: its first byte on any of its pipes.
    FirstByte,
    /// A line, event or body arrived.
    Bytes {
        /// Exactly one message or batch.
        bytes: &'a [u8],
        /// The status of the HTTP answer that carried it.
        http_status: Option<u16>,
    },
    /// An HTTP answer without a message in it.
    Status(u16),
    /// The owner wants to ask the server something.
    Ask {
        /// An integer larger than any used before.
        id: i64,
        /// The method.
        method: &'a str,
        /// Its raw parameters, without the members that the engine adds to `_meta`.
        params: Option<&'a str>,
        /// Its timeout.
        timeout: RequestTimeout,
    },
    /// The owner wants to tell the server something.
    Notify {
        /// The method.
        method: &'a str,
        /// Its raw parameters.
        params: Option<&'a str>,
    },
    /// The owner answers a request of the server.
    Answer {
        /// The request.
        id: Id,
        /// The raw result, or an error.
        outcome: Result<String, WireError>,
    },
    /// The owner gives up one of its own requests.
    Cancel {
        /// Its number.
        id: i64,
    },
    /// Time went by.
    Tick,
    /// The owner wants to end.
    Close,
    /// The carrier is gone; for a child, it has exited.
    Closed,
}

impl Client {
    /// A client that has not connected.
    #[must_use]
    pub fn new(terms: Arc<ClientTerms>) -> Self {
        Self {
            asked: PendingRequests::new(terms.in_flight_limit),
            terms,
            phase: Phase::Disconnected,
            serving: BTreeMap::new(),
            last_id: None,
            probes: 0,
            respawned: false,
            tried_http_sse: false,
            guessed: false,
            era: None,
            transcript: Transcript::default(),
        }
    }

    /// State of the connection.
    #[must_use]
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Pact, once there is one.
    #[must_use]
    pub const fn pact(&self) -> Option<&Arc<Pact>> {
        let Phase::Ready(pact) = &self.phase else {
            return None;
        };
        Some(pact)
    }

    /// Method and state of the probe or handshake that waits for its answer.
    const fn opening(&self) -> Option<(Method, &handshake::Opening)> {
        match &self.phase {
            Phase::Probing(probe) => Some((Method::Discover, probe)),
            Phase::Initializing(handshake) => Some((Method::Initialize, handshake)),
            Phase::Disconnected
            | Phase::Connecting
            | Phase::Ready(_)
            | Phase::Closing
            | Phase::Closed
            | Phase::Failed(_) => None,
        }
    }

    /// The transcript so far.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Number of our requests that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    /// Time of the next useful [`Input::Tick`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        let own = self.opening().map(|(_, opening)| opening.until);
        self.asked.next_deadline().into_iter().chain(own).min()
    }

    /// Takes one input and says what is to be done.
    pub fn handle<'a>(mut self, input: Input<'a>, now: Moment) -> Step<'a, Self> {
        let mut effects = Effects::default();
        let e = &mut effects;
        match input {
            Input::Open => self.open(),
            Input::Connected => self.connected(now, e),
            Input::FirstByte => self.first_byte(now),
            Input::Bytes { bytes, http_status } => self.receive(bytes, http_status, now, e),
            Input::Status(status) => self.status(status, now, e),
            Input::Ask {
                id,
                method,
                params,
                timeout,
            } => {
                self.ask(id, method, params, timeout, now, e);
            }
            Input::Notify { method, params } => self.notify(method, params, e),
            Input::Answer { id, outcome } => self.answer(&id, outcome, e),
            Input::Cancel { id } => self.cancel(id, e),
            Input::Tick => self.tick(now, e),
            Input::Close => self.close(e),
            Input::Closed => self.closed(now, e),
        }
        Step {
            next: self,
            effects: effects.all(),
        }
    }

    fn open(&mut self) {
        if matches!(self.phase, Phase::Disconnected) {
            self.phase = Phase::Connecting;
        }
    }

    fn fail(&mut self, failure: Failure, effects: &mut Effects<'_>) {
        self.end_in(failure, effects);
        effects.push(Effect::HangUp);
    }

    /// As [`fail`](Self::fail), where there is nothing left to hang up.
    fn end_in(&mut self, failure: Failure, effects: &mut Effects<'_>) {
        self.note(Err(failure.clone()), effects);
        self.phase = Phase::Failed(failure);
    }

    fn tick(&mut self, now: Moment, effects: &mut Effects<'_>) {
        let expired = self.asked.expired(now);
        let has_expired = !expired.is_empty();
        for request in expired {
            self.give_up(&request.0, effects);
            effects.settle(request, End::TimedOut);
        }
        if has_expired {
            self.hang_up_when_done(effects);
        }
        let late = self.opening().filter(|(_, opening)| now >= opening.until);
        match late.map(|(method, _)| method) {
            Some(Method::Discover) => {
                self.observe_probe(&probe::Observation::Silence, now, effects);
            }
            Some(_) => self.fail(Failure::InitTimeout, effects),
            None => {}
        }
    }

    fn close(&mut self, effects: &mut Effects<'_>) {
        if !matches!(
            self.phase,
            Phase::Disconnected | Phase::Closed | Phase::Failed(_)
        ) {
            self.phase = Phase::Closing;
            self.hang_up_when_done(effects);
        }
    }

    /// Closes a client that is closing once nothing is in flight.
    fn hang_up_when_done(&self, effects: &mut Effects<'_>) {
        if matches!(self.phase, Phase::Closing) && self.asked.is_empty() {
            effects.push(Effect::HangUp);
        }
    }

    fn closed(&mut self, now: Moment, effects: &mut Effects<'_>) {
        for request in self.asked.drain() {
            effects.settle(request, End::ConnectionClosed);
        }
        self.serving.clear();
        match &self.phase {
            Phase::Probing(_) => {
                self.observe_probe(&probe::Observation::Exited, now, effects);
            }
            Phase::Connecting | Phase::Initializing(_) => {
                self.end_in(Failure::ConnectionClosed, effects);
            }
            Phase::Disconnected | Phase::Ready(_) | Phase::Closing | Phase::Closed => {
                self.phase = Phase::Closed;
            }
            Phase::Failed(_) => {}
        }
    }
}
