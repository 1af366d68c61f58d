//! Background job of a suspended call.

use std::sync::Arc;
use std::time::Duration;

use mcpact_spec::Method;
use mcpact_translate::input::{
    CallEnd, ServerAnswer, ServerQuestion, SuspendedCallId, SuspendedCalls,
};
use mcpact_translate::progress::Progress;
use tokio::sync::{mpsc, oneshot};

use mcpact::connection::{CallEvent, RawResult, ServerNotification, ServerResponse};

use crate::error::ServeError;
use crate::exchange::Inbound;
use crate::suspended::registry::SuspendedHandle;
use crate::suspended::{self, CallOutcome, OpenCall};
use crate::tasks::stored_outcome;
use crate::upstream::UpstreamServer;

/// Time limit for the server to end a call after its client failed to resume it.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Message to the background job of a suspended call.
#[derive(Debug)]
pub(crate) enum CallMessage {
    /// The client resumed the call: answers for the server, and the request that waits from now on.
    Resumed(Vec<ServerAnswer>, Option<Box<Waiter>>),
    /// A waiting request was cancelled.
    Left,
    /// The client did not resume the call in time.
    Expired(Vec<ServerAnswer>),
}

/// Request that waits for the outcome of a suspended call.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) inbound: Inbound,
    pub(crate) progress: Progress,
    pub(crate) response: oneshot::Sender<Result<RawResult, ServeError>>,
}

/// Background job of one suspended call. Job and call end together.
pub(crate) struct SuspendedCall {
    id: SuspendedCallId,
    server: Arc<UpstreamServer>,
    open: OpenCall,
    waiters: Vec<Waiter>,
    /// Latest progress that arrived while no request waited, for the next one.
    progress: Option<ServerNotification>,
    messages: mpsc::UnboundedReceiver<CallMessage>,
}

impl SuspendedCall {
    pub(crate) fn start(server: &Arc<UpstreamServer>, id: SuspendedCallId, mut open: OpenCall) {
        open.exchange.set_suspended(true);
        // Unbounded, but limited in effect: one message for each accepted client request, which the suspend limits
        // bound.
        let (sender, messages) = mpsc::unbounded_channel();
        let connection = suspended::required_connection(&open.exchange);
        let handle = SuspendedHandle {
            sender,
            connection,
            takes_turn: open.exchange.turn.is_some(),
        };
        server.suspended.handles().insert(id, handle);
        let call = Self {
            id,
            server: Arc::clone(server),
            open,
            waiters: Vec::new(),
            progress: None,
            messages,
        };
        tokio::spawn(call.run());
    }

    async fn run(mut self) {
        let mut continues = true;
        while continues {
            continues = tokio::select! {
                event = self.open.event() => self.process_event(event).await,
                Some(message) = self.messages.recv() => self.process_message(message).await,
            };
        }
        // The call is cancelled at the server before its entry is removed. The channel closes last.
        drop(self.open);
        self.server.suspended.handles().remove(&self.id);
    }

    /// Returns true if the job continues.
    async fn process_event(&mut self, event: Option<CallEvent>) -> bool {
        if let Some(CallEvent::Notification(note)) = &event {
            if let Some(question) = note.cancelled_request() {
                let mut calls = self.server.suspended.calls();
                calls.withdrawn(self.id, question.as_ref());
            }
            if self.waiters.is_empty() && note.method == Method::Progress {
                self.progress = Some(note.clone());
            }
        }
        match self.open.process(event, Some(&mut self.waiters)).await {
            None => true,
            Some(CallOutcome::Asked(questions)) => self.asked(questions).await,
            Some(CallOutcome::Ended(reply)) => {
                self.ended(reply).await;
                false
            }
        }
    }

    /// Processes all pending messages, then runs a step. Messages are sent under the same lock, so every resumed
    /// request is a waiter by then. Returns `None` if the job ends instead.
    async fn after_messages<T>(
        &mut self,
        step: impl FnOnce(&mut SuspendedCalls) -> T,
    ) -> Option<T> {
        loop {
            {
                let mut calls = self.server.suspended.calls();
                if self.messages.is_empty() {
                    return Some(step(&mut calls));
                }
            }
            while let Ok(message) = self.messages.try_recv() {
                if !self.process_message(message).await {
                    return None;
                }
            }
        }
    }

    /// Returns true if the job continues.
    async fn process_message(&mut self, message: CallMessage) -> bool {
        match message {
            CallMessage::Resumed(answers, waiter) => {
                if let Some(mut waiter) = waiter {
                    if let Some(note) = self.progress.take() {
                        waiter.inbound.notify(&note, &mut waiter.progress).await;
                    }
                    self.waiters.push(*waiter);
                    self.open.exchange.set_suspended(false);
                }
                self.open.unanswered.answer(answers).await;
                true
            }
            CallMessage::Left => {
                let now = self.server.clock.now();
                !self.server.suspended.calls().waiter_left(self.id, now)
            }
            CallMessage::Expired(answers) => {
                self.open.exchange.set_suspended(false);
                self.open.unanswered.answer(answers).await;
                // Dropping the call afterwards cancels it if it has not ended.
                let ended = async {
                    let mut event = None;
                    while !matches!(event, Some(CallEvent::Response(_) | CallEvent::Failed(_))) {
                        event = self.open.event().await;
                    }
                };
                let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
                false
            }
        }
    }

    /// Processes further questions of the server. Returns true if the job continues.
    async fn asked(&mut self, questions: Vec<ServerQuestion>) -> bool {
        let (id, clock) = (self.id, self.server.clock);
        let revision = self.open.exchange.upstream();
        let binding = suspended::binding(&self.open.exchange.inbound);
        let suspend = |calls: &mut SuspendedCalls| {
            calls.suspend(id, binding, revision, questions, clock.now())
        };
        let Some(outcome) = self.after_messages(suspend).await else {
            return false;
        };
        if let Some(round) = self.open.round(outcome).await {
            self.open.exchange.set_suspended(true);
            let request = self.server.suspended.input_request(&round);
            self.respond(&request);
        }
        true
    }

    /// Processes the end of the call.
    async fn ended(&mut self, reply: Result<ServerResponse, ServeError>) {
        let response = suspended::conclude(&self.server, &self.open, reply);
        let (id, clock) = (self.id, self.server.clock);
        let stored = stored_outcome(&response);
        let end = |calls: &mut SuspendedCalls| calls.ended(id, stored, clock.now());
        if let Some(CallEnd::Deliver(_)) = self.after_messages(end).await {
            self.respond(&response);
        }
    }

    fn respond(&mut self, response: &Result<RawResult, ServeError>) {
        for waiter in self.waiters.drain(..) {
            // The waiting request may have been cancelled.
            let _ = waiter.response.send(response.clone());
        }
    }
}
