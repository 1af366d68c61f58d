//! One call of a legacy client to a modern server that asks before it answers.
//!
//! ```text
//!             Ask                    the last answer was heard
//! Calling ----------> Asking ----------------------------------> Calling
//!  |   ^                 |
//!  |   +- Wait, Again    +- an answer that has no place, late -> Over
//!  |
//!  +- complete, task, a violation, a limit, late --------------> Over
//! ```

mod plan;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::codec::modern::COMPLETE;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter};
use mcpact_wire::scan::{quote, text};

use super::answer::{CANCELLED, fits, is_accept};
use super::check_boxes::CheckBoxes;
use super::default_answers::DefaultAnswers;
use super::ending::unanswered_call;
use crate::shape::adapt_client_result;
use crate::wire_error::wire_error;
use plan::{Plan, Planned, Reading, Visit};

/// Limits of the rounds of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundLimits {
    /// Results that are no answer. Those that only wait for a URL are limited by time.
    pub rounds: u32,
    /// Questions in one of them.
    pub questions: usize,
    /// All of it, from the call on.
    pub total: Duration,
    /// Pauses for a server that only wants to be called again.
    pub pauses: Backoff,
    /// Pauses while the user is at a URL.
    pub visits: Backoff,
}

impl Default for RoundLimits {
    fn default() -> Self {
        Self {
            rounds: 10,
            questions: 16,
            total: Duration::from_secs(600),
            pauses: Backoff {
                first: Duration::from_millis(200),
                longest: Duration::from_secs(10),
            },
            visits: Backoff {
                first: Duration::from_secs(5),
                longest: Duration::from_secs(15),
            },
        }
    }
}

/// A request to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The server's name for it.
    pub key: Box<str>,
    /// Its method.
    pub method: Method,
    /// Its raw parameters, in the client's revision.
    pub params: String,
}

/// Next step of a call. `Finish`, `Task`, `Answer` and `Fail` end it: withdraw the open questions then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The server's result is complete: hand it on in the client's shape.
    Finish,
    /// The server's result is a task.
    Task,
    /// Ask the client all of these on the stream of its call.
    Ask(Vec<Question>),
    /// Call the server again.
    Again,
    /// Call the server again after this pause.
    Wait(Duration),
    /// Answer the client with this raw result.
    Answer(String),
    /// Answer the client with this error.
    Fail(WireError),
}

/// Reply of the client to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientReply<'a> {
    /// The client's raw result.
    Result(&'a str),
    /// The client's raw error object.
    Error(&'a str),
    /// There will be no answer, and why.
    Lost(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Calling,
    Asking,
    Over,
}

/// Kind of a server's result.
enum Read {
    Complete,
    Task,
    Round(Plan),
}

#[derive(Clone, Debug)]
struct Open {
    key: Box<str>,
    method: Method,
    visit: Option<usize>,
    boxes: Option<CheckBoxes>,
}

/// A call of a legacy client on its way through the rounds of a modern server.
#[derive(Clone, Debug)]
pub struct Rounds {
    method: Method,
    downstream: Arc<Pact>,
    default_answers: DefaultAnswers,
    upstream: Revision,
    limits: RoundLimits,
    deadline: Moment,
    phase: Phase,
    round: u32,
    waits: u32,
    /// The raw token of the last `requestState`.
    state: Option<Box<str>>,
    answers: Option<Vec<(Box<str>, String)>>,
    open: Vec<Open>,
    visits: Vec<Visit>,
    awaited: Vec<usize>,
}

impl Rounds {
    /// A call that begins at `now`.
    #[must_use]
    pub fn new(
        method: Method,
        downstream: Arc<Pact>,
        upstream: Revision,
        limits: RoundLimits,
        now: Moment,
    ) -> Self {
        Self {
            method,
            downstream,
            default_answers: DefaultAnswers::default(),
            upstream,
            limits,
            deadline: now.after(limits.total),
            phase: Phase::Calling,
            round: 0,
            waits: 0,
            state: None,
            answers: None,
            open: Vec::new(),
            visits: Vec::new(),
            awaited: Vec::new(),
        }
    }

    /// Adds default answers for questions that the client cannot be asked.
    #[must_use]
    pub fn with_default_answers(mut self, default_answers: &DefaultAnswers) -> Self {
        self.default_answers.clone_from(default_answers);
        self
    }

    /// Takes a result of the server. `mint` makes the ids of URL elicitations, which must never
    /// repeat within the client's session.
    pub fn server_result(
        &mut self,
        result: &str,
        now: Moment,
        mint: &mut dyn FnMut() -> String,
    ) -> NextStep {
        self.open.clear();
        self.awaited.clear();
        let turn = match self.read(result, mint) {
            Ok(Read::Complete) => NextStep::Finish,
            Ok(Read::Task) => NextStep::Task,
            Ok(Read::Round(plan)) => self.turn(plan, now),
            Err(fault) => {
                let text = format!("The server's result breaks the protocol: {fault}");
                NextStep::Fail(self.failure(text))
            }
        };
        self.phase = match turn {
            NextStep::Ask(_) => Phase::Asking,
            NextStep::Again | NextStep::Wait(_) => Phase::Calling,
            NextStep::Finish | NextStep::Task | NextStep::Answer(_) | NextStep::Fail(_) => {
                Phase::Over
            }
        };
        turn
    }

    fn read(&mut self, result: &str, mint: &mut dyn FnMut() -> String) -> Result<Read, String> {
        if result.starts_with(COMPLETE) {
            return Ok(Read::Complete);
        }
        let body = Object::parse(result).map_err(|fault| format!("{fault}"))?;
        let kind = body.get_present("resultType").unwrap_or(r#""complete""#);
        match text(kind).as_deref() {
            Some("complete") => Ok(Read::Complete),
            Some("task") => Ok(Read::Task),
            Some("input_required") => self.read_round(&body, mint).map(Read::Round),
            // 2026-07-28 basic/index#result: what a client does not know is invalid.
            Some(_) | None => Err(format!("`resultType` {kind} is unknown")),
        }
    }

    fn read_round(
        &mut self,
        body: &Object<'_>,
        mint: &mut dyn FnMut() -> String,
    ) -> Result<Plan, String> {
        if !self.method.may_ask_for_input() {
            return Err(format!("`{}` cannot ask for input", self.method));
        }
        let state = body.get_present("requestState");
        let requests = body.get_present("inputRequests");
        if state.is_none() && requests.is_none() {
            return Err("neither `inputRequests` nor `requestState` is there".into());
        }
        if state.is_some_and(|raw| JsonKind::of(raw) != JsonKind::String) {
            return Err("`requestState` is not a string".into());
        }
        // An older state must not come back, even where this result has none.
        self.state = state.map(Box::from);
        self.answers = requests.map(|_| Vec::new());
        let mut reading = Reading {
            downstream: &self.downstream,
            default_answers: &self.default_answers,
            visits: &self.visits,
            most: self.limits.questions,
            mint,
        };
        requests.map_or_else(|| Ok(Plan::default()), |raw| reading.plan(raw))
    }

    fn turn(&mut self, plan: Plan, now: Moment) -> NextStep {
        let is_known = !plan.answers.is_empty();
        self.awaited = plan.awaited;
        if let Some(answers) = &mut self.answers {
            answers.extend(plan.answers);
        }
        if now >= self.deadline {
            return self.late();
        }
        if let Some((key, method, error)) = plan.refused {
            let open = Open {
                key,
                method,
                visit: None,
                boxes: None,
            };
            return self.unanswered(&open, ClientReply::Error(&error));
        }
        if plan.questions.is_empty() && !self.awaited.is_empty() {
            self.waits += 1;
            return NextStep::Wait(self.limits.visits.pause(self.waits - 1));
        }
        if self.round >= self.limits.rounds {
            return NextStep::Fail(self.failure("Too many input rounds: the server keeps asking"));
        }
        self.round += 1;
        match plan.questions {
            questions if !questions.is_empty() => self.ask(questions),
            _ if is_known => NextStep::Again,
            _ => NextStep::Wait(self.limits.pauses.pause(self.round - 1)),
        }
    }

    fn ask(&mut self, planned: Vec<Planned>) -> NextStep {
        let mut questions = Vec::with_capacity(planned.len());
        for planned in planned {
            let question = planned.question;
            let visit = planned.visit.map(|visit| {
                self.visits.push(visit);
                self.visits.len() - 1
            });
            self.open.push(Open {
                key: question.key.clone(),
                method: question.method,
                visit,
                boxes: planned.boxes,
            });
            questions.push(question);
        }
        NextStep::Ask(questions)
    }

    /// Takes what became of one question; none while others are open, or when it is not open.
    pub fn client_reply(&mut self, key: &str, answer: ClientReply<'_>) -> Option<NextStep> {
        if self.phase != Phase::Asking {
            return None;
        }
        let at = self.open.iter().position(|open| *open.key == *key)?;
        let open = self.open.remove(at);
        match self.take(&open, answer) {
            Ok(answer) => {
                let accepted = is_accept(&answer);
                if let Some(visit) = open.visit.and_then(|at| self.visits.get_mut(at)) {
                    visit.is_accepted = accepted;
                }
                self.answers
                    .get_or_insert_default()
                    .push((open.key, answer));
            }
            Err(turn) => {
                self.phase = Phase::Over;
                return Some(turn);
            }
        }
        self.open.is_empty().then(|| {
            self.phase = Phase::Calling;
            NextStep::Again
        })
    }

    /// The answer for the server. There is no place in it for an error: a form counts as
    /// dismissed, and with a failed sample the call is over.
    fn take(&self, open: &Open, answer: ClientReply<'_>) -> Result<String, NextStep> {
        let adapted = match answer {
            ClientReply::Result(raw) if fits(open.method, raw) => {
                adapt_client_result(open.method, raw, self.upstream).ok()
            }
            ClientReply::Result(_) | ClientReply::Error(_) | ClientReply::Lost(_) => None,
        };
        match adapted {
            Some(answer) => Ok(match &open.boxes {
                Some(boxes) => boxes.gather(&answer),
                None => answer.into_owned(),
            }),
            None if open.method == Method::ElicitationCreate => Ok(CANCELLED.into()),
            None => Err(self.unanswered(open, answer)),
        }
    }

    fn unanswered(&self, open: &Open, answer: ClientReply<'_>) -> NextStep {
        let (why, error): (Cow<'_, str>, _) = match answer {
            ClientReply::Result(_) => (Cow::Borrowed("the answer does not fit"), None),
            ClientReply::Error(raw) => {
                let message = ErrorBody::parse(raw).map(|body| body.message);
                (message.unwrap_or_default(), Some(Cow::Borrowed(raw)))
            }
            ClientReply::Lost(why) => (Cow::Borrowed(why), None),
        };
        let text = format!("{} was not completed by the client: {why}", open.method);
        let error = error.unwrap_or_else(|| Cow::Owned(quote(&why)));
        let data = ObjectWriter::new()
            .text("inputRequest", &open.key)
            .raw("clientError", &error)
            .finish();
        let to = self.downstream.revision();
        unanswered_call(self.method, to, &text, Some(data))
            .map_or_else(NextStep::Fail, NextStep::Answer)
    }

    /// The parameters of the next call: those of the first with the answers of this round and,
    /// byte for byte, its state.
    #[must_use]
    pub fn next_params<'p>(&self, original: &'p str) -> Cow<'p, str> {
        let body = Object::parse(original).unwrap_or_default();
        let is_of_rounds = |key: &str| matches!(key, "inputResponses" | "requestState");
        let is_plain = self.answers.is_none() && self.state.is_none();
        if is_plain && !body.iter().any(|(key, _)| is_of_rounds(key)) {
            return Cow::Borrowed(original);
        }
        let responses = self.answers.as_ref().map(|answers| {
            let answers = answers.iter().map(|(key, raw)| (&**key, &**raw));
            ObjectWriter::new().members(answers).finish()
        });
        body.keep(|key| !is_of_rounds(key))
            .maybe_raw("inputResponses", responses.as_deref())
            .maybe_raw("requestState", self.state.as_deref())
            .finish()
            .into()
    }

    /// Deadline of the call.
    #[must_use]
    pub const fn deadline(&self) -> Moment {
        self.deadline
    }

    /// The deadline passed.
    pub fn late(&mut self) -> NextStep {
        self.phase = Phase::Over;
        if let Some(open) = self.open.first() {
            return self.unanswered(open, ClientReply::Lost("no answer came in time"));
        }
        let to = self.downstream.revision();
        if self.awaited.is_empty() || !ErrorCode::UrlElicitationRequired.emitted_in(to) {
            return NextStep::Fail(
                self.failure("The server did not finish in the time for one call"),
            );
        }
        // The client may come back when the user is done.
        let listed: Vec<String> = self.awaited().map(Visit::encode).collect();
        let data = format!(r#"{{"elicitations":[{}]}}"#, listed.join(","));
        let text = "The server still waits for the user to finish at a URL";
        NextStep::Fail(WireError {
            data: Some(data),
            ..wire_error(ErrorCode::UrlElicitationRequired, text, to)
        })
    }

    fn awaited(&self) -> impl Iterator<Item = &Visit> {
        self.awaited.iter().filter_map(|at| self.visits.get(*at))
    }

    /// The keys of the questions that wait for an answer.
    #[cfg(test)]
    pub fn open_questions(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|open| open.key.as_ref())
    }

    fn failure(&self, text: impl Into<String>) -> WireError {
        let to = self.downstream.revision();
        wire_error(ErrorCode::InternalError, text, to)
    }
}

/// The pauses between attempts: each twice as long as the one before, up to a longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many attempts that already paused.
    #[must_use]
    pub fn pause(self, attempts: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempts).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_below_the_longest() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(15),
        };
        let seconds = [0, 1, 2, 31, 32, u32::MAX].map(|n| backoff.pause(n).as_secs());
        assert_eq!(seconds, [5, 10, 15, 15, 15, 15]);
    }
}
