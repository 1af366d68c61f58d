//! State machine of a client and its waiting callers: the driver without IO.

mod answers;
mod asking;
mod held;
mod serving;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::probe::ProbeFailure;
use mcpact_engine::client::{Client as Machine, ClientTerms, EraVerdict, Failure, Input, Phase};
use mcpact_engine::effect::{DropCause, Effect, End, Severity};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Method};
use mcpact_wire::id::Id;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

use self::answers::{instructions, offers_what_we_speak};
use super::changes::ChangeQueue;
use super::client_error::{AnswerError, ClientError};
use super::shared::{Agreement, Shared};
use crate::log::NegotiationLog;
use crate::model::Progress;

pub(super) use self::answers::{number, rpc_error};

/// Request of a caller.
pub(super) struct Ask {
    pub(super) ticket: u64,
    pub(super) method: String,
    pub(super) params: Option<String>,
    pub(super) patience: RequestTimeout,
    pub(super) reply: oneshot::Sender<Result<String, ClientError>>,
    pub(super) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(super) changes: Option<Arc<ChangeQueue>>,
    /// `true` if it was already resent after a lost session.
    pub(super) is_second: bool,
}

/// Command of a handle to the driver.
pub(super) enum Command {
    Ask(Ask),
    Notify {
        method: String,
        params: Option<String>,
        reply: oneshot::Sender<Result<(), ClientError>>,
    },
    Close(oneshot::Sender<()>),
}

/// Work for the transport.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    pub(super) writes: Vec<String>,
    /// Requests with a stream of their own that is to be closed.
    pub(super) abandoned: Vec<i64>,
    pub(super) concluded: Option<Arc<Pact>>,
    pub(super) negotiated: Option<Box<Negotiation>>,
    pub(super) next: Next,
    /// An answer came for no pending request.
    pub(super) is_unknown_answer: bool,
}

/// Fate of the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    #[default]
    GoOn,
    Respawn,
    TryHttpSse,
    HangUp,
}

/// Outcome for the caller that connects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub(super) verdict: Option<EraVerdict>,
}

pub(super) struct Core {
    machine: Machine,
    terms: Arc<ClientTerms>,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: mpsc::Receiver<Command>,
    given_up: mpsc::UnboundedReceiver<u64>,
    answers: mpsc::Receiver<(Id, Result<String, AnswerError>)>,
    answer: mpsc::Sender<(Id, Result<String, AnswerError>)>,
    zero: Instant,
    last_id: i64,
    pending: HashMap<i64, Ask>,
    tickets: HashMap<u64, i64>,
    /// Requests sent in an earlier session, with their deadline.
    orphans: HashMap<i64, Instant>,
    /// Requests waiting for the negotiation.
    early: Vec<Ask>,
    serving: HashMap<Id, AbortHandle>,
    opened: Option<oneshot::Sender<Result<Opened, ClientError>>>,
    closing: Vec<oneshot::Sender<()>>,
    verdict: Option<EraVerdict>,
    is_open: bool,
    has_asked_again: bool,
    timer: Pin<Box<Sleep>>,
    /// Tail of the stderr of an exited process.
    pub(super) stderr: String,
    negotiation_log: NegotiationLog,
}

/// Reason to wake the driver.
pub(super) enum Woken {
    Command(Command),
    GivenUp(u64),
    Answered(Id, Result<String, AnswerError>),
    Tick,
    /// The last handle was dropped.
    Dropped,
}

/// Capacity of the queues from handles and handlers.
const QUEUE: usize = 1024;

/// Handles' ends of the driver's queues.
pub(super) struct Handles {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) give_up: mpsc::UnboundedSender<u64>,
    pub(super) opened: oneshot::Receiver<Result<Opened, ClientError>>,
}

impl Core {
    pub(super) fn new(terms: Arc<ClientTerms>, shared: Arc<Shared>) -> (Self, Handles) {
        let (commands_in, commands) = mpsc::channel(QUEUE);
        // One entry for each call at most, and calls are bounded by the queue and the machine.
        let (give_up, given_up) = mpsc::unbounded_channel();
        let (answer, answers) = mpsc::channel(QUEUE);
        let (opened_in, opened) = oneshot::channel();
        let negotiation_log = NegotiationLog::new(terms.transport);
        let core = Self {
            machine: Machine::new(Arc::clone(&terms)),
            terms,
            shared,
            commands,
            given_up,
            answers,
            answer,
            zero: Instant::now(),
            last_id: 0,
            pending: HashMap::new(),
            tickets: HashMap::new(),
            orphans: HashMap::new(),
            early: Vec::new(),
            serving: HashMap::new(),
            opened: Some(opened_in),
            closing: Vec::new(),
            verdict: None,
            is_open: false,
            has_asked_again: false,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            stderr: String::new(),
            negotiation_log,
        };
        let handles = Handles {
            commands: commands_in,
            give_up,
            opened,
        };
        (core, handles)
    }

    fn now(&self) -> Moment {
        Moment::at(self.zero.elapsed())
    }

    /// Returns the next time at which [`tick`](Self::tick) has work.
    pub(super) fn deadline(&self) -> Option<Instant> {
        const FAR: Duration = Duration::from_secs(24 * 3600);
        let machine = self.machine.next_deadline().map(|moment| {
            let since = moment.since(Moment::ZERO);
            let ahead = since.saturating_sub(self.zero.elapsed()).min(FAR);
            Instant::now() + ahead
        });
        self.orphans.values().copied().chain(machine).min()
    }

    /// Waits for work. Cancel safe.
    pub(super) async fn woken(&mut self) -> Woken {
        let deadline = self.deadline();
        // A timer that fires too early costs one look; resetting it each time would cost more.
        if let Some(deadline) = deadline
            && (self.timer.is_elapsed() || deadline < self.timer.deadline())
        {
            self.timer.as_mut().reset(deadline);
        }
        tokio::select! {
            command = self.commands.recv() => match command {
                Some(command) => Woken::Command(command),
                None => Woken::Dropped,
            },
            Some(ticket) = self.given_up.recv() => Woken::GivenUp(ticket),
            Some((id, outcome)) = self.answers.recv() => Woken::Answered(id, outcome),
            () = &mut self.timer, if deadline.is_some() => Woken::Tick,
        }
    }

    /// Handles an event.
    pub(super) fn heed(&mut self, woken: Woken) -> Deeds {
        match woken {
            Woken::Command(command) => self.command(command),
            Woken::GivenUp(ticket) => self.give_up(ticket),
            Woken::Answered(id, outcome) => self.answered(id, outcome),
            Woken::Tick => self.tick(),
            Woken::Dropped => self.dropped(),
        }
    }

    pub(super) fn pact(&self) -> Option<&Arc<Pact>> {
        self.machine.pact()
    }

    /// Starts the negotiation, also after a restart of the process.
    pub(super) fn connected(&mut self) -> Deeds {
        self.negotiation_log.begin(&self.shared.target);
        let mut deeds = self.feed(Input::Open);
        let more = self.feed(Input::Connected);
        deeds.writes.extend(more.writes);
        deeds.next = more.next;
        deeds
    }

    /// Handles a message or batch.
    pub(super) fn receive(&mut self, bytes: &[u8], http_status: Option<u16>) -> Deeds {
        if !self.orphans.is_empty() && self.settle_orphan(bytes) {
            return Deeds::default();
        }
        let deeds = self.feed(Input::Bytes { bytes, http_status });
        if let Some(pact) = &deeds.concluded {
            self.shared.agree(Agreement {
                pact: Arc::clone(pact),
                instructions: instructions(bytes),
                transcript: self.machine.transcript().clone(),
            });
        }
        deeds
    }

    /// Handles an HTTP response without a message, before the negotiation has ended.
    pub(super) fn status(&mut self, status: u16) -> Deeds {
        self.feed(Input::Status(status))
    }

    pub(super) fn first_byte(&mut self) {
        let deeds = self.feed(Input::FirstByte);
        debug_assert!(deeds.writes.is_empty());
    }

    fn tick(&mut self) -> Deeds {
        let now = Instant::now();
        let late: Vec<i64> = self
            .orphans
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.orphans.remove(&id);
            self.settle(id, End::TimedOut);
        }
        self.feed(Input::Tick)
    }

    /// The transport is gone.
    pub(super) fn closed(&mut self) -> Deeds {
        self.feed(Input::Closed)
    }

    /// The last handle was dropped: requests in flight do not matter.
    fn dropped(&mut self) -> Deeds {
        let mut deeds = self.feed(Input::Close);
        deeds.next = Next::HangUp;
        deeds
    }

    /// The negotiation is complete and the server knows it: starts the waiting requests.
    pub(super) fn open(&mut self) -> Deeds {
        self.is_open = true;
        if let Some(opened) = self.opened.take() {
            // The caller may be gone.
            let _ = opened.send(Ok(Opened {
                verdict: self.verdict,
            }));
        }
        let mut deeds = Deeds::default();
        for ask in std::mem::take(&mut self.early) {
            deeds.writes.extend(self.ask(ask).writes);
        }
        deeds
    }

    /// As [`open`](Self::open), and restores the state of an earlier session.
    pub(super) fn open_again(&mut self) -> Deeds {
        let is_second = self.opened.is_none();
        let mut deeds = self.open();
        if is_second {
            for uri in self.shared.subscribed() {
                let params = ObjectWriter::new().text("uri", &uri).finish();
                deeds.add(self.tell(Method::ResourcesSubscribe, params));
            }
            if let Some(level) = self.shared.log_level() {
                let params = ObjectWriter::new().text("level", level.as_str()).finish();
                deeds.add(self.tell(Method::LoggingSetLevel, params));
            }
        }
        deeds
    }

    /// Fails the connection.
    pub(super) fn fail(&mut self, error: ClientError) {
        if let Some(opened) = self.opened.take() {
            let _ = opened.send(Err(error));
        }
        for ask in self.early.drain(..) {
            let _ = ask.reply.send(Err(ClientError::Closed));
        }
    }

    pub(super) fn command(&mut self, command: Command) -> Deeds {
        match command {
            Command::Ask(ask) if self.is_open => self.ask(ask),
            Command::Ask(ask) => {
                self.early.push(ask);
                Deeds::default()
            }
            Command::Notify {
                method,
                params,
                reply,
            } => self.notify(&method, params.as_deref(), reply),
            Command::Close(done) => {
                self.closing.push(done);
                self.close()
            }
        }
    }

    /// Cancels subscriptions, then closes as soon as the rest is done.
    fn close(&mut self) -> Deeds {
        let endless: Vec<i64> = self
            .pending
            .iter()
            .filter(|(_, ask)| ask.changes.is_some())
            .map(|(id, _)| *id)
            .collect();
        let mut deeds = Deeds::default();
        for id in endless {
            deeds.add(self.feed(Input::Cancel { id }));
        }
        deeds.add(self.feed(Input::Close));
        deeds
    }

    /// Returns `true` if requests are sent at once.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    fn step<'a>(&mut self, input: Input<'a>) -> impl IntoIterator<Item = Effect<'a>> + use<'a> {
        let now = self.now();
        let idle = Machine::new(Arc::clone(&self.terms));
        let step = std::mem::replace(&mut self.machine, idle).handle(input, now);
        self.machine = step.next;
        step.effects
    }

    fn feed(&mut self, input: Input<'_>) -> Deeds {
        let mut deeds = Deeds::default();
        for effect in self.step(input) {
            self.effect(effect, &mut deeds);
        }
        self.check_failure(&mut deeds);
        self.negotiation_log
            .record(self.machine.transcript(), deeds.negotiated.take());
        deeds
    }

    fn check_failure(&mut self, deeds: &mut Deeds) {
        let Phase::Failed(failure) = self.machine.phase() else {
            return;
        };
        let failure = failure.clone();
        if !self.has_asked_again && offers_what_we_speak(&failure, &self.terms) {
            // It refuses a version and lists that very version: worth one retry.
            self.has_asked_again = true;
            self.machine = Machine::new(Arc::clone(&self.terms));
            *deeds = self.connected();
            return;
        }
        let target = &self.shared.target;
        let error = match failure {
            Failure::ConnectionClosed | Failure::Probe(ProbeFailure::Closed)
                if !self.stderr.is_empty() =>
            {
                ClientError::Unreachable {
                    target: target.clone(),
                    stderr: std::mem::take(&mut self.stderr),
                    source: std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into(),
                }
            }
            failure => ClientError::failed(target, failure, self.machine.transcript()),
        };
        self.fail(error);
        deeds.next = Next::HangUp;
    }

    fn effect(&mut self, effect: Effect<'_>, deeds: &mut Deeds) {
        match effect {
            Effect::Write(text) | Effect::Reply { text, .. } => deeds.writes.push(text),
            Effect::Serve(call) => self.serve(call, deeds),
            Effect::Observe(note) => self.observe(note, deeds),
            Effect::Settled { id, end, .. } => {
                if let Some(id) = number(id.as_ref()) {
                    self.settle(id, end);
                }
            }
            Effect::Concluded(pact) => deeds.concluded = Some(pact),
            Effect::Negotiated(negotiation) => deeds.negotiated = Some(negotiation),
            Effect::Withheld(misuse) => tracing::warn!(%misuse, "message not sent"),
            Effect::Dropped(dropped) => {
                deeds.is_unknown_answer |= dropped.why == DropCause::UnknownAnswer;
                tracing::debug!(what = %dropped.what, why = ?dropped.why, "message dropped");
            }
            Effect::Report { refusal, gravity } => {
                let server = &self.shared.target;
                match gravity {
                    Severity::Warning => {
                        tracing::warn!(%server, %refusal, "the server violated the protocol")
                    }
                    Severity::Error => {
                        tracing::error!(%server, %refusal, "the server violated the protocol")
                    }
                }
            }
            Effect::Remember(verdict) => self.verdict = Some(verdict),
            Effect::Abandon(id) => deeds.abandoned.extend(number(id.as_ref())),
            Effect::Respawn => deeds.next = Next::Respawn,
            Effect::TryHttpSse => deeds.next = Next::TryHttpSse,
            Effect::HangUp => deeds.next = Next::HangUp,
        }
    }

    /// Returns `true` if the negotiated era is modern.
    pub(super) fn is_modern(&self) -> bool {
        self.pact().is_some_and(|pact| pact.era() == Era::Modern)
    }

    /// Fails all waiting callers.
    pub(super) fn finish(mut self) {
        let _ = self.feed(Input::Closed);
        let orphans: HashSet<i64> = self.pending.keys().copied().collect();
        for id in orphans {
            self.settle(id, End::ConnectionClosed);
        }
        self.fail(ClientError::Closed);
        for (_, task) in self.serving.drain() {
            task.abort();
        }
        for queue in self.shared.listeners() {
            queue.end();
        }
        for done in self.closing.drain(..) {
            let _ = done.send(());
        }
    }
}

impl Deeds {
    pub(super) fn add(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.abandoned.extend(other.abandoned);
        self.concluded = other.concluded.or(self.concluded.take());
        self.is_unknown_answer |= other.is_unknown_answer;
        if other.next != Next::GoOn {
            self.next = other.next;
        }
    }
}
