use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;
use std::{format, vec};

use mcpact_spec::{Method, Revision};
use serde_json::json as value;

use super::{at, json, pact};
use crate::input::{ClientReply, NextStep, Question, RoundLimits, Rounds};
use Revision::{V2025_03_26, V2025_06_18, V2025_11_25};

const EVERYTHING: &str = r#"{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
const SAMPLE: &str =
    r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;
const URL: &str =
    r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a"}}"#;
const MULTI: &str = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}}}}}"#;
const COMPLETE: &str = r#"{"resultType":"complete","content":[]}"#;
const ORIGINAL: &str = r#"{"name":"t","arguments":{"n": 1e400}}"#;

fn call(method: Method, revision: Revision, caps: &str) -> Rounds {
    let limits = RoundLimits::default();
    Rounds::new(
        method,
        pact(revision, caps),
        Revision::V2026_07_28,
        limits,
        at(0),
    )
}

fn tool() -> Rounds {
    call(Method::ToolsCall, V2025_11_25, EVERYTHING)
}

fn asking(requests: &[(&str, &str)], state: Option<&str>) -> String {
    let requests: Vec<_> = requests
        .iter()
        .map(|(key, raw)| format!("\"{key}\":{raw}"))
        .collect();
    let state = state.map_or(String::new(), |raw| format!(",\"requestState\":{raw}"));
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}}{state}}}"#,
        requests.join(",")
    )
}

fn step(rounds: &mut Rounds, result: &str, seconds: u64) -> NextStep {
    let mut minted = 0;
    rounds.server_result(result, at(seconds), &mut || {
        minted += 1;
        format!("minted-{seconds}-{minted}")
    })
}

fn asked(turn: NextStep) -> Vec<Question> {
    let NextStep::Ask(questions) = turn else {
        panic!("nothing is asked: {turn:?}");
    };
    questions
}

fn code(turn: &NextStep) -> i64 {
    let NextStep::Fail(error) = turn else {
        panic!("no failure: {turn:?}");
    };
    error.code
}

/// MR-01, MR-02, BA-06: every retry has the parameters of the call, the answers of its round and
/// the state of the last result, byte for byte or not at all; the client sees one call.
#[test]
fn rounds_repeat_the_call_with_the_latest_answers_and_state() {
    let mut rounds = tool();
    assert_eq!(rounds.next_params(ORIGINAL), ORIGINAL);
    let state = r#""S\u0031 é\/""#;
    let first = asking(&[("form", FORM), ("roots", ROOTS)], Some(state));
    let questions = asked(step(&mut rounds, &first, 1));
    let methods: Vec<_> = questions.iter().map(|q| (&*q.key, q.method)).collect();
    assert_eq!(
        methods,
        [
            ("form", Method::ElicitationCreate),
            ("roots", Method::RootsList)
        ]
    );
    let roots = r#"{"roots":[{"uri":"file:///a"}],"_meta":{}}"#;
    assert_eq!(
        rounds.client_reply("roots", ClientReply::Result(roots)),
        None
    );
    assert_eq!(rounds.open_questions().collect::<Vec<_>>(), ["form"]);
    let accept = r#"{"action":"accept","content":{"a":1}}"#;
    assert_eq!(
        rounds.client_reply("form", ClientReply::Result(accept)),
        Some(NextStep::Again)
    );
    let next = rounds.next_params(ORIGINAL);
    assert!(
        next.starts_with(r#"{"name":"t","arguments":{"n": 1e400},"#),
        "{next}"
    );
    assert!(
        next.contains(&format!(r#""requestState":{state}"#)),
        "{next}"
    );
    let without_huge = next.replace("1e400", "1");
    assert_eq!(
        json(&without_huge)["inputResponses"],
        value!({"form": {"action": "accept", "content": {"a": 1}}, "roots": {"roots": [{"uri": "file:///a"}]}})
    );

    let second = asking(&[("more", FORM)], None);
    asked(step(&mut rounds, &second, 2));
    let decline = ClientReply::Result(r#"{"action":"decline"}"#);
    assert_eq!(rounds.client_reply("more", decline), Some(NextStep::Again));
    let next = json(&rounds.next_params(r#"{"name":"t"}"#));
    let expected = value!({"name": "t", "inputResponses": {"more": {"action": "decline"}}});
    assert_eq!(next, expected, "no state came, so none goes");
    assert_eq!(step(&mut rounds, COMPLETE, 3), NextStep::Finish);
}

/// MR-03: another call of the same client knows nothing of the rounds of this one.
#[test]
fn a_call_carries_nothing_of_another() {
    let mut rounds = tool();
    asked(step(
        &mut rounds,
        &asking(&[("a", FORM)], Some(r#""S""#)),
        1,
    ));
    assert_eq!(tool().next_params(ORIGINAL), ORIGINAL);
    let stale = r#"{"name":"t","requestState":"x","inputResponses":{}}"#;
    assert_eq!(tool().next_params(stale), r#"{"name":"t"}"#);
}

/// MR-11, BA-04: a round with one question that the client did not declare is not asked at all.
#[test]
fn undeclared_questions_spoil_the_round() {
    let forms = r#"{"elicitation":{"form":{}}}"#;
    let cells = [
        ("sampling", V2025_11_25, forms, SAMPLE),
        ("roots", V2025_11_25, forms, ROOTS),
        ("a url", V2025_11_25, forms, URL),
        (
            "a url of a revision without",
            V2025_06_18,
            r#"{"elicitation":{}}"#,
            URL,
        ),
        (
            "elicitation before its time",
            V2025_03_26,
            r#"{"elicitation":{}}"#,
            FORM,
        ),
        (
            "tools in sampling",
            V2025_11_25,
            r#"{"sampling":{},"elicitation":{}}"#,
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#,
        ),
        (
            "tools in sampling of a revision without",
            V2025_06_18,
            r#"{"sampling":{},"elicitation":{}}"#,
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#,
        ),
        (
            "no question",
            V2025_11_25,
            EVERYTHING,
            r#"{"method":"tools/list"}"#,
        ),
        ("no method", V2025_11_25, EVERYTHING, "{}"),
        ("no object", V2025_11_25, EVERYTHING, "7"),
    ];
    for (name, revision, caps, bad) in cells {
        let mut rounds = call(Method::ToolsCall, revision, caps);
        let round = asking(&[("good", FORM), ("bad", bad)], None);
        assert_eq!(code(&step(&mut rounds, &round, 1)), -32603, "{name}");
        assert_eq!(rounds.open_questions().count(), 0, "{name}");
        let answer = ClientReply::Result(r#"{"action":"accept"}"#);
        assert_eq!(rounds.client_reply("good", answer), None, "{name}");
    }
}

#[test]
fn results_that_break_the_protocol_end_the_call() {
    let many: Vec<_> = (0..17).map(|n| n.to_string()).collect();
    let many: Vec<_> = many.iter().map(|key| (key.as_str(), FORM)).collect();
    let cells = [
        (
            Method::ToolsCall,
            r#"{"resultType":"input_required"}"#.to_string(),
        ),
        (Method::ToolsCall, r#"{"resultType":"dream"}"#.to_string()),
        (Method::ToolsCall, r#"{"resultType":7}"#.to_string()),
        (Method::ToolsCall, "[]".to_string()),
        (Method::ToolsCall, asking(&[], Some("7"))),
        (Method::ToolsCall, asking(&many, None)),
        (Method::ToolsList, asking(&[("a", FORM)], None)),
        (
            Method::ToolsCall,
            r#"{"resultType":"input_required","inputRequests":[]}"#.to_string(),
        ),
    ];
    for (method, result) in cells {
        let mut rounds = call(method, V2025_11_25, EVERYTHING);
        assert_eq!(code(&step(&mut rounds, &result, 1)), -32603, "{result}");
    }
    for (result, expected) in [
        ("{}", NextStep::Finish),
        (r#"{"resultType":null}"#, NextStep::Finish),
        (r#"{"resultType":"task"}"#, NextStep::Task),
    ] {
        assert_eq!(step(&mut tool(), result, 1), expected, "{result}");
    }
}

/// BA-07: there is no place for an error, so a form that failed counts as dismissed.
#[test]
fn a_failed_form_was_dismissed() {
    let cells = [
        ClientReply::Error(r#"{"code":-32603,"message":"no"}"#),
        ClientReply::Lost("the connection closed"),
        ClientReply::Result(r#"{"action":"dream"}"#),
        ClientReply::Result("7"),
    ];
    for answer in cells {
        let mut rounds = tool();
        asked(step(&mut rounds, &asking(&[("a", FORM)], None), 1));
        assert_eq!(
            rounds.client_reply("a", answer),
            Some(NextStep::Again),
            "{answer:?}"
        );
        let next = json(&rounds.next_params("{}"));
        assert_eq!(
            next,
            value!({"inputResponses": {"a": {"action": "cancel"}}})
        );
        assert_eq!(
            rounds.client_reply("a", answer),
            None,
            "the second answer is ignored"
        );
    }
}

/// BA-08: a rejected sample ends the call, and the server hears no more of it.
#[test]
fn a_failed_sample_ends_the_call() {
    let rejected = ClientReply::Error(r#"{"code":-1,"message":"rejected"}"#);
    for (method, question, word) in [
        (Method::ToolsCall, SAMPLE, "sampling/createMessage"),
        (Method::ToolsCall, ROOTS, "roots/list"),
    ] {
        let mut rounds = call(method, V2025_11_25, EVERYTHING);
        asked(step(
            &mut rounds,
            &asking(&[("s", question), ("a", FORM)], None),
            1,
        ));
        let Some(NextStep::Answer(result)) = rounds.client_reply("s", rejected) else {
            panic!("{word} goes on");
        };
        let text = format!("{word} was not completed by the client: rejected");
        let expected = value!({"content": [{"type": "text", "text": text}], "isError": true});
        assert_eq!(json(&result), expected);
        let open: Vec<_> = rounds.open_questions().collect();
        assert_eq!(open, ["a"], "the other question is to be withdrawn");
        let late = ClientReply::Result(r#"{"action":"accept"}"#);
        assert_eq!(
            rounds.client_reply("a", late),
            None,
            "one answer for one call"
        );
    }
    for method in [Method::PromptsGet, Method::ResourcesRead] {
        let mut rounds = call(method, V2025_11_25, EVERYTHING);
        asked(step(&mut rounds, &asking(&[("s", SAMPLE)], None), 1));
        let Some(NextStep::Fail(error)) = rounds.client_reply("s", rejected) else {
            panic!("{method} goes on");
        };
        assert_eq!(error.code, -32603);
        let data =
            value!({"inputRequest": "s", "clientError": {"code": -1, "message": "rejected"}});
        assert_eq!(json(&error.data.unwrap()), data);
    }
}

/// MR-04, BA-09: a server that only wants to be called again is, with growing pauses, and not for
/// ever.
#[test]
fn a_server_that_sheds_load_is_called_again_up_to_a_limit() {
    let mut rounds = tool();
    let mut pauses = vec![];
    for n in 0..10 {
        let busy = format!(r#"{{"resultType":"input_required","requestState":"{n}"}}"#);
        let NextStep::Wait(pause) = step(&mut rounds, &busy, 1) else {
            panic!("no pause in round {n}");
        };
        pauses.push(pause.as_millis());
        let next = json(&rounds.next_params("{}"));
        assert_eq!(next, value!({"requestState": n.to_string()}));
    }
    let expected = [200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000, 10000];
    assert_eq!(pauses, expected);
    let busy = r#"{"resultType":"input_required","requestState":"x"}"#;
    assert_eq!(code(&step(&mut rounds, busy, 1)), -32603);
}

#[test]
fn a_server_that_never_stops_asking_is_stopped() {
    let mut rounds = tool();
    for _ in 0..10 {
        asked(step(&mut rounds, &asking(&[("a", FORM)], None), 1));
        let accept = ClientReply::Result(r#"{"action":"accept"}"#);
        assert_eq!(rounds.client_reply("a", accept), Some(NextStep::Again));
    }
    let turn = step(&mut rounds, &asking(&[("a", FORM)], None), 1);
    assert_eq!(code(&turn), -32603);
    assert_eq!(
        rounds.open_questions().count(),
        0,
        "what is not asked is not withdrawn"
    );
}

/// BA-10: when the client cancels, the machine knows what is to be withdrawn from it.
#[test]
fn a_cancelled_call_names_its_open_questions() {
    let mut rounds = tool();
    asked(step(&mut rounds, &asking(&[("a", FORM)], None), 1));
    rounds.client_reply("a", ClientReply::Result(r#"{"action":"accept"}"#));
    asked(step(
        &mut rounds,
        &asking(&[("b", FORM), ("c", ROOTS)], None),
        2,
    ));
    assert_eq!(rounds.open_questions().collect::<Vec<_>>(), ["b", "c"]);
}

/// MR-10: only what came at once may be cached.
#[test]
fn results_after_a_question_are_not_first() {
    let mut rounds = call(Method::ResourcesRead, V2025_11_25, EVERYTHING);
    asked(step(&mut rounds, &asking(&[("a", FORM)], None), 1));
    rounds.client_reply("a", ClientReply::Result(r#"{"action":"accept"}"#));
    assert_eq!(step(&mut rounds, COMPLETE, 1), NextStep::Finish);
}

#[test]
fn forms_follow_the_revision_of_the_client_or_are_dismissed() {
    let mut rounds = call(Method::ToolsCall, V2025_06_18, r#"{"elicitation":{}}"#);
    let hopeless = MULTI.replace(r#""enum":["x"]"#, r#""pattern":"x""#);
    let round = asking(&[("h", &hopeless), ("m", MULTI), ("f", FORM)], None);
    let questions = asked(step(&mut rounds, &round, 1));
    let asked_for: Vec<_> = questions
        .iter()
        .map(|question| {
            (
                &*question.key,
                json(&question.params)["requestedSchema"].clone(),
            )
        })
        .collect();
    let boxes = value!({"type": "object", "properties": {"a_1": {"type": "boolean", "title": "a: x"}}, "required": []});
    let plain = value!({"type": "object", "properties": {}});
    assert_eq!(asked_for, [("m", boxes), ("f", plain)]);
    let accept = r#"{"action":"accept","content":{"a_1":true}}"#;
    assert_eq!(rounds.client_reply("m", ClientReply::Result(accept)), None);
    let accept = r#"{"action":"accept","content":{}}"#;
    assert_eq!(
        rounds.client_reply("f", ClientReply::Result(accept)),
        Some(NextStep::Again)
    );
    let next = json(&rounds.next_params("{}"));
    let responses = value!({
        "h": {"action": "cancel"},
        "m": {"action": "accept", "content": {"a": ["x"]}},
        "f": {"action": "accept", "content": {}},
    });
    assert_eq!(next["inputResponses"], responses);

    let turn = step(&mut rounds, &asking(&[("h", &hopeless)], None), 2);
    assert_eq!(turn, NextStep::Again, "there is nothing to wait for");
    let able = asked(step(&mut tool(), &asking(&[("m", MULTI)], None), 1));
    assert!(
        able[0].params.contains(r#""type":"array""#),
        "who has choices gets them"
    );
}

#[test]
fn a_sender_refrains_from_what_would_be_ignored() {
    let context = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"includeContext":"allServers"}}"#;
    let cells = [
        (V2025_11_25, r#"{"sampling":{}}"#, false),
        (V2025_11_25, r#"{"sampling":{"context":{}}}"#, true),
        (V2025_06_18, r#"{"sampling":{}}"#, true),
    ];
    for (revision, caps, stays) in cells {
        let mut rounds = call(Method::ToolsCall, revision, caps);
        let questions = asked(step(&mut rounds, &asking(&[("s", context)], None), 1));
        let params = json(&questions[0].params);
        assert_eq!(
            params.get("includeContext").is_some(),
            stays,
            "{revision} {caps}"
        );
    }
}

#[test]
fn a_url_is_shown_once_and_waited_for() {
    let mut rounds = tool();
    let question = asked(step(&mut rounds, &asking(&[("u", URL)], Some(r#""1""#)), 1));
    let params = json(&question[0].params);
    assert_eq!(params["elicitationId"], "minted-1-1");
    let accept = ClientReply::Result(r#"{"action":"accept"}"#);
    assert_eq!(rounds.client_reply("u", accept), Some(NextStep::Again));

    for (n, pause) in [5, 10, 15, 15].into_iter().chain([15; 30]).enumerate() {
        let state = format!("\"{}\"", n + 2);
        let turn = step(&mut rounds, &asking(&[("again", URL)], Some(&state)), 2);
        assert_eq!(
            turn,
            NextStep::Wait(Duration::from_secs(pause)),
            "after {n}"
        );
        let next = json(&rounds.next_params("{}"));
        let expected = value!({"inputResponses": {"again": {"action": "accept"}}, "requestState": (n + 2).to_string()});
        assert_eq!(next, expected);
    }
    let turn = step(
        &mut rounds,
        &asking(&[("again", URL), ("f", FORM)], None),
        3,
    );
    assert_eq!(asked(turn).len(), 1, "only what is new is asked");

    let mut late = rounds.clone();
    step(
        &mut late,
        &asking(&[("again", URL)], Some(r#""last""#)),
        599,
    );
    let NextStep::Fail(error) = late.late() else {
        panic!("the deadline passed");
    };
    assert_eq!(error.code, -32042);
    let data = value!({"elicitations": [{"mode": "url", "elicitationId": "minted-1-1", "url": "https://a", "message": "m"}]});
    assert_eq!(json(&error.data.unwrap()), data);
    let next = json(&late.next_params("{}"));
    assert_eq!(next["requestState"], "last");
}

#[test]
fn a_refused_url_may_be_shown_again() {
    let mut rounds = tool();
    for _ in 0..2 {
        asked(step(&mut rounds, &asking(&[("u", URL)], None), 1));
        let decline = ClientReply::Result(r#"{"action":"decline"}"#);
        assert_eq!(rounds.client_reply("u", decline), Some(NextStep::Again));
    }
}

#[test]
fn nothing_lasts_longer_than_its_deadline() {
    let mut rounds = tool();
    assert_eq!(rounds.deadline(), at(600));
    assert_eq!(code(&rounds.late()), -32603, "the server is silent");

    let mut rounds = tool();
    let turn = step(&mut rounds, &asking(&[("a", FORM)], None), 600);
    assert_eq!(code(&turn), -32603, "no question after the deadline");

    let mut rounds = tool();
    asked(step(&mut rounds, &asking(&[("a", FORM)], None), 1));
    let NextStep::Answer(result) = rounds.late() else {
        panic!("the user is silent");
    };
    assert!(
        result.contains("elicitation/create was not completed"),
        "{result}"
    );
    assert_eq!(rounds.open_questions().collect::<Vec<_>>(), ["a"]);
    let answer = ClientReply::Result(r#"{"action":"accept"}"#);
    assert_eq!(rounds.client_reply("a", answer), None, "too late");
    assert_eq!(
        step(&mut tool(), COMPLETE, 900),
        NextStep::Finish,
        "an answer is an answer"
    );
}
