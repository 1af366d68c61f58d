//! Background job of a suspended call.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use mcpact_spec::{Era, Method, Revision};
use mcpact_translate::input::{CallEnd, Outcome, ServerAnswer, ServerQuestion, SuspendedCallId};
use mcpact_translate::progress::Progress;
use mcpact_wire::model::error::ErrorBody;
use tokio::sync::{mpsc, oneshot};

use mcpact::connection::{CallEvent, ServerNotification, ServerResponse};

use crate::error::ServeError;
use crate::exchange::{Inbound, refusal};
use crate::suspended;
use crate::suspended::digest::binding;
use crate::suspended::registry::SuspendedHandle;
use crate::suspended::{CallOutcome, Open};
use crate::upstream::UpstreamServer;

/// Time limit for the server to end a call after its client failed to resume it.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// Time limit for a disconnected client to return with the same answers.
const GRACE: Duration = Duration::from_secs(2);

/// Message to the background job of a suspended call.
#[derive(Debug)]
pub(crate) enum CallMessage {
    /// The client resumed the call: answers for the server, and the request that waits from now on.
    Resumed(Vec<ServerAnswer>, Option<Box<Seat>>),
    /// A waiting request was cancelled.
    Left,
    /// The client did not resume the call in time.
    Expired(Vec<ServerAnswer>),
}

/// Request that waits for the outcome of a suspended call.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) inbound: Inbound,
    pub(crate) progress: Progress,
    pub(crate) reply: oneshot::Sender<Result<ByteString, ServeError>>,
}

/// Background job of one suspended call. Job and call end together.
pub(crate) struct SuspendedCall {
    id: SuspendedCallId,
    server: Arc<UpstreamServer>,
    open: Open,
    seats: Vec<Seat>,
    /// Latest progress that arrived while no request waited, for the next one.
    unheard: Option<ServerNotification>,
    words: mpsc::UnboundedReceiver<CallMessage>,
}

impl SuspendedCall {
    pub(crate) fn start(server: &Arc<UpstreamServer>, id: SuspendedCallId, open: Open) {
        // Unbounded, but limited in effect: one message for each accepted client request, which the suspend limits
        // bound.
        let (say, words) = mpsc::unbounded_channel();
        let connection = suspended::connection(&open.exchange);
        server
            .suspended
            .keepers()
            .insert(id, SuspendedHandle { say, connection });
        let keeper = Self {
            id,
            server: Arc::clone(server),
            open,
            seats: Vec::new(),
            unheard: None,
            words,
        };
        tokio::spawn(keeper.run());
    }

    async fn run(mut self) {
        loop {
            let goes_on = tokio::select! {
                event = self.open.event() => self.take(event).await,
                Some(word) = self.words.recv() => self.heed(word).await,
            };
            if !goes_on {
                break;
            }
        }
        let Self {
            id, server, open, ..
        } = self;
        // The call is cancelled at the server before its entry is released.
        drop(open);
        server.suspended.release(id);
    }

    async fn take(&mut self, event: Option<CallEvent>) -> bool {
        if let Some(CallEvent::Notification(note)) = &event
            && let Some(question) = note.cancelled_request()
        {
            let mut suspend_limits = self.server.suspended.suspend_limits();
            suspend_limits.withdrawn(self.id, question.as_ref());
        }
        if self.seats.is_empty() {
            self.unheard = newest(self.unheard.take(), event.as_ref());
        }
        match self.open.take(event, &mut self.seats).await {
            None => true,
            Some(CallOutcome::Asked(questions)) => self.asked(questions).await,
            Some(CallOutcome::Ended(reply)) => self.ended(reply).await,
        }
    }

    /// Processes all pending messages. Returns true if the job continues.
    async fn catch_up(&mut self) -> bool {
        while let Ok(word) = self.words.try_recv() {
            if !self.heed(word).await {
                return false;
            }
        }
        true
    }

    async fn heed(&mut self, word: CallMessage) -> bool {
        match word {
            CallMessage::Resumed(answers, seat) => {
                if let Some(seat) = seat {
                    self.seat(*seat).await;
                }
                self.open.unanswered.answer(answers).await;
                true
            }
            CallMessage::Left => {
                let now = self.server.clock.now();
                let is_last = self
                    .server
                    .suspended
                    .suspend_limits()
                    .waiter_left(self.id, now);
                !is_last
            }
            CallMessage::Expired(answers) => {
                self.open.unanswered.answer(answers).await;
                // Dropping the call afterwards cancels it if it has not ended.
                let _ = tokio::time::timeout(LAST_WORDS, self.end()).await;
                false
            }
        }
    }

    async fn seat(&mut self, mut seat: Seat) {
        if let Some(note) = self.unheard.take() {
            seat.inbound.tell(&note, &mut seat.progress).await;
        }
        self.seats.push(seat);
    }

    /// Waits for the end of the call and discards all events before it.
    async fn end(&mut self) {
        loop {
            if let Some(CallEvent::Response(_) | CallEvent::Failed(_)) = self.open.event().await {
                return;
            }
        }
    }

    /// Processes further questions of the server.
    async fn asked(&mut self, questions: Vec<ServerQuestion>) -> bool {
        let revision = self.open.exchange.upstream();
        let binding = binding(&self.open.exchange.inbound);
        let parked = loop {
            {
                let mut suspend_limits = self.server.suspended.suspend_limits();
                // Messages are sent under the same lock, so every resumed request has its seat.
                if self.words.is_empty() {
                    let now = self.server.clock.now();
                    break suspend_limits.suspend(self.id, binding, revision, questions, now);
                }
            }
            if !self.catch_up().await {
                return false;
            }
        };
        if let Some(round) = suspended::begun(&mut self.open, parked).await {
            let asked = self.server.suspended.asked(&round);
            self.deliver(&asked);
        }
        true
    }

    async fn ended(&mut self, reply: Result<ServerResponse, ServeError>) -> bool {
        let outcome = suspended::conclude(&self.server, &self.open, reply);
        let raw = match &outcome {
            Ok(raw) => Outcome::Result(raw.to_string()),
            Err(error) => Outcome::Error(error.to_wire().encode()),
        };
        let ended = loop {
            {
                let mut suspend_limits = self.server.suspended.suspend_limits();
                if self.words.is_empty() {
                    break suspend_limits.ended(self.id, raw, self.server.clock.now());
                }
            }
            if !self.catch_up().await {
                return false;
            }
        };
        match ended {
            CallEnd::Deliver(_) => self.deliver(&outcome),
            CallEnd::Kept | CallEnd::Dropped => {}
        }
        false
    }

    fn deliver(&mut self, outcome: &Result<ByteString, ServeError>) {
        for seat in self.seats.drain(..) {
            // The waiting request may have been cancelled.
            let _ = seat.reply.send(outcome.clone());
        }
    }

    /// Reports a cancelled request to the job, after a grace period.
    pub(crate) fn leave(say: mpsc::UnboundedSender<CallMessage>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                let _ = say.send(CallMessage::Left);
            });
        }
    }
}

/// Returns the latest progress notification.
fn newest(
    known: Option<ServerNotification>,
    event: Option<&CallEvent>,
) -> Option<ServerNotification> {
    match event {
        Some(CallEvent::Notification(note)) if note.method == Method::Progress => {
            Some(note.clone())
        }
        _ => known,
    }
}

/// Converts a stored outcome to the response for a modern client.
pub(crate) fn told(outcome: Outcome) -> Result<ByteString, ServeError> {
    match outcome {
        Outcome::Result(raw) => Ok(raw.into()),
        Outcome::Error(raw) => Err(match ErrorBody::parse(&raw) {
            Some(body) => refusal(
                body.code,
                body.message.into_owned(),
                body.data.map(str::to_owned),
                Revision::newest(Era::Modern),
            ),
            None => refusal(-32603, raw, None, Revision::newest(Era::Modern)),
        }),
    }
}
