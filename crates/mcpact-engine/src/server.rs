//! The serving side of a connection, in both eras at once.

mod handshake;
mod in_flight;
mod incoming;
pub mod listen;
mod outgoing;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use mcpact_spec::{Capability, Era, LogLevel, Method, Revision, Side};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Request;
use mcpact_wire::id::Id;
use mcpact_wire::model::discover::CacheScope;
use mcpact_wire::model::implementation::Implementation;
use smallvec::SmallVec;

use crate::capability::CapabilitySet;
use crate::classify::{CachedPact, Endpoint, LegacySessions, TransportFacts};
use crate::effect::{Effect, Effects, End, Step};
use crate::outstanding::{PendingRequests, RequestTimeout};
use crate::pact::{Pact, Party};
use crate::policy::Policy;
use crate::refusal::WireError;
use crate::time::Moment;
use crate::transcript::Transcript;
use in_flight::Serving;
use listen::Subscriptions;

pub(crate) use incoming::{cancelled_id, undeclared};
pub(crate) use outgoing::{cancelled as cancelled_message, progress_token};

/// Settings of a server for every connection.
#[derive(Clone, Debug)]
pub struct ServerTerms {
    /// Its choices.
    pub policy: Policy,
    /// Name, version and capabilities.
    pub party: Party,
    /// A hint for the model.
    pub instructions: Option<String>,
    /// Session rule for legacy HTTP clients.
    pub sessions: LegacySessions,
    /// Lifetime of a discover result.
    pub discover_ttl: Duration,
    /// Caches that may keep it.
    pub discover_scope: CacheScope,
    /// Time to the first request of a connection.
    pub open_timeout: Duration,
    /// Limit of requests in flight, in each direction.
    pub in_flight_limit: usize,
    /// Limit of subscriptions of a legacy client.
    pub subscription_limit: usize,
    /// Source of the acknowledgement of a listen request.
    pub listening: Listening,
}

/// Source of the acknowledgement of a listen request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listening {
    /// The machine: whatever was declared.
    #[default]
    Declared,
    /// The owner sends the acknowledgement itself, for example after asking an upstream server.
    Asked,
}

impl ServerTerms {
    /// The usual terms for these capabilities.
    #[must_use]
    pub fn new(info: Implementation, capabilities: CapabilitySet, policy: Policy) -> Self {
        Self {
            policy,
            party: Party::new(Some(info), capabilities),
            instructions: None,
            sessions: LegacySessions::Required,
            discover_ttl: Duration::ZERO,
            discover_scope: CacheScope::Private,
            open_timeout: Duration::from_secs(30),
            in_flight_limit: 1024,
            listening: Listening::Declared,
            subscription_limit: 1024,
        }
    }
}

/// State of a legacy connection.
///
/// ```text
///              initialize accepted            notifications/initialized
///  AwaitInit ────────────────────▶ AwaitInitialized ─────────────────▶ Ready
///   │  ▲ └── refused: no trace ──┐       │                              │
///   │  └──────────────────────────┘      │                              │
///   └───────────────────────── closed ───┴────────── closed ────────────┴──▶ Closed
/// ```
///
/// Modern requests are served beside it in every state but the last, and never change it.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Nothing was agreed.
    AwaitInit,
    /// The result was sent; the client has not confirmed.
    AwaitInitialized(Arc<Pact>),
    /// Both may use what was agreed.
    Ready(Arc<Pact>),
    /// Nothing more happens.
    Closed,
}

impl Phase {
    /// Pact of the handshake.
    #[must_use]
    pub const fn pact(&self) -> Option<&Arc<Pact>> {
        match self {
            Self::AwaitInit | Self::Closed => None,
            Self::AwaitInitialized(pact) | Self::Ready(pact) => Some(pact),
        }
    }
}

/// One connection or session, from the server's side.
#[derive(Clone, Debug)]
pub struct Server {
    terms: Arc<ServerTerms>,
    endpoint: Endpoint,
    phase: Phase,
    serving: Serving,
    asked: PendingRequests,
    last_id: Option<i64>,
    log_threshold: Option<LogLevel>,
    subscriptions: Subscriptions,
    received: bool,
    served_modern: bool,
    cache: Option<Arc<CachedPact>>,
    opened: Moment,
    transcript: Transcript,
}

/// Input of the server machine.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the common one; a box would cost an allocation per message"
)]
pub enum Input<'a> {
    /// A line, event or body arrived.
    Bytes {
        /// Exactly one message or batch.
        bytes: &'a [u8],
        /// Transport facts.
        facts: TransportFacts<'a>,
    },
    /// A message arrived that the owner has looked at already.
    Frame {
        /// The message or batch.
        frame: Frame<'a>,
        /// Transport facts.
        facts: TransportFacts<'a>,
    },
    /// The owner answers a request that it was told to serve.
    Answer {
        /// The request.
        id: Id,
        /// The raw result, or an error.
        outcome: Result<&'a str, WireError>,
    },
    /// The owner wants to ask the client something (legacy only).
    Ask {
        /// An integer larger than any used before.
        id: i64,
        /// The method.
        method: &'a str,
        /// Its raw parameters.
        params: Option<&'a str>,
        /// Its timeout.
        timeout: RequestTimeout,
    },
    /// The owner wants to tell the client something.
    Notify {
        /// Its scope.
        scope: Scope,
        /// The method.
        method: &'a str,
        /// Its raw parameters.
        params: Option<&'a str>,
    },
    /// The owner gives up one of its own requests.
    Cancel {
        /// Its number.
        id: i64,
    },
    /// Time went by.
    Tick,
    /// The connection is gone.
    Closed,
}

/// Scope of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The connection or session.
    Connection,
    /// A request in flight: progress and log messages.
    Request(Id),
}

impl Server {
    /// A server that has just been connected to.
    #[must_use]
    pub fn new(terms: Arc<ServerTerms>, now: Moment) -> Self {
        Self {
            endpoint: Endpoint::of(&terms.policy.version, terms.sessions),
            asked: PendingRequests::new(terms.in_flight_limit),
            serving: Serving::new(terms.in_flight_limit),
            terms,
            phase: Phase::AwaitInit,
            last_id: None,
            log_threshold: None,
            subscriptions: Subscriptions::default(),
            received: false,
            served_modern: false,
            cache: None,
            opened: now,
            transcript: Transcript::default(),
        }
    }

    /// Begins with the agreement that another connection with the same terms remembers.
    #[must_use]
    pub fn with_cached_pact(mut self, cache: Option<Arc<CachedPact>>) -> Self {
        self.cache = cache;
        self
    }

    /// The last modern agreement, for the next connection with the same terms.
    #[must_use]
    pub fn cached_pact(&self) -> Option<Arc<CachedPact>> {
        self.cache.clone()
    }

    /// State of the legacy connection.
    #[must_use]
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The transcript so far.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns whether the client has said anything.
    #[must_use]
    pub const fn has_received(&self) -> bool {
        self.received
    }

    /// Number of requests that the owner is serving.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.serving.len()
    }

    /// Returns whether the owner is serving this request and its client still wants the answer.
    #[must_use]
    pub fn is_serving(&self, id: &Id) -> bool {
        self.serving.get(id).is_some_and(|entry| !entry.cancelled)
    }

    /// Revision that applies to messages of the scope; none before an agreement.
    #[must_use]
    pub fn revision_in(&self, scope: &Scope) -> Option<Revision> {
        let request = match scope {
            Scope::Request(id) => self.serving.get(id).map(|entry| entry.revision),
            Scope::Connection => None,
        };
        request.or_else(|| self.phase.pact().map(|pact| pact.revision()))
    }

    /// Time of the next useful [`Input::Tick`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        if matches!(self.phase, Phase::Closed) {
            return None;
        }
        let opening = (!self.received).then(|| self.opened.after(self.terms.open_timeout));
        self.asked.next_deadline().into_iter().chain(opening).min()
    }

    /// Takes one input and says what is to be done.
    pub fn handle<'a>(mut self, input: Input<'a>, now: Moment) -> Step<'a, Self> {
        let effects = self.advance(input, now);
        Step {
            next: self,
            effects,
        }
    }

    /// The same where the machine stays: it is large, and a move of it costs more than many an input.
    pub fn advance<'a>(&mut self, input: Input<'a>, now: Moment) -> SmallVec<[Effect<'a>; 1]> {
        let mut effects = Effects::default();
        if matches!(self.phase, Phase::Closed) {
            if let Input::Bytes { .. } | Input::Frame { .. } = input {
                effects.drop("message", crate::effect::DropCause::OutOfPlace);
            }
            return effects.all();
        }
        match input {
            Input::Bytes { bytes, facts } => self.receive(bytes, &facts, now, &mut effects),
            Input::Frame { frame, facts } => self.frame(frame, &facts, now, &mut effects),
            Input::Answer { id, outcome } => self.answer(&id, outcome, &mut effects),
            Input::Ask {
                id,
                method,
                params,
                timeout,
            } => {
                self.ask(id, method, params, timeout, now, &mut effects);
            }
            Input::Notify {
                scope,
                method,
                params,
            } => {
                self.notify(&scope, method, params, &mut effects);
            }
            Input::Cancel { id } => self.cancel(id, &mut effects),
            Input::Tick => self.tick(now, &mut effects),
            Input::Closed => self.close(&mut effects),
        }
        effects.all()
    }

    fn tick(&mut self, now: Moment, effects: &mut Effects<'_>) {
        for request in self.asked.expired(now) {
            effects.push(Effect::Write(outgoing::cancelled(&request.0)));
            effects.settle(request, End::TimedOut);
        }
        if !self.received && now >= self.opened.after(self.terms.open_timeout) {
            self.close(effects);
            effects.push(Effect::HangUp);
        }
    }

    fn close(&mut self, effects: &mut Effects<'_>) {
        self.phase = Phase::Closed;
        self.serving.clear();
        for request in self.asked.drain() {
            effects.settle(request, End::ConnectionClosed);
        }
    }

    /// Revision for an error to a peer without an agreement on this message: that of the
    /// handshake, or the newest on offer.
    fn fallback_revision(&self) -> Revision {
        match self.phase.pact() {
            Some(pact) => pact.revision(),
            None => self.endpoint.newest(Era::Legacy),
        }
    }

    /// Revision for an error to a request of either era.
    fn revision_for(&self, request: &Request<'_>) -> Revision {
        match request.params.meta.protocol_version {
            Some(_) => self.modern_revision_for(request),
            None => self.fallback_revision(),
        }
    }

    /// Revision for an error to a modern request: the one that it names, or the newest on offer.
    fn modern_revision_for(&self, request: &Request<'_>) -> Revision {
        let named = request.params.meta.revision();
        named.unwrap_or_else(|| self.endpoint.newest(Era::Modern))
    }

    fn declares(&self, capability: Capability) -> bool {
        debug_assert_eq!(capability.owner(), Side::Server);
        self.terms.party.capabilities.declared().has(capability)
    }
}

/// A name, kept for the owner.
fn name(method: &str) -> Box<str> {
    Box::from(method)
}

/// Returns whether the method is one of these, without making a list of all others.
fn is(method: &str, known: Method) -> bool {
    method == known.as_str()
}
