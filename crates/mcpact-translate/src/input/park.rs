//! Calls of modern clients that a legacy server does not finish before it is answered.
//!
//! A park begins with the first question of a call and ends with its outcome. While it waits for
//! the client it expires by itself; while requests of the client wait for the call, its owner ends
//! it with [`Parks::ended`] or [`Parks::waiter_left`].

mod call;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Revision};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::ObjectWriter;

use super::answer::{Outcome, ServerAnswer, unanswered};
use super::claims::{Binding, Claims, ParkId, seconds};
use super::ending::{invalid_answers, invalid_state};
use call::{Park, State};

/// How many calls may be parked, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkLimits {
    /// How long a client may take for one round.
    pub ttl: Duration,
    /// How long a call may take with all its rounds, from when it asks for the first time.
    pub call: Duration,
    /// How long the end of a park is remembered.
    pub tombstone: Duration,
    /// Parks of one principal.
    pub per_principal: usize,
    /// Parks of all; as many ends are remembered.
    pub total: usize,
    /// Questions of one park that wait at the same time.
    pub questions: usize,
    /// Requests of the client that may wait for the same answer.
    pub waiters: u32,
}

impl Default for ParkLimits {
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
    /// The `InputRequest` for the client, from [`raise_question`](super::raise_question).
    pub request: String,
}

/// What the client is to be sent: [`input_required`] with these claims, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The claims to seal.
    pub claims: Claims,
    /// The raw `inputRequests`.
    pub input_requests: String,
}

/// What became of a server's questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parked {
    /// Every request of the client that waits for this call is answered with the round.
    Asked(Round),
    /// No request of the client waits; the questions come with its next one.
    Held,
    /// There is no room: the server gets these answers at once.
    Full(Vec<ServerAnswer>),
}

/// What a client's retry comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Nothing happens.
    Refused {
        /// What the client sees.
        error: WireError,
        /// What the log says.
        cause: &'static str,
    },
    /// The call has ended: this is its outcome, and the only time that it is told.
    Done(Outcome),
    /// The same answers came before; the request waits with the first one.
    Join,
    /// The server gets answers.
    Go {
        /// The answers.
        answers: Vec<ServerAnswer>,
        /// What is still to be asked. If there is nothing, the request waits for the call.
        missing: Option<Round>,
    },
}

/// What becomes of the outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Requests of the client wait for it.
    Deliver(Outcome),
    /// It is kept until the client asks.
    Kept,
    /// Nobody will ask.
    Dropped,
}

/// A park whose client did not come back. The server gets the answers; if the call does not end
/// soon after, it is to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The park, which is gone.
    pub park: ParkId,
    /// What the server gets.
    pub answers: Vec<ServerAnswer>,
}

/// All parked calls.
#[derive(Clone, Debug)]
pub struct Parks {
    limits: ParkLimits,
    parks: BTreeMap<ParkId, Park>,
    /// Why a park is gone, for the log.
    tombstones: BTreeMap<ParkId, (Moment, &'static str)>,
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

impl Parks {
    /// No parks yet.
    #[must_use]
    pub const fn new(limits: ParkLimits) -> Self {
        Self {
            limits,
            parks: BTreeMap::new(),
            tombstones: BTreeMap::new(),
        }
    }

    /// Calls that ask for the first time from here on may take so long in all.
    pub const fn limit_calls(&mut self, call: Duration) {
        self.limits.call = call;
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parks.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parks.is_empty()
    }

    /// A server asks during a call. `id` is new for a call that asks for the first time, and stays
    /// the id of that call; `upstream` is the server's revision.
    pub fn park(
        &mut self,
        id: ParkId,
        binding: Binding,
        upstream: Revision,
        questions: Vec<ServerQuestion>,
        now: Moment,
    ) -> Parked {
        let limits = self.limits;
        if questions.len() > limits.questions {
            return Parked::Full(give_up(questions));
        }
        if let Some(park) = self.parks.get_mut(&id) {
            return park.ask(id, questions, limits, now);
        }
        if !self.has_room(&binding) {
            return Parked::Full(give_up(questions));
        }
        let (park, round) = Park::open(id, binding, upstream, questions, limits, now);
        self.parks.insert(id, park);
        Parked::Asked(round)
    }

    fn has_room(&self, binding: &Binding) -> bool {
        let of_principal = self
            .parks
            .values()
            .filter(|park| park.binding.principal == binding.principal);
        self.parks.len() < self.limits.total && of_principal.count() < self.limits.per_principal
    }

    /// A client comes back with a state that was opened and is ours. `binding` is that of its
    /// request, `responses` are the raw `inputResponses`.
    pub fn resume(
        &mut self,
        claims: &Claims,
        binding: &Binding,
        responses: Option<&str>,
        now: Moment,
    ) -> Resume {
        if claims.binding != *binding {
            return refused("the state belongs to another caller or call");
        }
        let limits = self.limits;
        let Some(park) = self.parks.get_mut(&claims.park) else {
            let known = self.tombstones.get(&claims.park);
            return refused(known.map_or("there is no such park", |(_, cause)| cause));
        };
        if park.binding != claims.binding {
            return refused("the state belongs to another park");
        }
        if claims.round != park.round {
            return refused("the state is of an earlier round");
        }
        if claims.expires < seconds(now) || park.is_expired(now) {
            return refused("the state has expired");
        }
        match &mut park.state {
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
                Resume::Join
            }
            State::Waiting(_) => park
                .answer(claims.park, responses, limits.ttl, now)
                .unwrap_or_else(|fault| Resume::Refused {
                    error: invalid_answers(fault),
                    cause: "the answers do not fit the questions",
                }),
            State::Done(_) => match self.bury(claims.park, "the outcome was told before", now) {
                Some(State::Done(outcome)) => Resume::Done(outcome),
                Some(State::Waiting(_) | State::Running { .. }) | None => refused("no outcome"),
            },
        }
    }

    /// A parked call ended by itself.
    pub fn ended(&mut self, id: ParkId, outcome: Outcome, now: Moment) -> Ended {
        let Some(park) = self.parks.get_mut(&id) else {
            return Ended::Dropped;
        };
        match &mut park.state {
            State::Waiting(_) => {
                park.state = State::Done(outcome);
                Ended::Kept
            }
            State::Running { .. } => {
                self.bury(id, "the outcome was told before", now);
                Ended::Deliver(outcome)
            }
            State::Done(_) => Ended::Dropped,
        }
    }

    /// The server no longer wants an answer; it gets none.
    pub fn withdrawn(&mut self, id: ParkId, question: IdRef<'_>) {
        if let Some(State::Waiting(pending)) = self.parks.get_mut(&id).map(|park| &mut park.state) {
            pending.retain(|pending| pending.question.id.as_ref() != question);
        }
    }

    /// A request of the client that waited is gone. Whether it was the last one, so that the call
    /// is to be cancelled; its park is gone then.
    pub fn waiter_left(&mut self, id: ParkId, now: Moment) -> bool {
        match self.parks.get_mut(&id).map(|park| &mut park.state) {
            Some(State::Running { waiters, .. }) if *waiters > 1 => {
                *waiters -= 1;
                false
            }
            Some(State::Running { .. }) => {
                self.bury(id, "the client cancelled the call", now);
                true
            }
            Some(State::Waiting(_) | State::Done(_)) | None => false,
        }
    }

    /// Frees what nobody came for.
    pub fn expire(&mut self, now: Moment) -> Vec<Expired> {
        self.tombstones.retain(|_, (until, _)| *until > now);
        let is_expired = |_, park: &Park| park.is_expired(now);
        self.free(is_expired, "the state has expired", now)
    }

    /// Frees those that are meant, which nobody can come for any more; a call that a request of the client waits for
    /// goes on.
    pub fn abandon(&mut self, is_meant: impl Fn(ParkId) -> bool, now: Moment) -> Vec<Expired> {
        let is_left =
            |id, park: &Park| !matches!(park.state, State::Running { .. }) && is_meant(id);
        self.free(is_left, "nobody could come back any more", now)
    }

    fn free(
        &mut self,
        is_due: impl Fn(ParkId, &Park) -> bool,
        cause: &'static str,
        now: Moment,
    ) -> Vec<Expired> {
        let due = self.parks.iter().filter(|(id, park)| is_due(**id, park));
        let due: Vec<ParkId> = due.map(|(id, _)| *id).collect();
        let mut expired = Vec::new();
        for park in due {
            if let Some(State::Waiting(pending)) = self.bury(park, cause, now) {
                let questions = pending.into_iter().map(|pending| pending.question);
                let answers = give_up(questions);
                expired.push(Expired { park, answers });
            }
        }
        expired
    }

    /// When [`expire`](Self::expire) next has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        let parks = self.parks.values().filter_map(Park::deadline);
        let tombstones = self.tombstones.values().map(|(until, _)| *until);
        parks.chain(tombstones).min()
    }

    /// Takes a park away and remembers why.
    fn bury(&mut self, id: ParkId, cause: &'static str, now: Moment) -> Option<State> {
        let park = self.parks.remove(&id)?;
        if self.tombstones.len() >= self.limits.total {
            let oldest = self.tombstones.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.tombstones.remove(&oldest);
            }
        }
        let until = now.after(self.limits.tombstone);
        self.tombstones.insert(id, (until, cause));
        Some(park.state)
    }
}

fn give_up(questions: impl IntoIterator<Item = ServerQuestion>) -> Vec<ServerAnswer> {
    let answer = |question: ServerQuestion| ServerAnswer {
        id: question.id,
        outcome: unanswered(question.method),
    };
    questions.into_iter().map(answer).collect()
}

fn refused(cause: &'static str) -> Resume {
    Resume::Refused {
        error: invalid_state(),
        cause,
    }
}
