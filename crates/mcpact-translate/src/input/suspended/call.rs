//! One suspended call.
//!
//! ```text
//!  open            answer: all            the call ends
//! ------> Waiting -------------> Running ---------------> gone
//!          ^ |  \                   |
//!          | |   +- it ends --> Done --- told, expired --> gone
//!          | +- answer: some        |
//!          +------------------------+ ask
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Revision};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{
    ResumeOutcome, Round, ServerQuestion, SuspendLimits, SuspendOutcome, not_shown, refused,
};
use crate::input::answer::{Outcome, ServerAnswer, fits, to_server};
use crate::input::claims::{Binding, Claims, SuspendedCallId, seconds};

#[derive(Clone, Debug)]
pub(super) struct Pending {
    key: Box<str>,
    pub(super) question: ServerQuestion,
    /// The client knows of it.
    is_shown: bool,
}

impl Pending {
    /// Answer of the client; none to a question that it was not shown.
    fn answer_in<'r>(&self, given: &Object<'r>) -> Option<&'r str> {
        given.get(&self.key).filter(|_| self.is_shown)
    }
}

/// State of a suspended call.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// The client holds the state of the current round; the server waits.
    Waiting(Vec<Pending>),
    /// Requests of the client wait for the server, all with the same raw answers.
    Running { responses: Box<str>, waiters: u32 },
    /// The outcome waits for the client.
    Done(Outcome),
}

#[derive(Clone, Debug)]
pub(super) struct SuspendedCall {
    pub(super) binding: Binding,
    upstream: Revision,
    pub(super) round: u32,
    /// Questions so far, so that no two keys are alike.
    asked: u32,
    pub(super) expires: Moment,
    /// End of the time for the whole call.
    ends: Moment,
    /// Start of the latest wait for the client.
    waits_since: Moment,
    pub(super) state: State,
}

impl SuspendedCall {
    /// A call that asks for the first time.
    pub(super) fn open(
        id: SuspendedCallId,
        binding: Binding,
        upstream: Revision,
        questions: Vec<ServerQuestion>,
        limits: SuspendLimits,
        now: Moment,
    ) -> (Self, Round) {
        let mut call = Self {
            binding,
            upstream,
            round: 0,
            asked: 0,
            expires: now,
            ends: now.after(limits.call),
            waits_since: now,
            state: State::Waiting(Vec::new()),
        };
        let round = call.next_round(id, questions, limits.ttl, now);
        (call, round)
    }

    /// While a request of the client waits, its own deadline counts.
    pub(super) const fn deadline(&self) -> Option<Moment> {
        match self.state {
            State::Waiting(_) | State::Done(_) => Some(self.expires),
            State::Running { .. } => None,
        }
    }

    pub(super) fn is_expired(&self, now: Moment) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Start of the wait for the client, if the call waits for it.
    pub(super) const fn waits_since(&self) -> Option<Moment> {
        match self.state {
            State::Waiting(_) => Some(self.waits_since),
            State::Running { .. } | State::Done(_) => None,
        }
    }

    /// The server asks again.
    pub(super) fn ask(
        &mut self,
        id: SuspendedCallId,
        questions: Vec<ServerQuestion>,
        limits: SuspendLimits,
        now: Moment,
    ) -> SuspendOutcome {
        match &self.state {
            State::Running { .. } => {
                SuspendOutcome::Asked(self.next_round(id, questions, limits.ttl, now))
            }
            State::Waiting(pending) if pending.len() + questions.len() <= limits.questions => {
                self.add(questions);
                SuspendOutcome::Held
            }
            State::Waiting(_) | State::Done(_) => SuspendOutcome::Full(not_shown(questions)),
        }
    }

    /// Opens the next round; the state of the one before is worthless from here on.
    fn next_round(
        &mut self,
        id: SuspendedCallId,
        questions: Vec<ServerQuestion>,
        ttl: Duration,
        now: Moment,
    ) -> Round {
        self.round = self.round.saturating_add(1);
        self.expires = now.after(ttl).min(self.ends);
        if !matches!(self.state, State::Waiting(_)) {
            self.state = State::Waiting(Vec::new());
            self.waits_since = now;
        }
        self.add(questions);
        self.show(id)
    }

    fn add(&mut self, questions: Vec<ServerQuestion>) {
        let State::Waiting(pending) = &mut self.state else {
            return;
        };
        for question in questions {
            self.asked = self.asked.saturating_add(1);
            let key = format!("{}-{}", noun(question.method), self.asked).into();
            pending.push(Pending {
                key,
                question,
                is_shown: false,
            });
        }
    }

    fn show(&mut self, call: SuspendedCallId) -> Round {
        let pending = match &mut self.state {
            State::Waiting(pending) => pending.as_mut_slice(),
            State::Running { .. } | State::Done(_) => &mut [],
        };
        let requests = pending
            .iter_mut()
            .fold(ObjectWriter::new(), |out, pending| {
                pending.is_shown = true;
                out.raw(&pending.key, &pending.question.request)
            });
        Round {
            claims: Claims {
                call,
                binding: self.binding,
                round: self.round,
                expires: seconds(self.expires),
            },
            input_requests: requests.finish(),
        }
    }

    /// Takes the client's answers; the error says which of them is none.
    pub(super) fn answer(
        &mut self,
        id: SuspendedCallId,
        responses: Option<&str>,
        ttl: Duration,
        now: Moment,
    ) -> Result<ResumeOutcome, String> {
        let raw = responses.unwrap_or("{}");
        let given = Object::parse(raw).map_err(|fault| format!("`inputResponses`: {fault}"))?;
        let State::Waiting(pending) = &mut self.state else {
            return Ok(refused("the round is over"));
        };
        let is_bad = |pending: &&Pending| {
            let answer = pending.answer_in(&given);
            answer.is_some_and(|raw| !fits(pending.question.method, raw))
        };
        if let Some(bad) = pending.iter().find(is_bad) {
            let (key, method) = (&bad.key, bad.question.method);
            return Err(format!("`inputResponses.{key}` does not answer `{method}`"));
        }
        let mut answers = Vec::new();
        pending.retain(|pending| {
            let Some(raw) = pending.answer_in(&given) else {
                return true;
            };
            answers.push(ServerAnswer {
                id: pending.question.id.clone(),
                outcome: to_server(pending.question.method, raw, self.upstream),
            });
            false
        });
        let missing = self.after(id, responses, answers.len(), ttl, now);
        Ok(ResumeOutcome::Go { answers, missing })
    }

    /// Next round after so many answers. Without any, the client gains no time.
    fn after(
        &mut self,
        id: SuspendedCallId,
        responses: Option<&str>,
        answered: usize,
        ttl: Duration,
        now: Moment,
    ) -> Option<Round> {
        if matches!(&self.state, State::Waiting(pending) if pending.is_empty()) {
            let responses = Box::from(responses.unwrap_or_default());
            self.state = State::Running {
                responses,
                waiters: 1,
            };
            return None;
        }
        let expires = self.expires;
        let mut round = self.next_round(id, Vec::new(), ttl, now);
        if answered == 0 {
            self.expires = expires;
            round.claims.expires = seconds(expires);
        }
        Some(round)
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a server asks with three methods"
)]
const fn noun(method: Method) -> &'static str {
    match method {
        Method::ElicitationCreate => "elicitation",
        Method::SamplingCreateMessage => "sampling",
        _ => "roots",
    }
}
