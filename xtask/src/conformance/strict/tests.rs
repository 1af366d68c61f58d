use serde_json::json;

use super::*;

fn record(checks: Value) -> Record {
    Record {
        checks: serde_json::from_value(checks).unwrap(),
        complaint: String::new(),
    }
}

fn server(scenario: &str, checks: Value) -> Vec<String> {
    spelled(judge(Leg::Server, scenario, Some(&record(checks))))
}

fn client(scenario: &str, complaint: &str) -> Vec<String> {
    let record = Record {
        complaint: complaint.to_owned(),
        ..record(json!([{ "id": "a", "status": "SUCCESS" }]))
    };
    spelled(judge(Leg::Client, scenario, Some(&record)))
}

fn spelled(faults: Vec<Fault>) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

/// Shortfalls of a scenario with a single successful check of the same name and these details.
fn success(scenario: &str, details: Value) -> Vec<String> {
    let check = json!([{ "id": scenario, "status": "SUCCESS", "details": details }]);
    server(scenario, check)
}

fn text(words: &str) -> Value {
    json!({ "result": { "content": [{ "type": "text", "text": words }] } })
}

fn error(words: &str) -> Value {
    let mut details = text(words);
    details["result"]["isError"] = json!(true);
    details
}

#[test]
fn success_with_information_and_skipped_checks_counts() {
    let checks = json!([
        { "id": "ping", "status": "SUCCESS" },
        { "id": "b", "status": "INFO" },
        { "id": "c", "status": "SKIPPED" },
        { "id": "wire-schema-valid", "status": "SUCCESS" },
    ]);
    assert_eq!(server("ping", checks), Vec::<String>::new());
}

#[test]
fn a_scenario_without_a_result_fails() {
    let faults = judge(Leg::Server, "ping", None);
    assert_eq!(faults, [Fault::NoResult]);
    assert!(faults[0].fails_suite());
}

#[test]
fn failures_and_warnings_name_their_checks() {
    let checks = json!([
        { "id": "a", "status": "SUCCESS" },
        { "id": "b", "status": "WARNING" },
        { "id": "c", "status": "FAILURE", "errorMessage": "no answer\nat line 3" },
        { "id": "d", "status": "FAILURE", "errorMessage": "" },
    ]);
    assert_eq!(
        server("a", checks),
        ["failed c (no answer) and 1 more", "warned b"]
    );
}

#[test]
fn a_warning_keeps_a_scenario_from_counting_but_not_from_passing() {
    let checks = json!([{ "id": "a", "status": "SUCCESS" }, { "id": "b", "status": "WARNING" }]);
    let faults = judge(Leg::Server, "a", Some(&record(checks)));
    assert_eq!(faults, [Fault::Warned(vec!["b".to_owned()])]);
    assert!(!faults[0].fails_suite());
}

#[test]
fn the_schema_alone_shows_nothing() {
    let checks = json!([
        { "id": "wire-schema-valid", "status": "SUCCESS" },
        { "id": "a", "status": "SKIPPED" },
    ]);
    let vacuous = ["nothing was checked but the schema"];
    assert_eq!(server("a", checks), vacuous);
    assert_eq!(server("a", json!([])), vacuous);
}

#[test]
fn lists_must_hold_something() {
    for (scenario, member, what) in [
        ("tools-list", "toolCount", "tools"),
        ("prompts-list", "promptCount", "prompts"),
        ("resources-list", "resourceCount", "resources"),
    ] {
        let empty = [format!("the list of {what} is empty")];
        assert_eq!(success(scenario, json!({ member: 0 })), empty);
        assert_eq!(success(scenario, json!({})), empty);
        assert!(success(scenario, json!({ member: 1 })).is_empty());
    }
}

#[test]
fn an_error_is_no_simple_text() {
    let scenario = "tools-call-simple-text";
    let right = "This is a simple text response for testing.";
    assert!(success(scenario, text(right)).is_empty());
    assert_eq!(
        success(scenario, error("Tool test_simple_text not found")),
        ["not the fixture's text: `Tool test_simple_text not found`"]
    );
    assert_eq!(success(scenario, error(right)).len(), 1);
    assert_eq!(success(scenario, text("something else")).len(), 1);
}

#[test]
fn the_tool_must_fail_for_its_own_reason() {
    let scenario = "tools-call-error";
    let right = "This tool intentionally returns an error for testing";
    assert!(success(scenario, error(right)).is_empty());
    assert_eq!(
        success(scenario, error("unknown tool")),
        ["not the fixture's error: `unknown tool`"]
    );
    assert_eq!(success(scenario, text(right)).len(), 1);
    assert_eq!(
        success(scenario, json!({})),
        ["not the fixture's error: no text"]
    );
}

#[test]
fn a_client_that_ends_with_an_error_does_not_count() {
    assert!(client("tools_call", "").is_empty());
    assert_eq!(
        client("tools_call", "refused\n  because of that\n"),
        ["the client ended with an error: refused"]
    );
    assert!(client("http-invalid-tool-headers", "refused\n").is_empty());
}

#[test]
fn long_texts_are_cut_between_characters() {
    assert_eq!(shortened("é"), "é");
    assert_eq!(shortened(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
}
