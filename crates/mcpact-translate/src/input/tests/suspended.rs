use std::format;
use std::time::Duration;
use std::vec::Vec;

use mcpact_spec::{Method, Revision};
use mcpact_wire::id::Id;
use serde_json::json as value;

use super::{at, binding, json};
use crate::input::{
    CallEnd, Claims, Outcome, ResumeOutcome, Round, ServerAnswer, ServerQuestion, SuspendLimits,
    SuspendOutcome, SuspendedCallId, SuspendedCalls, input_required,
};

const UPSTREAM: Revision = Revision::V2025_11_25;
const P: SuspendedCallId = SuspendedCallId::new([7; 16]);
const ACCEPT: &str = r#"{"action":"accept","content":{"a":1}}"#;

fn question(id: i64) -> ServerQuestion {
    ask(Method::ElicitationCreate, id)
}

fn ask(method: Method, id: i64) -> ServerQuestion {
    ServerQuestion {
        id: Id::number(id),
        method,
        request: format!(r#"{{"method":"{method}"}}"#),
    }
}

fn answer(id: i64, raw: &str) -> ServerAnswer {
    ServerAnswer {
        id: Id::number(id),
        outcome: Outcome::Result(raw.into()),
    }
}

fn done(raw: &str) -> Outcome {
    Outcome::Result(raw.into())
}

/// The table, driven by one call.
struct Rig {
    suspended: SuspendedCalls,
}

impl Rig {
    fn new() -> Self {
        let suspended = SuspendedCalls::new(SuspendLimits::default());
        Self { suspended }
    }

    fn suspend(&mut self, questions: &[i64], seconds: u64) -> SuspendOutcome {
        let questions = questions.iter().map(|id| question(*id)).collect();
        self.suspended
            .suspend(P, binding(1, 1), UPSTREAM, questions, at(seconds))
    }

    fn asked(&mut self, questions: &[i64], seconds: u64) -> Round {
        let suspended = self.suspend(questions, seconds);
        let SuspendOutcome::Asked(round) = suspended else {
            panic!("nothing is asked: {suspended:?}");
        };
        round
    }

    fn resume(&mut self, claims: &Claims, responses: Option<&str>, seconds: u64) -> ResumeOutcome {
        self.suspended
            .resume(claims, &binding(1, 1), responses, at(seconds))
    }
}

fn accepting(key: &str) -> std::string::String {
    format!(r#"{{"{key}":{ACCEPT}}}"#)
}

fn goes(answers: &[ServerAnswer]) -> ResumeOutcome {
    ResumeOutcome::Go {
        answers: answers.to_vec(),
        missing: None,
    }
}

#[track_caller]
fn is_refused(resume: &ResumeOutcome) {
    let ResumeOutcome::Refused { error, .. } = resume else {
        panic!("not refused: {resume:?}");
    };
    assert_eq!((error.code, error.http_status), (-32602, 200));
    let told = ["Invalid or expired requestState", "may have had its effect"];
    for words in told {
        assert!(error.message.contains(words), "{}", error.message);
    }
    let data = error.data.as_deref();
    assert!(data.is_some_and(|data| data.contains(r#""reason":"request_state""#)));
}

/// BB-04, BB-05, BB-06: each question becomes a round with a state of its own, and each answer
/// goes to the server; a state of an earlier round is worth nothing.
#[test]
fn a_call_is_suspended_and_continued_round_by_round() {
    let mut rig = Rig::new();
    let first = rig.asked(&[9], 0);
    let expected = value!({"elicitation-1": {"method": "elicitation/create"}});
    assert_eq!(json(&first.input_requests), expected);
    let result = json(&input_required(&first.input_requests, "sealed \"x\""));
    let expected = value!({"resultType": "input_required", "inputRequests": expected, "requestState": "sealed \"x\""});
    assert_eq!(result, expected);

    let resumed = rig.resume(&first.claims, Some(&accepting("elicitation-1")), 10);
    assert_eq!(resumed, goes(&[answer(9, ACCEPT)]));

    let second = rig.asked(&[10], 20);
    assert_eq!(second.claims.round, 2);
    assert!(
        second.input_requests.contains("elicitation-2"),
        "keys do not repeat"
    );
    is_refused(&rig.resume(&first.claims, Some(&accepting("elicitation-1")), 21));
    let resumed = rig.resume(&second.claims, Some(&accepting("elicitation-2")), 30);
    assert_eq!(resumed, goes(&[answer(10, ACCEPT)]));
    let outcome = done("{}");
    let ended = rig.suspended.ended(P, outcome.clone(), at(31));
    assert_eq!(ended, CallEnd::Deliver(outcome));
    assert!(rig.suspended.is_empty());
    is_refused(&rig.resume(&second.claims, Some(&accepting("elicitation-2")), 32));
}

/// The oldest call that waits for its client is ended for others once it has waited long enough; its client learns why.
#[test]
fn the_oldest_waiting_call_is_ended_for_others() {
    let grace = Duration::from_secs(60);
    let mut rig = Rig::new();
    let other = SuspendedCallId::new([8; 16]);
    let old = rig.asked(&[1], 0);
    let mut all = rig.suspended.clone();
    let young = all.suspend(
        other,
        binding(1, 2),
        UPSTREAM,
        std::vec![question(2)],
        at(50),
    );
    assert!(matches!(young, SuspendOutcome::Asked(_)));
    assert_eq!(all.end_oldest(|_| true, grace, at(60)), None);
    assert_eq!(all.end_oldest(|id| id == other, grace, at(61)), None);
    let ended = all.end_oldest(|_| true, grace, at(61)).unwrap();
    assert_eq!(ended.call, P);
    assert_eq!(ended.answers, [answer(1, r#"{"action":"cancel"}"#)]);
    assert_eq!(all.end_oldest(|_| true, grace, at(62)), None, "too young");
    // While the state of the client is valid.
    let late = at(299);
    assert!(all.expire(at(200)).is_empty());
    let told = all.resume(
        &old.claims,
        &binding(1, 1),
        Some(&accepting("elicitation-1")),
        late,
    );
    is_refused(&told);
    let ResumeOutcome::Refused { error, .. } = told else {
        panic!("not refused");
    };
    assert!(
        error.message.contains("other calls were queued"),
        "{}",
        error.message
    );
    // An answered call does not wait.
    let resumed = rig.resume(&old.claims, Some(&accepting("elicitation-1")), 70);
    assert_eq!(resumed, goes(&[answer(1, ACCEPT)]));
    assert_eq!(rig.suspended.end_oldest(|_| true, grace, at(200)), None);
}

/// BB-07: a client that does not come back has dismissed the form; nothing is left of the call.
#[test]
fn an_abandoned_call_expires() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    let more = [
        ask(Method::SamplingCreateMessage, 10),
        ask(Method::RootsList, 11),
    ];
    let held = rig
        .suspended
        .suspend(P, binding(1, 1), UPSTREAM, more.into(), at(100));
    assert_eq!(held, SuspendOutcome::Held, "no request waits");
    assert_eq!(rig.suspended.next_deadline(), Some(at(300)));
    assert_eq!(rig.suspended.expire(at(299)), []);
    let expired = rig.suspended.expire(at(300));
    let [expired] = expired.as_slice() else {
        panic!("{expired:?}");
    };
    assert_eq!(expired.call, P);
    let answers: Vec<_> = expired
        .answers
        .iter()
        .map(|answer| match &answer.outcome {
            Outcome::Result(raw) => (answer.id.raw(), json(raw)["action"].clone()),
            Outcome::Error(raw) => (answer.id.raw(), json(raw)["code"].clone()),
        })
        .collect();
    let given_up = [
        ("9", value!("cancel")),
        ("10", value!(-1)),
        ("11", value!(-32603)),
    ];
    assert_eq!(answers, given_up);
    assert!(rig.suspended.is_empty());
    is_refused(&rig.resume(&claims, Some(&accepting("elicitation-1")), 301));
    assert_eq!(
        rig.suspended.next_deadline(),
        Some(at(360)),
        "the tombstone"
    );
    assert_eq!(rig.suspended.expire(at(360)), []);
    assert_eq!(rig.suspended.next_deadline(), None);
    let late = rig.suspended.ended(P, done("{}"), at(361));
    assert_eq!(late, CallEnd::Dropped);
}

/// BB-07: the same before its time, if no client can come back.
#[test]
fn calls_that_no_client_can_continue_are_freed() {
    let mut rig = Rig::new();
    let asked = rig.asked(&[9], 0);
    assert_eq!(
        rig.suspended.abandon(|call| call != P, at(1)),
        [],
        "another's"
    );
    let given_up = rig.suspended.abandon(|_| true, at(1));
    let [call] = given_up.as_slice() else {
        panic!("{given_up:?}");
    };
    assert_eq!(call.answers, [answer(9, r#"{"action":"cancel"}"#)]);
    assert!(rig.suspended.is_empty());
    is_refused(&rig.resume(&asked.claims, Some(&accepting("elicitation-1")), 2));
    // A call that a request of the client waits for is its own affair.
    let mut rig = Rig::new();
    let asked = rig.asked(&[9], 0);
    rig.resume(&asked.claims, Some(&accepting("elicitation-1")), 1);
    assert_eq!(rig.suspended.abandon(|_| true, at(2)), []);
    let outcome = done("{}");
    let ended = rig.suspended.ended(P, outcome.clone(), at(3));
    assert_eq!(ended, CallEnd::Deliver(outcome));
}

/// BB-08: the outcome of a suspended call is delivered once, whatever the client sends.
#[test]
fn an_outcome_waits_for_the_client_and_is_delivered_once() {
    for outcome in [done("{}"), Outcome::Error("{}".into())] {
        let mut rig = Rig::new();
        let claims = rig.asked(&[9], 0).claims;
        assert_eq!(
            rig.suspended.ended(P, outcome.clone(), at(1)),
            CallEnd::Kept
        );
        let second = rig.suspended.ended(P, done("other"), at(2));
        assert_eq!(second, CallEnd::Dropped, "a call ends once");
        let asks = rig.suspend(&[10], 2);
        assert!(
            matches!(asks, SuspendOutcome::Full(_)),
            "an ended call asks nothing"
        );
        assert_eq!(
            rig.resume(&claims, Some("7"), 3),
            ResumeOutcome::Done(outcome)
        );
        assert!(rig.suspended.is_empty());
        is_refused(&rig.resume(&claims, None, 4));
    }
    let mut rig = Rig::new();
    rig.asked(&[9], 0);
    rig.suspended.ended(P, done("{}"), at(1));
    assert_eq!(
        rig.suspended.expire(at(300)),
        [],
        "nothing is left to answer"
    );
    assert!(rig.suspended.is_empty());
}

/// BB-09: a call that is gone cannot be continued, and nothing says to call the tool again.
#[test]
fn a_lost_call_is_refused() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    rig.suspended = SuspendedCalls::new(SuspendLimits::default());
    is_refused(&rig.resume(&claims, Some(&accepting("elicitation-1")), 1));
}

/// BB-11, MR-07: a state is good for one caller and one call; the caller is not told why it failed,
/// the log is.
#[test]
fn a_state_is_good_only_for_its_caller_and_call() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    let responses = accepting("elicitation-1");
    let mut prompt = binding(1, 1);
    prompt.method = Method::PromptsGet;
    for other in [binding(2, 1), binding(1, 2), prompt] {
        let resumed = rig
            .suspended
            .resume(&claims, &other, Some(&responses), at(1));
        is_refused(&resumed);
        let forged = Claims {
            binding: other,
            ..claims
        };
        is_refused(
            &rig.suspended
                .resume(&forged, &other, Some(&responses), at(1)),
        );
    }
    let unborn = Claims { round: 2, ..claims };
    is_refused(&rig.resume(&unborn, Some(&responses), 1));
    is_refused(&rig.resume(&claims, Some(&responses), 300));
    let resumed = rig.resume(&claims, Some(&responses), 299);
    assert_eq!(
        resumed,
        goes(&[answer(9, ACCEPT)]),
        "its owner is not locked out"
    );
}

/// BB-31, MR-08: what is missing is asked again, what came is not.
#[test]
fn missing_answers_are_asked_for_again() {
    let mut rig = Rig::new();
    let first = rig.asked(&[9, 10], 0);
    let only = accepting("elicitation-2");
    let ResumeOutcome::Go {
        answers,
        missing: Some(second),
    } = rig.resume(&first.claims, Some(&only), 10)
    else {
        panic!("nothing is missing");
    };
    assert_eq!(answers, [answer(10, ACCEPT)]);
    let expected = value!({"elicitation-1": {"method": "elicitation/create"}});
    assert_eq!(json(&second.input_requests), expected);
    assert_eq!(second.claims.expires, 310);
    is_refused(&rig.resume(&first.claims, Some(&only), 11));

    let ResumeOutcome::Go {
        answers,
        missing: Some(third),
    } = rig.resume(&second.claims, None, 20)
    else {
        panic!("nothing is missing");
    };
    assert_eq!(answers, []);
    assert_eq!(third.claims.expires, 310, "saying nothing gains no time");
    let extra = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT},"x":7}}"#);
    let resumed = rig.resume(&third.claims, Some(&extra), 30);
    assert_eq!(
        resumed,
        goes(&[answer(9, ACCEPT)]),
        "each question is answered once"
    );
}

#[test]
fn answers_that_are_none_change_nothing() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9, 10], 0).claims;
    let mixed = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{{"action":"dream"}}}}"#);
    for bad in ["7", "[]", r#"{"elicitation-1":{}}"#, mixed.as_str()] {
        let ResumeOutcome::Refused { error, .. } = rig.resume(&claims, Some(bad), 1) else {
            panic!("{bad} is taken");
        };
        assert_eq!(error.code, -32602);
        assert!(
            error.message.contains("inputResponses"),
            "{}",
            error.message
        );
    }
    let good = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT}}}"#);
    let resumed = rig.resume(&claims, Some(&good), 2);
    assert_eq!(resumed, goes(&[answer(9, ACCEPT), answer(10, ACCEPT)]));
}

#[test]
fn the_same_retry_twice_waits_once_more_and_another_is_refused() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    let responses = accepting("elicitation-1");
    rig.resume(&claims, Some(&responses), 1);
    for _ in 0..3 {
        is_refused(&rig.resume(&claims, Some(&responses), 1000));
        assert_eq!(
            rig.resume(&claims, Some(&responses), 2),
            ResumeOutcome::Join
        );
    }
    is_refused(&rig.resume(&claims, Some(&responses), 2));
    is_refused(&rig.resume(
        &claims,
        Some(r#"{"elicitation-1":{"action":"decline"}}"#),
        2,
    ));
    for left in [false, false, false, true] {
        assert_eq!(rig.suspended.waiter_left(P, at(3)), left);
    }
    assert!(
        rig.suspended.is_empty(),
        "with the last one the call is cancelled"
    );
    is_refused(&rig.resume(&claims, Some(&responses), 4));
}

#[test]
fn a_question_that_was_not_shown_cannot_be_answered() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    assert_eq!(rig.suspend(&[10], 1), SuspendOutcome::Held);
    let both = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT}}}"#);
    let ResumeOutcome::Go {
        answers,
        missing: Some(second),
    } = rig.resume(&claims, Some(&both), 2)
    else {
        panic!("nothing is missing");
    };
    assert_eq!(answers, [answer(9, ACCEPT)]);
    let resumed = rig.resume(&second.claims, Some(&both), 3);
    assert_eq!(resumed, goes(&[answer(10, ACCEPT)]));
}

#[test]
fn a_withdrawn_question_gets_no_answer() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9, 10], 0).claims;
    rig.suspended.withdrawn(P, Id::number(9).as_ref());
    let both = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT}}}"#);
    let resumed = rig.resume(&claims, Some(&both), 1);
    assert_eq!(resumed, goes(&[answer(10, ACCEPT)]));

    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    rig.suspended.withdrawn(P, Id::number(9).as_ref());
    let resumed = rig.resume(&claims, Some(&accepting("elicitation-1")), 1);
    assert_eq!(
        resumed,
        goes(&[]),
        "the client waits for the end of the call"
    );
}

#[test]
fn without_room_the_server_is_answered_at_once() {
    let limits = SuspendLimits {
        per_principal: 1,
        total: 2,
        questions: 2,
        ..SuspendLimits::default()
    };
    let mut suspended = SuspendedCalls::new(limits);
    let mut suspend = |id: u8, principal, questions: &[i64]| {
        let questions = questions.iter().map(|id| question(*id)).collect();
        let id = SuspendedCallId::new([id; 16]);
        let outcome = suspended.suspend(id, binding(principal, 1), UPSTREAM, questions, at(0));
        (
            // The user has cancelled nothing.
            matches!(outcome, SuspendOutcome::Full(answers)
                if answers.iter().all(|answer| matches!(&answer.outcome, Outcome::Error(_)))),
            suspended.len(),
        )
    };
    assert_eq!(suspend(1, 1, &[1, 2, 3]), (true, 0), "too many questions");
    assert_eq!(suspend(1, 1, &[1]), (false, 1));
    assert_eq!(suspend(2, 1, &[2]), (true, 1), "too many of one principal");
    assert_eq!(suspend(3, 2, &[3]), (false, 2));
    assert_eq!(suspend(4, 3, &[4]), (true, 2), "too many");
    assert_eq!(
        suspend(1, 1, &[5]),
        (false, 2),
        "a second question of the same call"
    );
    assert_eq!(suspend(1, 1, &[6]), (true, 2), "a third");
}

/// Calls of a principal that has room keep their places, however many other principals wait.
#[test]
fn principals_without_room_are_known() {
    let limits = SuspendLimits {
        per_principal: 2,
        total: 4,
        ..SuspendLimits::default()
    };
    let mut suspended = SuspendedCalls::new(limits);
    let cells: [(u8, u8, &[u8]); 4] = [
        (1, 1, &[]),
        (2, 2, &[]),
        (3, 1, &[1, 3]),
        (4, 3, &[1, 2, 3, 4]),
    ];
    for (call, principal, full) in cells {
        let id = SuspendedCallId::new([call; 16]);
        let binding = binding(principal, 1);
        let asked = suspended.suspend(id, binding, UPSTREAM, std::vec![question(1)], at(0));
        assert!(matches!(asked, SuspendOutcome::Asked(_)));
        let full = full.iter().map(|id| SuspendedCallId::new([*id; 16]));
        assert_eq!(suspended.without_room(), full.collect(), "{call}");
    }
}

#[test]
fn claims_survive_the_way_there_and_back_and_nothing_else_passes() {
    let claims = Rig::new().asked(&[9], 5).claims;
    let bytes = claims.encode();
    assert!(bytes.len() < 256);
    assert_eq!(Claims::parse(&bytes), Some(claims));
    for end in 0..bytes.len() {
        assert_eq!(Claims::parse(&bytes[..end]), None, "{end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Claims::parse(&longer), None);
    for at in [0, 1] {
        let mut other = bytes.clone();
        other[at] ^= 0x40;
        assert_eq!(Claims::parse(&other), None, "another form or kind");
    }
}

#[test]
fn a_short_life_is_not_rounded_away() {
    let limits = SuspendLimits {
        ttl: Duration::from_millis(500),
        ..SuspendLimits::default()
    };
    let mut suspended = SuspendedCalls::new(limits);
    let outcome = suspended.suspend(P, binding(1, 1), UPSTREAM, [question(9)].into(), at(0));
    let SuspendOutcome::Asked(round) = outcome else {
        panic!("{outcome:?}");
    };
    let soon = at(0).after(Duration::from_millis(499));
    let responses = accepting("elicitation-1");
    let resumed = suspended.resume(&round.claims, &binding(1, 1), Some(&responses), soon);
    assert_eq!(resumed, goes(&[answer(9, ACCEPT)]));
}

/// BB-09: what all rounds of a call may take ends it, however long each of them may.
#[test]
fn rounds_do_not_make_a_call_endless() {
    let mut suspended = SuspendedCalls::new(SuspendLimits::default());
    suspended.limit_calls(Duration::from_secs(5));
    let ask = |suspended: &mut SuspendedCalls, now| {
        let asked = suspended.suspend(P, binding(1, 1), UPSTREAM, [question(9)].into(), now);
        let SuspendOutcome::Asked(round) = asked else {
            panic!("{asked:?}");
        };
        round
    };
    let first = ask(&mut suspended, at(0));
    let responses = accepting("elicitation-1");
    let resumed = suspended.resume(&first.claims, &binding(1, 1), Some(&responses), at(4));
    assert_eq!(resumed, goes(&[answer(9, ACCEPT)]));
    ask(&mut suspended, at(4));
    assert_eq!(suspended.expire(at(4)), []);
    assert_eq!(suspended.expire(at(5)).len(), 1);
}
