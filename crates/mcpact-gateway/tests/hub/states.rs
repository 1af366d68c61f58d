//! What modern clients carry between rounds.

use std::sync::Arc;

use mcpact_gateway::Hub;
use mcpact_spec::Revision;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use crate::house::{everything, hub};

fn raw(hub: &Arc<Hub>) -> Link {
    let (ours, theirs) = memory::pair();
    let hub = Arc::clone(hub);
    tokio::spawn(async move { hub.serve(theirs).await });
    ours
}

/// Calls a tool that asks for a name, with what the client carries.
async fn call(link: &mut Link, tool: &str, more: &Value) -> Value {
    let mut params = json!({
        "name": tool,
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }
    });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    link.sink.push(&message.to_string());
    link.sink.flush().await.unwrap();
    loop {
        if let Some(Line::Json(bytes)) = link.source.next_line() {
            return serde_json::from_slice(bytes).unwrap();
        }
        assert!(link.source.fill().await.unwrap(), "the hub hung up");
    }
}

/// AG-07: a server's state comes back to that server as it gave it; another one never sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_belongs_to_its_server() {
    let hub = hub(vec![
        everything("one", Revision::V2026_07_28),
        everything("two", Revision::V2026_07_28),
        everything("old", Revision::V2025_11_25),
    ]);
    for server in ["one", "two", "old"] {
        let mut link = raw(&hub);
        let tool = format!("{server}__test_input_required_result_elicitation");
        let asked = call(&mut link, &tool, &json!({})).await;
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
            let refused = call(&mut link, &tool, &more).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let answered = call(&mut link, &tool, &more).await;
        let text = &answered["result"]["content"][0]["text"];
        assert_eq!(text, "Hello, Ann!", "{answered}");
    }
}
