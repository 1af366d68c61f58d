use std::format;
use std::time::Duration;
use std::vec::Vec;

use mcpact_spec::{Method, Revision};
use mcpact_wire::id::Id;
use serde_json::json as value;

use super::{at, binding, json};
use crate::input::{
    Claims, Ended, Outcome, ParkId, ParkLimits, Parked, Parks, Resume, Round, ServerAnswer,
    ServerQuestion, input_required,
};

const UPSTREAM: Revision = Revision::V2025_11_25;
const P: ParkId = ParkId::new([7; 16]);
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

/// The table, driven by somebody's one call.
struct Rig {
    parks: Parks,
}

impl Rig {
    fn new() -> Self {
        let parks = Parks::new(ParkLimits::default());
        Self { parks }
    }

    fn park(&mut self, questions: &[i64], seconds: u64) -> Parked {
        let questions = questions.iter().map(|id| question(*id)).collect();
        self.parks
            .park(P, binding(1, 1), UPSTREAM, questions, at(seconds))
    }

    fn asked(&mut self, questions: &[i64], seconds: u64) -> Round {
        let parked = self.park(questions, seconds);
        let Parked::Asked(round) = parked else {
            panic!("nothing is asked: {parked:?}");
        };
        round
    }

    fn resume(&mut self, claims: &Claims, responses: Option<&str>, seconds: u64) -> Resume {
        self.parks
            .resume(claims, &binding(1, 1), responses, at(seconds))
    }
}

fn accepting(key: &str) -> std::string::String {
    format!(r#"{{"{key}":{ACCEPT}}}"#)
}

fn goes(answers: &[ServerAnswer]) -> Resume {
    Resume::Go {
        answers: answers.to_vec(),
        missing: None,
    }
}

#[track_caller]
fn is_refused(resume: &Resume) {
    let Resume::Refused { error, .. } = resume else {
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
fn a_call_is_parked_and_continued_round_by_round() {
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
    let ended = rig.parks.ended(P, outcome.clone(), at(31));
    assert_eq!(ended, Ended::Deliver(outcome));
    assert!(rig.parks.is_empty());
    is_refused(&rig.resume(&second.claims, Some(&accepting("elicitation-2")), 32));
}

/// BB-07: a client that does not come back has dismissed the form; nothing is left of the call.
#[test]
fn a_park_that_nobody_continues_expires() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    let more = [
        ask(Method::SamplingCreateMessage, 10),
        ask(Method::RootsList, 11),
    ];
    let held = rig
        .parks
        .park(P, binding(1, 1), UPSTREAM, more.into(), at(100));
    assert_eq!(held, Parked::Held, "nobody waits who could be told");
    assert_eq!(rig.parks.next_deadline(), Some(at(300)));
    assert_eq!(rig.parks.expire(at(299)), []);
    let expired = rig.parks.expire(at(300));
    let [expired] = expired.as_slice() else {
        panic!("{expired:?}");
    };
    assert_eq!(expired.park, P);
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
    assert!(rig.parks.is_empty());
    is_refused(&rig.resume(&claims, Some(&accepting("elicitation-1")), 301));
    assert_eq!(rig.parks.next_deadline(), Some(at(360)), "the tombstone");
    assert_eq!(rig.parks.expire(at(360)), []);
    assert_eq!(rig.parks.next_deadline(), None);
    let late = rig.parks.ended(P, done("{}"), at(361));
    assert_eq!(late, Ended::Dropped);
}

/// BB-07: the same before its time, where nobody could come back any more.
#[test]
fn what_nobody_can_come_back_to_is_given_up() {
    let mut rig = Rig::new();
    let asked = rig.asked(&[9], 0);
    assert_eq!(rig.parks.abandon(|park| park != P, at(1)), [], "another's");
    let given_up = rig.parks.abandon(|_| true, at(1));
    let [park] = given_up.as_slice() else {
        panic!("{given_up:?}");
    };
    assert_eq!(park.answers, [answer(9, r#"{"action":"cancel"}"#)]);
    assert!(rig.parks.is_empty());
    is_refused(&rig.resume(&asked.claims, Some(&accepting("elicitation-1")), 2));
    // A call that a request of the client waits for is its own affair.
    let mut rig = Rig::new();
    let asked = rig.asked(&[9], 0);
    rig.resume(&asked.claims, Some(&accepting("elicitation-1")), 1);
    assert_eq!(rig.parks.abandon(|_| true, at(2)), []);
    let outcome = done("{}");
    let ended = rig.parks.ended(P, outcome.clone(), at(3));
    assert_eq!(ended, Ended::Deliver(outcome));
}

/// BB-08: what the server made of a parked call is told once, whatever the client brings.
#[test]
fn an_outcome_waits_for_the_client_and_is_told_once() {
    for outcome in [done("{}"), Outcome::Error("{}".into())] {
        let mut rig = Rig::new();
        let claims = rig.asked(&[9], 0).claims;
        assert_eq!(rig.parks.ended(P, outcome.clone(), at(1)), Ended::Kept);
        let second = rig.parks.ended(P, done("other"), at(2));
        assert_eq!(second, Ended::Dropped, "a call ends once");
        let asks = rig.park(&[10], 2);
        assert!(
            matches!(asks, Parked::Full(_)),
            "an ended call asks nothing"
        );
        assert_eq!(rig.resume(&claims, Some("7"), 3), Resume::Done(outcome));
        assert!(rig.parks.is_empty());
        is_refused(&rig.resume(&claims, None, 4));
    }
    let mut rig = Rig::new();
    rig.asked(&[9], 0);
    rig.parks.ended(P, done("{}"), at(1));
    assert_eq!(rig.parks.expire(at(300)), [], "nothing is left to answer");
    assert!(rig.parks.is_empty());
}

/// BB-09: a park that is gone cannot be continued, and nothing says to call the tool again.
#[test]
fn a_lost_park_is_refused() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    rig.parks = Parks::new(ParkLimits::default());
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
        let resumed = rig.parks.resume(&claims, &other, Some(&responses), at(1));
        is_refused(&resumed);
        let forged = Claims {
            binding: other,
            ..claims
        };
        is_refused(&rig.parks.resume(&forged, &other, Some(&responses), at(1)));
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
    let Resume::Go {
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

    let Resume::Go {
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
        "nobody is answered twice"
    );
}

#[test]
fn answers_that_are_none_change_nothing() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9, 10], 0).claims;
    let mixed = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{{"action":"dream"}}}}"#);
    for bad in ["7", "[]", r#"{"elicitation-1":{}}"#, mixed.as_str()] {
        let Resume::Refused { error, .. } = rig.resume(&claims, Some(bad), 1) else {
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
        assert_eq!(rig.resume(&claims, Some(&responses), 2), Resume::Join);
    }
    is_refused(&rig.resume(&claims, Some(&responses), 2));
    is_refused(&rig.resume(
        &claims,
        Some(r#"{"elicitation-1":{"action":"decline"}}"#),
        2,
    ));
    for left in [false, false, false, true] {
        assert_eq!(rig.parks.waiter_left(P, at(3)), left);
    }
    assert!(
        rig.parks.is_empty(),
        "with the last one the call is cancelled"
    );
    is_refused(&rig.resume(&claims, Some(&responses), 4));
}

#[test]
fn a_question_that_was_not_shown_cannot_be_answered() {
    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    assert_eq!(rig.park(&[10], 1), Parked::Held);
    let both = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT}}}"#);
    let Resume::Go {
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
    rig.parks.withdrawn(P, Id::number(9).as_ref());
    let both = format!(r#"{{"elicitation-1":{ACCEPT},"elicitation-2":{ACCEPT}}}"#);
    let resumed = rig.resume(&claims, Some(&both), 1);
    assert_eq!(resumed, goes(&[answer(10, ACCEPT)]));

    let mut rig = Rig::new();
    let claims = rig.asked(&[9], 0).claims;
    rig.parks.withdrawn(P, Id::number(9).as_ref());
    let resumed = rig.resume(&claims, Some(&accepting("elicitation-1")), 1);
    assert_eq!(
        resumed,
        goes(&[]),
        "the client waits for the end of the call"
    );
}

#[test]
fn where_there_is_no_room_the_server_is_answered_at_once() {
    let limits = ParkLimits {
        per_principal: 1,
        total: 2,
        questions: 2,
        ..ParkLimits::default()
    };
    let mut parks = Parks::new(limits);
    let mut park = |id: u8, principal, questions: &[i64]| {
        let questions = questions.iter().map(|id| question(*id)).collect();
        let id = ParkId::new([id; 16]);
        let parked = parks.park(id, binding(principal, 1), UPSTREAM, questions, at(0));
        (
            matches!(parked, Parked::Full(answers) if !answers.is_empty()),
            parks.len(),
        )
    };
    assert_eq!(park(1, 1, &[1, 2, 3]), (true, 0), "too many questions");
    assert_eq!(park(1, 1, &[1]), (false, 1));
    assert_eq!(park(2, 1, &[2]), (true, 1), "too many of one principal");
    assert_eq!(park(3, 2, &[3]), (false, 2));
    assert_eq!(park(4, 3, &[4]), (true, 2), "too many");
    assert_eq!(
        park(1, 1, &[5]),
        (false, 2),
        "a second question of the same call"
    );
    assert_eq!(park(1, 1, &[6]), (true, 2), "a third");
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
    let limits = ParkLimits {
        ttl: Duration::from_millis(500),
        ..ParkLimits::default()
    };
    let mut parks = Parks::new(limits);
    let parked = parks.park(P, binding(1, 1), UPSTREAM, [question(9)].into(), at(0));
    let Parked::Asked(round) = parked else {
        panic!("{parked:?}");
    };
    let soon = at(0).after(Duration::from_millis(499));
    let responses = accepting("elicitation-1");
    let resumed = parks.resume(&round.claims, &binding(1, 1), Some(&responses), soon);
    assert_eq!(resumed, goes(&[answer(9, ACCEPT)]));
}

/// BB-09: what all rounds of a call may take ends it, however long each of them may.
#[test]
fn rounds_do_not_make_a_call_endless() {
    let mut parks = Parks::new(ParkLimits::default());
    parks.limit_calls(Duration::from_secs(5));
    let ask = |parks: &mut Parks, now| {
        let asked = parks.park(P, binding(1, 1), UPSTREAM, [question(9)].into(), now);
        let Parked::Asked(round) = asked else {
            panic!("{asked:?}");
        };
        round
    };
    let first = ask(&mut parks, at(0));
    let responses = accepting("elicitation-1");
    let resumed = parks.resume(&first.claims, &binding(1, 1), Some(&responses), at(4));
    assert_eq!(resumed, goes(&[answer(9, ACCEPT)]));
    ask(&mut parks, at(4));
    assert_eq!(parks.expire(at(4)), []);
    assert_eq!(parks.expire(at(5)).len(), 1);
}
