use alloc::sync::Arc;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::pact::Party;
use mcpact_spec::{Capability, Side};

use super::*;

const LIMITS: HostLimits = HostLimits {
    tasks: 4,
    per_owner: 3,
    per_task: 2,
    longest: Duration::from_secs(60),
    poll: Duration::from_secs(5),
    page: 2,
};

fn at(seconds: u64) -> Timestamp<'static> {
    Timestamp {
        moment: Moment::at(Duration::from_secs(seconds)),
        stamp: "2026-01-01T00:00:00Z",
    }
}

fn client(rows: &[Capability]) -> Pact {
    let party = |owner, rows: &[Capability]| Party {
        info: None,
        capabilities: Arc::new(CapabilitySet::declaring(owner, rows.iter().copied())),
    };
    Pact::new(CORE, party(Side::Client, rows), party(Side::Server, &[]))
}

fn hosted() -> HostedTasks {
    let mut hosted = HostedTasks::new(LIMITS);
    let wish = Some(r#"{"ttl":30000}"#);
    let created = hosted.create("t", "me".into(), wish, at(0)).unwrap();
    assert_eq!(
        created,
        r#"{"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":30000,"pollInterval":5000}}"#
    );
    hosted
}

fn polled(hosted: &mut HostedTasks, detailed: &str) -> Vec<Action> {
    let all = client(&[Capability::ElicitationUrl, Capability::Sampling]);
    let mut mint = || String::from("minted");
    hosted.polled("t", detailed, &all, at(1), &mut mint)
}

fn status(hosted: &HostedTasks) -> String {
    let task = hosted.get("t", "me").unwrap();
    Object::parse(&task)
        .unwrap()
        .get_str("status")
        .unwrap()
        .into_owned()
}

fn poll(milliseconds: u64) -> Action {
    Action::Poll {
        task: "t".into(),
        upstream: "up".into(),
        after: Duration::from_millis(milliseconds),
    }
}

fn cancel(upstream: Option<&str>) -> Action {
    Action::Cancel {
        task: "t".into(),
        upstream: upstream.map(Box::from),
    }
}

fn code(outcome: &Outcome) -> Option<i64> {
    match outcome {
        Outcome::Result(_) => None,
        Outcome::Error(raw) => mcpact_wire::model::error::ErrorBody::parse(raw).map(|e| e.code),
    }
}

fn retrieved(hosted: &mut HostedTasks) -> Outcome {
    match hosted.result("t", "me", 9).unwrap() {
        ResultLookup::Now(outcome) => outcome,
        ResultLookup::Later(acts) => panic!("not over: {acts:?}"),
    }
}

const STARTED: &str = r#"{"resultType":"task","taskId":"up","status":"input_required","ttlMs":20000,"pollIntervalMs":1000}"#;

/// BA-22: a task is there at once, follows the server's, and ends with the tool's result.
#[test]
fn a_task_follows_the_servers_task() {
    let mut hosted = hosted();
    assert_eq!(hosted.started("t", STARTED), [poll(1000)]);
    assert_eq!(status(&hosted), "working", "whatever the seed says");
    assert!(hosted.get("t", "me").unwrap().contains(r#""ttl":20000,"#));
    let working = r#"{"taskId":"up","status":"working","statusMessage":"half","pollIntervalMs":0}"#;
    assert_eq!(polled(&mut hosted, working), [poll(100)]);
    assert!(hosted.get("t", "me").unwrap().contains(r#""half""#));
    assert_eq!(
        hosted.result("t", "me", 7),
        Ok(ResultLookup::Later(Vec::new()))
    );
    let done = r#"{"resultType":"complete","taskId":"up","status":"completed","result":{"resultType":"complete","content":[]}}"#;
    let outcome = Outcome::Result(
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#.into(),
    );
    let answer = Action::Answer {
        waiter: 7,
        outcome: outcome.clone(),
    };
    assert_eq!(polled(&mut hosted, done), [answer]);
    assert_eq!(status(&hosted), "completed");
    assert_eq!(
        retrieved(&mut hosted),
        outcome,
        "as often as it is asked for"
    );
}

/// BA-23: a tool that reports an error has failed, and its result says how.
#[test]
fn endings_have_the_form_of_the_client() {
    let missing = r#"{"taskId":"up","status":"failed","error":{"code":-32020,"message":"m"}}"#;
    let cells = [
        (
            "an error of the tool",
            r#"{"status":"completed","result":{"content":[],"isError":true}}"#,
            "failed",
            None,
        ),
        ("an error of the protocol", missing, "failed", Some(-32603)),
        ("no error", r#"{"status":"failed"}"#, "failed", Some(-32603)),
        ("no sense", r#"{"status":"asleep"}"#, "failed", Some(-32603)),
        (
            "no result",
            r#"{"status":"completed","result":[]}"#,
            "failed",
            Some(-32603),
        ),
        (
            "cancelled by the server",
            r#"{"status":"cancelled"}"#,
            "cancelled",
            Some(-32603),
        ),
    ];
    for (name, detailed, expected, error) in cells {
        let mut hosted = hosted();
        let _ = hosted.started("t", STARTED);
        assert_eq!(polled(&mut hosted, detailed), [], "{name}");
        assert_eq!(status(&hosted), expected, "{name}");
        assert_eq!(code(&retrieved(&mut hosted)), error, "{name}");
    }
}

#[test]
fn a_plain_call_is_a_task_as_well() {
    let mut hosted = hosted();
    hosted.waits("t", Status::InputRequired, at(1));
    assert_eq!(status(&hosted), "input_required");
    hosted.waits("t", Status::Working, at(2));
    assert_eq!(status(&hosted), "working");
    let result = Outcome::Result(r#"{"content":[]}"#.into());
    assert_eq!(hosted.finished("t", result.clone(), at(3)), []);
    assert_eq!(status(&hosted), "completed");
    hosted.waits("t", Status::Working, at(4));
    assert_eq!(hosted.finished("t", Outcome::Error("{}".into()), at(4)), []);
    assert_eq!(status(&hosted), "completed", "nothing after the end");
}

#[test]
fn questions_are_asked_once_and_of_a_client_that_waits() {
    let mut hosted = hosted();
    let _ = hosted.started("t", STARTED);
    let asks = r#"{"status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x"}}}}"#;
    assert_eq!(polled(&mut hosted, asks), [poll(1000)]);
    assert_eq!(status(&hosted), "input_required");
    let question = Action::Ask {
        task: "t".into(),
        question: Question {
            key: "a".into(),
            method: Method::ElicitationCreate,
            params: r#"{"mode":"url","message":"m","url":"https://x","elicitationId":"minted","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#.into(),
        },
    };
    let later = hosted.result("t", "me", 7).unwrap();
    assert_eq!(later, ResultLookup::Later(Vec::from([question])));
    assert_eq!(
        polled(&mut hosted, asks),
        [poll(1000)],
        "the same key again"
    );
    let update = |answer: &str| Action::Update {
        params: format!(r#"{{"taskId":"up","inputResponses":{{"a":{answer}}}}}"#),
    };
    let accept = r#"{"action":"accept"}"#;
    assert_eq!(
        hosted.answered("t", "a", Some(accept), at(2)),
        [update(accept)]
    );
    let dismissed = hosted.answered("t", "a", None, at(2));
    assert_eq!(dismissed, [update(r#"{"action":"cancel"}"#)]);
    assert_eq!(
        hosted.answered("t", "b", Some("{}"), at(2)),
        [],
        "never asked"
    );
}

#[test]
fn what_cannot_be_asked_or_answered_ends_the_task() {
    let sample = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    let cells = [
        ("undeclared", r#"{"a":{"method":"roots/list"}}"#.into()),
        ("no question", r#"{"a":{"method":"tools/call"}}"#.into()),
        ("no method", r#"{"a":{"method":"x"}}"#.into()),
        (
            "too many",
            format!(r#"{{"a":{sample},"b":{sample},"c":{sample}}}"#),
        ),
        ("malformed", String::from("[]")),
    ];
    for (name, asks) in cells {
        let mut hosted = hosted();
        let _ = hosted.started("t", STARTED);
        let asks = format!(r#"{{"status":"input_required","inputRequests":{asks}}}"#);
        assert_eq!(polled(&mut hosted, &asks), [cancel(Some("up"))], "{name}");
        assert_eq!(code(&retrieved(&mut hosted)), Some(-32603), "{name}");
    }
    let mut hosted = hosted();
    let _ = hosted.started("t", STARTED);
    let asks = format!(r#"{{"status":"input_required","inputRequests":{{"a":{sample}}}}}"#);
    let _ = polled(&mut hosted, &asks);
    assert_eq!(hosted.answered("t", "a", None, at(2)), [cancel(Some("up"))]);
    assert_eq!(status(&hosted), "failed");
}

#[test]
fn a_cancelled_task_stays_cancelled() {
    let mut hosted = hosted();
    let _ = hosted.started("t", STARTED);
    let _ = hosted.result("t", "me", 7);
    let _ = hosted.result("t", "me", 8);
    hosted.left(8);
    let (task, acts) = hosted.cancel("t", "me", at(2)).unwrap();
    assert!(task.contains(r#""status":"cancelled""#));
    assert_eq!(acts[0], cancel(Some("up")));
    assert!(
        matches!(&acts[1..], [Action::Answer { waiter: 7, outcome }] if code(outcome) == Some(-32603))
    );
    assert_eq!(hosted.cancel("t", "me", at(3)).unwrap_err().code, -32602);
    assert_eq!(
        polled(&mut hosted, r#"{"status":"completed","result":{}}"#),
        []
    );
    assert_eq!(status(&hosted), "cancelled");
    assert_eq!(code(&retrieved(&mut hosted)), Some(-32603));

    let mut early = super::tests::hosted();
    let (_, acts) = early.cancel("t", "me", at(2)).unwrap();
    assert_eq!(acts, [cancel(None)], "the call itself");
    assert_eq!(
        early.started("t", STARTED),
        [cancel(Some("up"))],
        "too late"
    );
    assert_eq!(
        early.started("gone", STARTED).len(),
        1,
        "no request waits for it"
    );
}

#[test]
fn tasks_belong_to_their_owner_and_have_limits() {
    let mut hosted = hosted();
    assert_eq!(hosted.get("t", "you").unwrap_err().code, -32602);
    assert_eq!(hosted.result("t", "you", 1).unwrap_err().code, -32602);
    assert_eq!(hosted.cancel("t", "you", at(1)).unwrap_err().code, -32602);
    assert_eq!(hosted.list("you", None).unwrap(), r#"{"tasks":[]}"#);
    for task in ["u", "v"] {
        hosted.create(task, "me".into(), None, at(1)).unwrap();
    }
    assert_eq!(
        hosted
            .create("w", "me".into(), None, at(1))
            .unwrap_err()
            .code,
        -32603
    );
    hosted.create("w", "you".into(), None, at(1)).unwrap();
    assert_eq!(
        hosted
            .create("x", "us".into(), None, at(1))
            .unwrap_err()
            .code,
        -32603
    );
    let first = hosted.list("me", None).unwrap();
    let first = Object::parse(&first).unwrap();
    let cursor = first.get_str("nextCursor").unwrap();
    assert_eq!(
        mcpact_wire::raw::elements(first.get("tasks").unwrap())
            .unwrap()
            .len(),
        2
    );
    let second = hosted.list("me", Some(&cursor)).unwrap();
    assert!(second.contains(r#""taskId":"v""#) && !second.contains("nextCursor"));
    assert_eq!(hosted.list("me", Some("x")).unwrap_err().code, -32602);
    for waiter in 0..2 {
        assert_eq!(
            hosted.result("t", "me", waiter),
            Ok(ResultLookup::Later(Vec::new()))
        );
    }
    assert_eq!(hosted.result("t", "me", 2).unwrap_err().code, -32603);
}

#[test]
fn tasks_expire_with_what_they_asked_for() {
    let mut hosted = hosted();
    hosted
        .create("u", "me".into(), Some(r#"{"ttl":999999999}"#), at(0))
        .unwrap();
    let _ = hosted.result("t", "me", 7);
    assert_eq!(
        hosted.next_deadline(),
        Some(at(30).moment),
        "what was asked for"
    );
    assert_eq!(hosted.expire(at(29).moment), []);
    let acts = hosted.expire(at(30).moment);
    assert_eq!(acts[0], cancel(None));
    assert!(matches!(&acts[1..], [Action::Answer { waiter: 7, .. }]));
    assert_eq!(hosted.get("t", "me").unwrap_err().code, -32602);
    assert_eq!(hosted.next_deadline(), Some(at(60).moment), "the longest");
    assert_eq!(polled(&mut hosted, r#"{"status":"working"}"#), []);
}
