//! Calls of modern clients that a legacy server does not finish before it is answered.
//!
//! A call is suspended by its first question until it has an outcome. While it waits for
//! the client it expires by itself; while requests of the client wait for the call, its owner ends
//! it with [`SuspendedCalls::ended`] or [`SuspendedCalls::waiter_left`].

mod call;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::model::error;
use mcpact_wire::raw::ObjectWriter;

use super::answer::{Outcome, ServerAnswer, unanswered};
use super::claims::{Binding, Claims, SuspendedCallId, seconds};
use super::ending::{ended_for_others, invalid_answers, invalid_state};
use call::{State, SuspendedCall};

/// Cause of a call that was ended in favour of others. Its client learns it.
const ENDED_FOR_OTHERS: &str = "the call was ended in favour of queued calls";

/// Limits of suspended calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendLimits {
    /// Time for one round.
    pub ttl: Duration,
    /// Time for all rounds of a call, from its first question on.
    pub call: Duration,
    /// Time for which the end of a call is remembered.
    pub tombstone: Duration,
    /// Suspended calls of one principal.
    pub per_principal: usize,
    /// Suspended calls in all; as many ends are remembered.
    pub total: usize,
    /// Questions of one call that wait at the same time.
    pub questions: usize,
    /// Requests of the client that may wait for the same answer.
    pub waiters: u32,
}

impl Default for SuspendLimits {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(300),
            call: Duration::from_secs(600),
            tombstone: Duration::from_secs(60),
            per_principal: 32,
            total: 1024,
            questions: 16,
            waiters: 4,
        }
    }
}

/// A legacy server's request that the client shall answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerQuestion {
    /// The server's id.
    pub id: Id,
    /// Its method.
    pub method: Method,
    /// The `InputRequest` for the client, from [`question_to_modern`](super::question_to_modern).
    pub request: String,
}

/// Result for the client: [`input_required`] with these claims, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The claims to seal.
    pub claims: Claims,
    /// The raw `inputRequests`.
    pub input_requests: String,
}

/// Outcome of a server's questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuspendOutcome {
    /// Every request of the client that waits for this call is answered with the round.
    Asked(Round),
    /// No request of the client waits; the questions come with its next one.
    Held,
    /// There is no room: the server gets these answers at once.
    Full(Vec<ServerAnswer>),
}

/// Outcome of a client's retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// Nothing happens.
    Refused {
        /// Error for the client.
        error: WireError,
        /// Cause for the log.
        cause: &'static str,
    },
    /// The call has ended: this is its outcome, delivered once.
    Done(Outcome),
    /// The same answers came before; the request waits with the first one.
    Join,
    /// The server gets answers.
    Go {
        /// The answers.
        answers: Vec<ServerAnswer>,
        /// Questions that are still open. Without any, the request waits for the call.
        missing: Option<Round>,
    },
}

/// Destination of the outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// Requests of the client wait for it.
    Deliver(Outcome),
    /// It is kept until the client asks.
    Kept,
    /// Dropped: no request will ask for it.
    Dropped,
}

/// A call of a client that did not come back. The server gets the answers; if the call does not end
/// soon after, it is to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredCall {
    /// The call, which is gone.
    pub call: SuspendedCallId,
    /// Answers for the server.
    pub answers: Vec<ServerAnswer>,
}

/// All suspended calls.
#[derive(Clone, Debug)]
pub struct SuspendedCalls {
    limits: SuspendLimits,
    calls: BTreeMap<SuspendedCallId, SuspendedCall>,
    /// Causes of ended calls, for the log.
    ended: BTreeMap<SuspendedCallId, (Moment, &'static str)>,
}

/// The result that asks a modern client.
#[must_use]
pub fn input_required(input_requests: &str, state: &str) -> String {
    ObjectWriter::new()
        .text("resultType", "input_required")
        .raw("inputRequests", input_requests)
        .text("requestState", state)
        .finish()
}

impl SuspendedCalls {
    /// No calls yet.
    #[must_use]
    pub const fn new(limits: SuspendLimits) -> Self {
        Self {
            limits,
            calls: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Calls that ask for the first time from here on may take so long in all.
    pub const fn limit_calls(&mut self, call: Duration) {
        self.limits.call = call;
    }

    /// Returns the number of suspended calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the calls whose principals have no room for another one.
    #[must_use]
    pub fn without_room(&self) -> BTreeSet<SuspendedCallId> {
        let is_total = self.calls.len() >= self.limits.total;
        let mut counts = BTreeMap::<_, usize>::new();
        for call in self.calls.values() {
            *counts.entry(call.binding.principal).or_default() += 1;
        }
        let is_full = |principal| {
            let count = counts.get(principal).copied().unwrap_or_default();
            is_total || count >= self.limits.per_principal
        };
        let calls = self.calls.iter();
        let full = calls.filter(|(_, call)| is_full(&call.binding.principal));
        full.map(|(id, _)| *id).collect()
    }

    /// A server asks during a call. `id` is new for a call that asks for the first time, and stays
    /// the id of that call; `upstream` is the server's revision.
    pub fn suspend(
        &mut self,
        id: SuspendedCallId,
        binding: Binding,
        upstream: Revision,
        questions: Vec<ServerQuestion>,
        now: Moment,
    ) -> SuspendOutcome {
        let limits = self.limits;
        if questions.len() > limits.questions {
            return SuspendOutcome::Full(not_shown(questions));
        }
        if let Some(call) = self.calls.get_mut(&id) {
            return call.ask(id, questions, limits, now);
        }
        if !self.has_room(&binding) {
            return SuspendOutcome::Full(not_shown(questions));
        }
        let (call, round) = SuspendedCall::open(id, binding, upstream, questions, limits, now);
        self.calls.insert(id, call);
        SuspendOutcome::Asked(round)
    }

    fn has_room(&self, binding: &Binding) -> bool {
        let of_principal = self
            .calls
            .values()
            .filter(|call| call.binding.principal == binding.principal);
        self.calls.len() < self.limits.total && of_principal.count() < self.limits.per_principal
    }

    /// A client comes back with a state that was opened and is ours. `binding` is that of its
    /// request, `responses` are the raw `inputResponses`.
    pub fn resume(
        &mut self,
        claims: &Claims,
        binding: &Binding,
        responses: Option<&str>,
        now: Moment,
    ) -> ResumeOutcome {
        if claims.binding != *binding {
            return refused("the state belongs to another caller or call");
        }
        let limits = self.limits;
        let Some(call) = self.calls.get_mut(&claims.call) else {
            return match self.ended.get(&claims.call) {
                Some((_, ENDED_FOR_OTHERS)) => ResumeOutcome::Refused {
                    error: ended_for_others(),
                    cause: ENDED_FOR_OTHERS,
                },
                Some((_, cause)) => refused(cause),
                None => refused("there is no such suspended call"),
            };
        };
        if call.binding != claims.binding {
            return refused("the state belongs to another suspended call");
        }
        if claims.round != call.round {
            return refused("the state is of an earlier round");
        }
        if claims.expires < seconds(now) || call.is_expired(now) {
            return refused("the state has expired");
        }
        match &mut call.state {
            State::Running {
                responses: first,
                waiters,
            } => {
                if **first != *responses.unwrap_or_default() {
                    return refused("the round was answered differently before");
                }
                if *waiters >= limits.waiters {
                    return refused("too many requests wait for the same answer");
                }
                *waiters += 1;
                ResumeOutcome::Join
            }
            State::Waiting(_) => call
                .answer(claims.call, responses, limits.ttl, now)
                .unwrap_or_else(|fault| ResumeOutcome::Refused {
                    error: invalid_answers(fault),
                    cause: "the answers do not fit the questions",
                }),
            State::Done(_) => match self.remove(claims.call, "the outcome was told before", now) {
                Some(State::Done(outcome)) => ResumeOutcome::Done(outcome),
                Some(State::Waiting(_) | State::Running { .. }) | None => refused("no outcome"),
            },
        }
    }

    /// A suspended call ended by itself.
    pub fn ended(&mut self, id: SuspendedCallId, outcome: Outcome, now: Moment) -> CallEnd {
        let Some(call) = self.calls.get_mut(&id) else {
            return CallEnd::Dropped;
        };
        match &mut call.state {
            State::Waiting(_) => {
                call.state = State::Done(outcome);
                CallEnd::Kept
            }
            State::Running { .. } => {
                self.remove(id, "the outcome was told before", now);
                CallEnd::Deliver(outcome)
            }
            State::Done(_) => CallEnd::Dropped,
        }
    }

    /// The server no longer wants an answer; it gets none.
    pub fn withdrawn(&mut self, id: SuspendedCallId, question: IdRef<'_>) {
        if let Some(State::Waiting(pending)) = self.calls.get_mut(&id).map(|call| &mut call.state) {
            pending.retain(|pending| pending.question.id.as_ref() != question);
        }
    }

    /// A request of the client that waited is gone. Whether it was the last one, so that the call
    /// is to be cancelled; its call is gone then.
    pub fn waiter_left(&mut self, id: SuspendedCallId, now: Moment) -> bool {
        match self.calls.get_mut(&id).map(|call| &mut call.state) {
            Some(State::Running { waiters, .. }) if *waiters > 1 => {
                *waiters -= 1;
                false
            }
            Some(State::Running { .. }) => {
                self.remove(id, "the client cancelled the call", now);
                true
            }
            Some(State::Waiting(_) | State::Done(_)) | None => false,
        }
    }

    /// Frees expired calls.
    pub fn expire(&mut self, now: Moment) -> Vec<ExpiredCall> {
        self.ended.retain(|_, (until, _)| *until > now);
        let is_expired = |_, call: &SuspendedCall| call.is_expired(now);
        self.free(is_expired, "the state has expired", now)
    }

    /// Frees the selected calls, which no client can continue. A call that a request waits for goes on.
    pub fn abandon(
        &mut self,
        is_meant: impl Fn(SuspendedCallId) -> bool,
        now: Moment,
    ) -> Vec<ExpiredCall> {
        let is_left =
            |id, call: &SuspendedCall| !matches!(call.state, State::Running { .. }) && is_meant(id);
        self.free(is_left, "no client can come back", now)
    }

    /// Frees the selected call that has waited longest for its client, if it has waited for longer than `grace`.
    pub fn end_oldest(
        &mut self,
        is_meant: impl Fn(SuspendedCallId) -> bool,
        grace: Duration,
        now: Moment,
    ) -> Option<ExpiredCall> {
        let waiting = self.calls.iter().filter(|(id, _)| is_meant(**id));
        let waiting =
            waiting.filter_map(|(id, call)| Some((call.waits_since()?, *id, call.expires)));
        let (since, oldest, expires) = waiting.min_by_key(|(since, ..)| *since)?;
        if since.after(grace) >= now {
            return None;
        }
        let ended = self.free(|id, _| id == oldest, ENDED_FOR_OTHERS, now).pop();
        if let Some((until, _)) = self.ended.get_mut(&oldest) {
            // As long as the client may come back.
            *until = expires.max(*until);
        }
        ended
    }

    fn free(
        &mut self,
        is_due: impl Fn(SuspendedCallId, &SuspendedCall) -> bool,
        cause: &'static str,
        now: Moment,
    ) -> Vec<ExpiredCall> {
        let due = self.calls.iter().filter(|(id, call)| is_due(**id, call));
        let due: Vec<SuspendedCallId> = due.map(|(id, _)| *id).collect();
        let mut expired = Vec::new();
        for call in due {
            if let Some(State::Waiting(pending)) = self.remove(call, cause, now) {
                let questions = pending.into_iter().map(|pending| pending.question);
                let answers = give_up(questions);
                expired.push(ExpiredCall { call, answers });
            }
        }
        expired
    }

    /// Time of the next useful [`expire`](Self::expire).
    #[cfg(test)]
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        let calls = self.calls.values().filter_map(SuspendedCall::deadline);
        let ended = self.ended.values().map(|(until, _)| *until);
        calls.chain(ended).min()
    }

    /// Takes a call away and remembers why.
    fn remove(&mut self, id: SuspendedCallId, cause: &'static str, now: Moment) -> Option<State> {
        let call = self.calls.remove(&id)?;
        if self.ended.len() >= self.limits.total {
            let oldest = self.ended.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.ended.remove(&oldest);
            }
        }
        let until = now.after(self.limits.tombstone);
        self.ended.insert(id, (until, cause));
        Some(call.state)
    }
}

fn give_up(questions: impl IntoIterator<Item = ServerQuestion>) -> Vec<ServerAnswer> {
    let answer = |question: ServerQuestion| ServerAnswer {
        id: question.id,
        outcome: unanswered(question.method),
    };
    questions.into_iter().map(answer).collect()
}

/// Answers for questions that the client never gets. An error, because the user has not cancelled anything.
fn not_shown(questions: impl IntoIterator<Item = ServerQuestion>) -> Vec<ServerAnswer> {
    let why = "the question was not shown: too many questions wait for the client";
    let answer = |question: ServerQuestion| ServerAnswer {
        id: question.id,
        outcome: Outcome::Error(error::encode(ErrorCode::InternalError.code(), why, None)),
    };
    questions.into_iter().map(answer).collect()
}

fn refused(cause: &'static str) -> ResumeOutcome {
    ResumeOutcome::Refused {
        error: invalid_state(),
        cause,
    }
}
