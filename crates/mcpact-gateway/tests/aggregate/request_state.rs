//! Request state of modern clients between rounds.

use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::in_process::{aggregator, everything};
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

/// Calls a tool with more parameters.
async fn call(wire: &mut Wire, tool: &str, more: &Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {}});
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    wire.ask("tools/call", params).await
}

/// AG-07: the state of a server is sent back to that server only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_is_returned_to_its_server_only() {
    let aggregator = aggregator(vec![
        everything("one", Revision::V2026_07_28),
        everything("two", Revision::V2026_07_28),
        everything("old", Revision::V2025_11_25),
    ]);
    for server in ["one", "two", "old"] {
        let mut wire = Wire::modern(&aggregator, &json!({"elicitation": {"form": {}}}));
        let tool = format!("{server}__test_input_required_result_elicitation");
        let asked = call(&mut wire, &tool, &json!({})).await;
        let state = asked["result"]["requestState"].clone();
        assert!(state.is_string(), "{asked}");
        let requests = asked["result"]["inputRequests"].as_object().unwrap();
        let (key, question) = requests.iter().next().unwrap();
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("[{server}] ")), "{message}");
        let answer = json!({"action": "accept", "content": {"name": "Ann"}});
        let more = json!({"requestState": state, "inputResponses": {key: answer}});
        for other in ["one", "two", "old"]
            .into_iter()
            .filter(|name| *name != server)
        {
            let tool = format!("{other}__test_input_required_result_elicitation");
            let refused = call(&mut wire, &tool, &more).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let answered = call(&mut wire, &tool, &more).await;
        let text = &answered["result"]["content"][0]["text"];
        assert_eq!(text, "Hello, Ann!", "{answered}");
    }
}

/// AG-07: the state is returned byte by byte, and none if there was none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_is_returned_unchanged() {
    let script = ScriptedProcess::new(Era::Modern, &json!({"tools": {}}));
    let aggregator = aggregator(vec![script.member("s")]);
    let mut wire = Wire::modern(&aggregator, &json!({"elicitation": {}}));
    for state in [Some("a \"b\" \\ \u{e4}\u{1f600}\n\u{0}~"), Some(""), None] {
        let question = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}});
        let mut asks = json!({"resultType": "input_required", "inputRequests": {"q": question}});
        if let Some(state) = state {
            asks["requestState"] = json!(state);
        }
        script.answers("tools-call", &asks);
        let asked = call(&mut wire, "s__one", &json!({})).await;
        let sealed = asked["result"].get("requestState").cloned();
        assert_eq!(sealed.is_some(), state.is_some(), "{asked}");
        let mut more = json!({"inputResponses": {"q": {"action": "accept", "content": {}}}});
        if let Some(sealed) = sealed {
            assert_ne!(sealed, json!(state), "the state is sealed");
            more["requestState"] = sealed;
        }
        script.answers(
            "tools-call",
            &json!({"resultType": "complete", "content": []}),
        );
        let done = call(&mut wire, "s__one", &more).await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        let received = script.received("tools/call");
        let again = received.last().unwrap();
        assert_eq!(
            again["params"].get("requestState"),
            state.map(|s| json!(s)).as_ref()
        );
        assert_eq!(again["params"]["inputResponses"], more["inputResponses"]);
    }
}
