use mcpact_spec::{Capability, Method, ParamGate, Revision, Violation};
use serde_json::{Value, json as value};

use super::{json, pact};
use crate::input::{QuestionRefusal, question_to_modern};
use Revision::{V2025_11_25, V2026_07_28};

const FORM: &str = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;

fn to_modern(method: Method, params: &str, caps: &str) -> Result<Value, QuestionRefusal> {
    let adapted = question_to_modern(method, Some(params), V2025_11_25, &pact(V2026_07_28, caps));
    adapted.map(|raw| json(&raw))
}

#[test]
fn questions_are_embedded_without_what_only_a_request_has() {
    let elicit = Method::ElicitationCreate;
    let sample = Method::SamplingCreateMessage;
    let cells = [
        (
            elicit,
            r#"{"mode":"form","message":"m","requestedSchema":{},"_meta":{"progressToken":1},"task":{}}"#,
            r#"{"elicitation":{}}"#,
            value!({"mode": "form", "message": "m", "requestedSchema": {}}),
        ),
        (
            elicit,
            r#"{"mode":"url","message":"m","url":"https://a","elicitationId":"1"}"#,
            r#"{"elicitation":{"url":{}}}"#,
            value!({"mode": "url", "message": "m", "url": "https://a"}),
        ),
        (
            sample,
            r#"{"messages":[],"maxTokens":1,"includeContext":"thisServer","task":{},"_meta":{}}"#,
            r#"{"sampling":{}}"#,
            value!({"messages": [], "maxTokens": 1}),
        ),
        (
            sample,
            r#"{"messages":[],"maxTokens":1,"includeContext":"none","tools":[]}"#,
            r#"{"sampling":{"tools":{}}}"#,
            value!({"messages": [], "maxTokens": 1, "includeContext": "none", "tools": []}),
        ),
        (
            sample,
            r#"{"messages":[],"maxTokens":1,"includeContext":"thisServer"}"#,
            r#"{"sampling":{"context":{}}}"#,
            value!({"messages": [], "maxTokens": 1, "includeContext": "thisServer"}),
        ),
    ];
    for (method, params, caps, expected) in cells {
        let expected = value!({"method": method.as_str(), "params": expected});
        assert_eq!(
            to_modern(method, params, caps).unwrap(),
            expected,
            "{params}"
        );
    }
    let roots = to_modern(Method::RootsList, r#"{"_meta":{}}"#, r#"{"roots":{}}"#);
    assert_eq!(roots.unwrap(), value!({"method": "roots/list"}));
}

/// BB-29: the server hears why, and it is known what the client would have had to declare.
#[test]
fn undeclared_questions_are_answered_and_remembered() {
    let elicit = Method::ElicitationCreate;
    let url = r#"{"mode":"url","message":"m","url":"u","elicitationId":"1"}"#;
    let tools = r#"{"messages":[],"maxTokens":1,"tools":[]}"#;
    let sample = Method::SamplingCreateMessage;
    let cells = [
        (elicit, FORM, "{}", -32601, Some(Capability::Elicitation)),
        (elicit, url, "{}", -32601, Some(Capability::ElicitationUrl)),
        (
            elicit,
            url,
            r#"{"elicitation":{}}"#,
            -32602,
            Some(Capability::ElicitationUrl),
        ),
        (
            elicit,
            FORM,
            r#"{"elicitation":{"url":{}}}"#,
            -32602,
            Some(Capability::ElicitationForm),
        ),
        (sample, tools, "{}", -32601, Some(Capability::SamplingTools)),
        (
            sample,
            tools,
            r#"{"sampling":{}}"#,
            -32602,
            Some(Capability::SamplingTools),
        ),
        (
            Method::RootsList,
            "{}",
            "{}",
            -32601,
            Some(Capability::Roots),
        ),
        (Method::ToolsList, "{}", "{}", -32601, None),
        (elicit, "[]", r#"{"elicitation":{}}"#, -32602, None),
    ];
    for (method, params, caps, code, missing) in cells {
        let unasked = to_modern(method, params, caps).unwrap_err();
        assert_eq!(
            (unasked.answer.code, unasked.missing),
            (code, missing),
            "{method} {caps}"
        );
    }
}

/// Only the first gate that a request fails is looked at, so it must be the one that refuses.
#[test]
fn gates_that_refuse_stand_before_those_that_ignore() {
    for method in Method::ALL {
        for revision in Revision::ALL {
            let ignores = |gate: &&ParamGate| gate.violation == Violation::Ignore;
            let after = ParamGate::of(*method, revision).skip_while(|gate| !ignores(gate));
            assert!(after.into_iter().all(|gate| ignores(&gate)), "{method}");
        }
    }
}
