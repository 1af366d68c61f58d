//! Random histories, next to models that are too simple to be wrong.

use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::time::Duration;
use std::vec::Vec;

use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Revision};
use mcpact_wire::id::{Id, IdRef};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{at, binding, json, pact};
use crate::input::{
    CallEnd, Claims, ClientReply, NextStep, Outcome, Question, ResumeOutcome, Round, RoundLimits,
    Rounds, ServerAnswer, ServerQuestion, SuspendLimits, SuspendOutcome, SuspendedCallId,
    SuspendedCalls,
};

const SLOTS: usize = 4;
const LIMITS: SuspendLimits = SuspendLimits {
    ttl: Duration::from_secs(10),
    call: Duration::from_secs(3600),
    tombstone: Duration::from_secs(5),
    per_principal: 2,
    total: 3,
    questions: 3,
    waiters: 2,
};

/// Event of the call in one of a few slots.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Its server asks so many questions.
    Ask(usize),
    /// A client shows the state of some round, with answers to some of the questions.
    Retry {
        principal: u8,
        state: usize,
        answered: u8,
    },
    /// It ends.
    End,
    /// Its server takes one question back.
    Withdraw(usize),
    /// One waiting request of its client goes away.
    Leave,
    /// Time passes.
    Tick(u64),
}

fn event() -> impl Strategy<Value = (usize, Event)> {
    let event = prop_oneof![
        4 => (1..4_usize).prop_map(Event::Ask),
        6 => (0..2_u8, 0..3_usize, any::<u8>()).prop_map(|(principal, state, answered)| {
            Event::Retry { principal, state, answered }
        }),
        1 => Just(Event::End),
        1 => (0..4_usize).prop_map(Event::Withdraw),
        1 => Just(Event::Leave),
        2 => (1..6_u64).prop_map(Event::Tick),
    ];
    (0..SLOTS, event)
}

/// A call as its owner knows it.
#[derive(Default)]
struct Call {
    number: u8,
    /// Requests of the client that wait for its end or the next question.
    waiters: usize,
    /// Every state that was handed out, the newest last, with its questions.
    states: Vec<(Claims, Vec<String>)>,
    is_over: bool,
}

/// Number of answers to each question of a server, and whether it is still open.
#[derive(Default)]
struct Asked {
    slot: usize,
    call: u8,
    answers: usize,
    is_moot: bool,
}

struct World {
    suspended: SuspendedCalls,
    now: Moment,
    calls: Vec<Call>,
    next_call: u8,
    questions: BTreeMap<i64, Asked>,
}

fn principal_of(slot: usize) -> u8 {
    u8::try_from(slot % 2).unwrap()
}

fn call_id(number: u8) -> SuspendedCallId {
    SuspendedCallId::new([number; 16])
}

impl World {
    fn new() -> Self {
        Self {
            suspended: SuspendedCalls::new(LIMITS),
            now: at(0),
            calls: (0..SLOTS)
                .map(|_| Call {
                    is_over: true,
                    ..Call::default()
                })
                .collect(),
            next_call: 0,
            questions: BTreeMap::new(),
        }
    }

    fn handle(&mut self, slot: usize, event: Event) -> TestCaseResult {
        match event {
            Event::Ask(count) => self.ask(slot, count)?,
            Event::Retry {
                principal,
                state,
                answered,
            } => self.retry(slot, principal, state, answered)?,
            Event::End => self.end(slot)?,
            Event::Withdraw(which) => self.withdraw(slot, which),
            Event::Leave => self.leave(slot)?,
            Event::Tick(seconds) => self.tick(seconds)?,
        }
        prop_assert!(self.suspended.len() <= LIMITS.total, "memory");
        Ok(())
    }

    fn ask(&mut self, slot: usize, count: usize) -> TestCaseResult {
        if self.calls[slot].is_over {
            self.next_call = self.next_call.wrapping_add(1);
            self.calls[slot] = Call {
                number: self.next_call,
                waiters: 1,
                ..Call::default()
            };
        }
        let number = self.calls[slot].number;
        let mut questions = Vec::new();
        for _ in 0..count {
            let id = i64::try_from(self.questions.len()).unwrap();
            let asked = Asked {
                slot,
                call: number,
                ..Asked::default()
            };
            self.questions.insert(id, asked);
            questions.push(ServerQuestion {
                id: Id::number(id),
                method: Method::ElicitationCreate,
                request: r#"{"method":"elicitation/create"}"#.into(),
            });
        }
        let binding = binding(principal_of(slot), 1);
        let outcome = self.suspended.suspend(
            call_id(number),
            binding,
            Revision::V2025_11_25,
            questions,
            self.now,
        );
        match outcome {
            SuspendOutcome::Asked(round) => {
                prop_assert!(self.calls[slot].waiters > 0, "a request waits");
                self.calls[slot].waiters = 0;
                self.hand_out(slot, round);
            }
            SuspendOutcome::Held => prop_assert_eq!(self.calls[slot].waiters, 0),
            SuspendOutcome::Full(answers) => {
                prop_assert_eq!(answers.len(), count);
                self.answered(slot, &answers)?;
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, slot: usize, round: Round) {
        let requests = json(&round.input_requests);
        let keys = requests.as_object().unwrap().keys().cloned().collect();
        self.calls[slot].states.push((round.claims, keys));
    }

    /// A server's question belongs to its call and is answered once.
    fn answered(&mut self, slot: usize, answers: &[ServerAnswer]) -> TestCaseResult {
        for answer in answers {
            let id: i64 = answer.id.raw().parse().unwrap();
            let asked = self.questions.get_mut(&id).unwrap();
            prop_assert_eq!((asked.slot, asked.call), (slot, self.calls[slot].number));
            prop_assert!(!asked.is_moot, "{} wants no answer", id);
            asked.answers += 1;
            prop_assert_eq!(asked.answers, 1, "{} has its answer", id);
        }
        Ok(())
    }

    fn retry(&mut self, slot: usize, principal: u8, state: usize, answered: u8) -> TestCaseResult {
        let states = &self.calls[slot].states;
        let Some((claims, keys)) = states.iter().rev().nth(state).cloned() else {
            return Ok(());
        };
        let given: Vec<String> = keys
            .iter()
            .enumerate()
            .filter(|(at, _)| answered & (1 << (at % 8)) != 0)
            .map(|(_, key)| format!(r#""{key}":{{"action":"accept"}}"#))
            .collect();
        let responses = format!("{{{}}}", given.join(","));
        let resumed =
            self.suspended
                .resume(&claims, &binding(principal, 1), Some(&responses), self.now);
        let is_owner = principal == principal_of(slot);
        let is_refused = matches!(resumed, ResumeOutcome::Refused { .. });
        prop_assert!(is_refused || is_owner, "only the owner continues a call");
        prop_assert!(is_refused || state == 0, "an old state is worth nothing");
        prop_assert!(
            is_refused || !self.calls[slot].is_over || matches!(resumed, ResumeOutcome::Done(_))
        );
        match resumed {
            ResumeOutcome::Refused { .. } => {}
            ResumeOutcome::Done(_) => self.calls[slot].states.clear(),
            ResumeOutcome::Join => {
                prop_assert!(self.calls[slot].waiters > 0);
                self.calls[slot].waiters += 1;
            }
            ResumeOutcome::Go { answers, missing } => {
                prop_assert_eq!(self.calls[slot].waiters, 0);
                self.answered(slot, &answers)?;
                match missing {
                    Some(round) => self.hand_out(slot, round),
                    None => self.calls[slot].waiters = 1,
                }
            }
        }
        Ok(())
    }

    /// The call is over: its server wants no more answers.
    fn close(&mut self, slot: usize) {
        let number = self.calls[slot].number;
        let of_call = |asked: &&mut Asked| asked.slot == slot && asked.call == number;
        for asked in self.questions.values_mut().filter(of_call) {
            asked.is_moot = true;
        }
        self.calls[slot].waiters = 0;
        self.calls[slot].is_over = true;
    }

    fn end(&mut self, slot: usize) -> TestCaseResult {
        let call = &self.calls[slot];
        if call.is_over {
            return Ok(());
        }
        let outcome = Outcome::Result("{}".into());
        let is_suspended = !call.states.is_empty();
        match self
            .suspended
            .ended(call_id(call.number), outcome, self.now)
        {
            CallEnd::Deliver(_) => prop_assert!(is_suspended && call.waiters > 0),
            CallEnd::Kept => prop_assert!(is_suspended && call.waiters == 0),
            CallEnd::Dropped => prop_assert!(!is_suspended, "the outcome is still wanted"),
        }
        self.close(slot);
        Ok(())
    }

    fn withdraw(&mut self, slot: usize, which: usize) {
        let number = self.calls[slot].number;
        let open = self
            .questions
            .iter_mut()
            .filter(|(_, asked)| asked.slot == slot && asked.call == number && asked.answers == 0);
        if let Some((id, asked)) = open.into_iter().nth(which) {
            asked.is_moot = true;
            let raw = format!("{id}");
            let id = IdRef::from_token(&raw).unwrap();
            self.suspended.withdrawn(call_id(number), id);
        }
    }

    fn leave(&mut self, slot: usize) -> TestCaseResult {
        let call = &mut self.calls[slot];
        if call.is_over || call.waiters == 0 || call.states.is_empty() {
            return Ok(());
        }
        call.waiters -= 1;
        let is_last = call.waiters == 0;
        let call = call_id(call.number);
        prop_assert_eq!(self.suspended.waiter_left(call, self.now), is_last);
        if is_last {
            self.close(slot);
        }
        Ok(())
    }

    fn tick(&mut self, seconds: u64) -> TestCaseResult {
        self.now = self.now.after(Duration::from_secs(seconds));
        for expired in self.suspended.expire(self.now) {
            let is_it = |call: &Call| !call.is_over && call_id(call.number) == expired.call;
            let slot = self.calls.iter().position(is_it);
            let Some(slot) = slot else {
                return Err(TestCaseError::fail("a call that is over expires"));
            };
            prop_assert_eq!(self.calls[slot].waiters, 0, "no request waits for it");
            self.answered(slot, &expired.answers)?;
            self.close(slot);
        }
        Ok(())
    }
}

proptest! {
    /// A server's question is answered exactly once, by its own client or for want of one; every
    /// request of a client has one end; what is kept is bounded and goes away by itself.
    #[test]
    fn suspended_calls_keep_their_promises(events in prop::collection::vec(event(), 0..60)) {
        let mut world = World::new();
        for (slot, event) in events {
            world.handle(slot, event)?;
        }
        for slot in 0..SLOTS {
            // What runs is not the table's to end.
            if world.calls[slot].waiters > 0 {
                world.end(slot)?;
            }
        }
        while let Some(deadline) = world.suspended.next_deadline() {
            prop_assert!(deadline > world.now, "what is due is done");
            let wait = deadline.since(world.now);
            world.tick(wait.as_secs().max(1))?;
        }
        prop_assert!(world.suspended.is_empty());
        for (id, asked) in &world.questions {
            prop_assert!(asked.is_moot || asked.answers == 1, "{id} got no answer");
        }
    }

    /// Whatever a server asks and a client says, the call goes on with well-formed parameters or
    /// ends once.
    #[test]
    fn rounds_end_once_and_within_their_limits(
        results in prop::collection::vec(result(), 0..30),
        answers in prop::collection::vec(prop_oneof![9 => Just(0), 1 => 0..5_usize], 1..60),
    ) {
        let caps = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
        let limits = RoundLimits { rounds: 5, ..RoundLimits::default() };
        let client = pact(Revision::V2025_11_25, caps);
        let mut rounds = Rounds::new(Method::PromptsGet, client, Revision::V2026_07_28, limits, at(0));
        let mut answers = answers.into_iter().cycle();
        let mut asked = 0;
        for result in results {
            let mut turn = rounds.server_result(&result, at(1), &mut || "id".into());
            let mut questions = Vec::new();
            if let NextStep::Ask(all) = turn {
                asked += 1;
                let keys: Vec<_> = all.iter().map(|question| &*question.key).collect();
                prop_assert_eq!(rounds.open_questions().collect::<Vec<_>>(), keys);
                turn = answer_all(&mut rounds, &all, &mut answers)?;
                questions = all;
            }
            match turn {
                NextStep::Again | NextStep::Wait(_) => {
                    json(&rounds.next_params(r#"{"name":"p"}"#));
                }
                NextStep::Finish | NextStep::Fail(_) => {
                    for question in questions {
                        let again = rounds.client_reply(&question.key, fitting(question.method));
                        prop_assert_eq!(again, None, "a call ends once");
                    }
                    break;
                }
                NextStep::Ask(_) | NextStep::Task | NextStep::Answer(_) => {
                    return Err(TestCaseError::fail(format!("{turn:?}")));
                }
            }
        }
        prop_assert!(asked <= limits.rounds, "{asked} rounds");
    }
}

/// A result of a server; now and then it finishes, or asks what it must not.
fn result() -> impl Strategy<Value = String> {
    let question = prop_oneof![
        4 => Just(r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#),
        4 => Just(r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a"}}"#),
        4 => Just(r#"{"method":"roots/list"}"#),
        4 => Just(r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#),
        1 => Just(r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#),
    ];
    let questions = prop::collection::vec(question, 0..4);
    let asking = (questions, any::<bool>()).prop_map(|(questions, has_state)| {
        let requests: Vec<String> = questions
            .iter()
            .zip(0..)
            .map(|(question, at)| format!(r#""q{at}":{question}"#))
            .collect();
        let requests = requests.join(",");
        let state = if has_state {
            r#","requestState":"s""#
        } else {
            ""
        };
        format!(r#"{{"resultType":"input_required","inputRequests":{{{requests}}}{state}}}"#)
    });
    prop_oneof![20 => asking, 1 => Just("{}".into())]
}

fn fitting(method: Method) -> ClientReply<'static> {
    let answers = [
        (Method::ElicitationCreate, r#"{"action":"accept"}"#),
        (Method::RootsList, r#"{"roots":[]}"#),
        (
            Method::SamplingCreateMessage,
            r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m"}"#,
        ),
    ];
    let answer = answers.iter().find(|(of, _)| *of == method).unwrap();
    ClientReply::Result(answer.1)
}

/// Answers until the machine takes its turn, each question twice.
fn answer_all(
    rounds: &mut Rounds,
    questions: &[Question],
    answers: &mut impl Iterator<Item = usize>,
) -> Result<NextStep, TestCaseError> {
    for question in questions {
        let answer = match answers.next() {
            Some(1) => ClientReply::Error(r#"{"code":-1,"message":"no"}"#),
            Some(2) => ClientReply::Lost("gone"),
            Some(3) => ClientReply::Result("7"),
            _ => fitting(question.method),
        };
        let turn = rounds.client_reply(&question.key, answer);
        let again = rounds.client_reply(&question.key, answer);
        prop_assert_eq!(again, None, "an answer counts once");
        if let Some(turn) = turn {
            return Ok(turn);
        }
    }
    Err(TestCaseError::fail(
        "everything is answered and nothing happens",
    ))
}
