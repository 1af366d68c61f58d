//! Sampling requests of servers of both eras to clients of both eras.

use mcpact_sim::scripted::{TestClient, message::tool};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::scripted_server::{Role, ScriptedServer};
use crate::upstream;

use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

const METHOD: &str = "sampling/createMessage";

/// Every pair of eras.
const PAIRS: [(Revision, Revision); 4] = [
    (V2025_11_25, V2025_11_25),
    (V2025_11_25, V2026_07_28),
    (V2026_07_28, V2025_11_25),
    (V2026_07_28, V2026_07_28),
];

/// Sends a sampling request during a call. Returns its parameters at the client, or the error: a legacy server gets it
/// as the answer to its request, the client of a modern server as the response to its call.
async fn sampled(
    (client, server): (Revision, Revision),
    sampling: Value,
    params: Value,
) -> Result<Value, Value> {
    let mut scripted = ScriptedServer::lines(Role::new(server));
    let (bridge, capabilities) = (upstream(&scripted), json!({ "sampling": sampling }));
    let mut peer = match client.era() {
        Era::Legacy => TestClient::legacy(&bridge, client.as_str(), capabilities).await,
        Era::Modern => TestClient::modern(&bridge, capabilities),
    };
    peer.request(1, "tools/call", tool("t")).await;
    let call = scripted.expect("tools/call").await;
    let request = json!({"method": METHOD, "params": params});
    match server.era() {
        Era::Legacy => call.ask("q", METHOD, params),
        Era::Modern => call.result(json!({
            "resultType": "input_required", "inputRequests": {"q": request}, "requestState": "s",
        })),
    }
    tokio::select! {
        refused = scripted.recv() => Err(refused.message["error"].clone()),
        asked = peer.recv() => match asked.get("error") {
            Some(error) => Err(error.clone()),
            None if asked["method"] == METHOD => Ok(asked["params"].clone()),
            None => {
                let requests = asked["result"]["inputRequests"].as_object().unwrap();
                Ok(requests.values().next().unwrap()["params"].clone())
            }
        },
    }
}

fn text(role: &str) -> Value {
    json!({"role": role, "content": {"type": "text", "text": "?"}})
}

fn with_messages(messages: Value) -> Value {
    json!({"maxTokens": 9, "messages": messages})
}

fn with_context(context: &Value) -> Value {
    json!({"maxTokens": 9, "messages": [text("user")], "includeContext": context})
}

/// F9: a boolean `includeContext` becomes `thisServer` or `none`. Context is dropped for clients that did not declare it.
#[tokio::test(start_paused = true)]
async fn include_context_is_a_declared_enum_value() {
    for pair in PAIRS {
        for (sampling, sent, expected) in [
            (json!({"context": {}}), json!(true), json!("thisServer")),
            (
                json!({"context": {}}),
                json!("allServers"),
                json!("allServers"),
            ),
            (json!({}), json!(false), json!("none")),
            (json!({}), json!("none"), json!("none")),
            (json!({}), json!(true), Value::Null),
            (json!({}), json!("thisServer"), Value::Null),
        ] {
            let asked = sampled(pair, sampling.clone(), with_context(&sent)).await;
            let what = format!("{pair:?} {sampling} {sent}");
            assert_eq!(asked.unwrap()["includeContext"], expected, "{what}");
        }
    }
    // Before 2025-11-25 the context needs no capability.
    let older = (V2025_06_18, V2025_11_25);
    let asked = sampled(older, json!({}), with_context(&json!(true))).await;
    assert_eq!(asked.unwrap()["includeContext"], "thisServer");
}

/// F9: a sampling request whose tool calls and results do not match reaches no client; the error cites the rule.
#[tokio::test(start_paused = true)]
async fn broken_tool_sequences_are_refused() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
    let assistant = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let user = |blocks: Value| json!({"role": "user", "content": blocks});
    let balance = "client/sampling#tool-use-and-result-balance";
    let broken = [
        (
            json!([text("user"), assistant(json!([call("1")]))]),
            balance,
        ),
        (
            json!([assistant(json!([call("1")])), user(result("2"))]),
            balance,
        ),
        (
            json!([
                assistant(call("1")),
                user(json!([result("1"), {"type": "text", "text": "x"}]))
            ]),
            "client/sampling#tool-result-messages",
        ),
    ];
    let parallel = json!([
        text("user"),
        assistant(json!([call("1"), call("2")])),
        user(json!([result("2"), result("1")])),
    ]);
    for pair in PAIRS {
        let sampling = json!({"tools": {}});
        for (messages, rule) in &broken {
            let params = with_messages(messages.clone());
            let error = sampled(pair, sampling.clone(), params).await.unwrap_err();
            let code = match pair.1.era() {
                Era::Legacy => -32602,
                Era::Modern => -32603,
            };
            assert_eq!(error["code"], code, "{pair:?} {messages}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(rule), "{pair:?} {messages}: {message}");
        }
        let asked = sampled(pair, sampling, with_messages(parallel.clone())).await;
        assert_eq!(asked.unwrap()["messages"], parallel, "{pair:?}");
    }
}
