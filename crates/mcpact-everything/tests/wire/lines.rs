//! The reference server on lines, spoken to word by word.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::http::{modern, request};
use crate::peer::Peer;

/// F1: noise, garbage and foreign shapes get their error, and the connection lives on.
#[tokio::test]
async fn garbage_does_not_end_a_connection() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    for (bad, code) in [
        ("{\"jsonrpc\":\"2.0\",", -32700),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
        ("[]", -32600),
        ("this is not JSON", -32700),
    ] {
        peer.say(bad).await;
        assert_eq!(peer.hear().await["error"]["code"], code, "{bad}");
    }
    let pong = peer.ask(9, "ping", json!({})).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
}

/// F9, F10, F8: a tool that asks becomes requests of a legacy connection, in the middle of its call.
#[tokio::test]
async fn questions_are_requests_of_a_legacy_connection() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open(
        "2025-11-25",
        json!({"elicitation": {}, "sampling": {}, "roots": {}}),
    )
    .await;
    let params = json!({"name": "test_input_required_result_multiple_inputs"});
    peer.say(&request(1, "tools/call", &params).to_string())
        .await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        let question = peer.hear().await;
        let answer = match question["method"].as_str().unwrap() {
            "elicitation/create" => json!({"action": "accept", "content": {"name": "A"}}),
            "sampling/createMessage" => {
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}})
            }
            "roots/list" => json!({"roots": []}),
            other => panic!("{other}"),
        };
        asked.push(question["method"].as_str().unwrap().to_owned());
        peer.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}).to_string())
            .await;
    }
    assert_eq!(asked.len(), 3);
    let done = peer.hear().await;
    assert_eq!(done["result"]["content"][0]["text"], "3 answers");
}

/// F16: the same tool asks a modern client by a result, and a changed state is refused.
#[tokio::test]
async fn questions_are_results_of_a_modern_connection() {
    let mut peer = Peer::start(&Revision::ALL);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let name = "test_input_required_result_multi_round";
    let first = peer
        .ask(1, "tools/call", json!({"name": name, "_meta": meta}))
        .await;
    assert_eq!(first["result"]["resultType"], "input_required");
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    let answer = json!({"action": "accept", "content": {"name": "Ann", "color": "blue"}});
    let retry = |state: &str, key: &str| json!({"name": name, "_meta": meta, "requestState": state, "inputResponses": {key: answer}});
    let second = peer.ask(2, "tools/call", retry(&state, "step1")).await;
    assert_eq!(second["result"]["resultType"], "input_required");
    let next = second["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(next, state);
    let forged = peer
        .ask(3, "tools/call", retry(&format!("{next}x"), "step2"))
        .await;
    assert_eq!(forged["error"]["code"], -32602);
    let mut other = retry(&next, "step2");
    other["name"] = json!("test_input_required_result_elicitation");
    assert_eq!(
        peer.ask(4, "tools/call", other).await["error"]["code"],
        -32602,
        "MR-07"
    );
    let last = peer.ask(5, "tools/call", retry(&next, "step2")).await;
    assert_eq!(last["result"]["content"][0]["text"], "Ann likes blue");
}

/// A question that the revision lacks refuses the call, and names both.
#[tokio::test]
async fn a_question_that_the_revision_lacks_is_named() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2024-11-05", json!({})).await;
    let ask = call("test_elicitation", json!({"message": "Who are you?"}));
    let refused = peer.ask(1, "tools/call", ask).await;
    assert_eq!(refused["error"]["code"], -32602);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("elicitation/create") && message.contains("2025-06-18"),
        "{message}"
    );
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// F13: a cancelled call is not answered, and its work ends.
#[tokio::test]
async fn a_cancelled_call_is_not_answered() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-06-18", json!({})).await;
    let slow = call("test_cancellation", json!({"key": "k"}));
    peer.say(&request(1, "tools/call", &slow).to_string()).await;
    peer.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    let seen = call("test_cancellation_seen", json!({"key": "k"}));
    let seen = peer.ask(2, "tools/call", seen).await;
    assert_eq!(seen["result"]["content"][0]["text"], "k was cancelled.");
    let again = peer.ask(1, "ping", json!({})).await;
    assert_eq!(again["id"], 1, "the id is free again");
}

/// F4, L22: a legacy client hears of the resources that it watches, as long as it watches them.
#[tokio::test]
async fn updates_end_with_the_subscription() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    let trigger = || call("test_trigger_resource_update", json!({}));
    for (id, uri) in [(1, "test://static-text"), (2, "test://watched-resource")] {
        peer.ask(id, "resources/subscribe", json!({ "uri": uri }))
            .await;
    }
    let told = peer.ask(3, "tools/call", trigger()).await;
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], "test://watched-resource");
    assert_eq!(peer.hear().await["id"], 3);
    let uri = json!({"uri": "test://watched-resource"});
    peer.ask(4, "resources/unsubscribe", uri).await;
    assert_eq!(
        peer.ask(5, "tools/call", trigger()).await["id"],
        5,
        "the other subscription is not for this resource"
    );
}

/// F17, L22: a stream of changes carries the updates of the resources that it names.
#[tokio::test]
async fn a_listen_stream_hears_of_its_own_resources() {
    let mut peer = Peer::start(&Revision::ALL);
    for (id, uri) in [(1, "test://static-text"), (2, "test://watched-resource")] {
        let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let listen = modern(id, "subscriptions/listen", wanted);
        peer.say(&listen.to_string()).await;
        let granted = peer.hear().await;
        assert_eq!(
            granted["method"],
            "notifications/subscriptions/acknowledged"
        );
    }
    let trigger = call("test_trigger_resource_update", json!({}));
    peer.say(&modern(3, "tools/call", trigger).to_string())
        .await;
    let mut heard = [peer.hear().await, peer.hear().await];
    heard.sort_by_key(|message| message["id"].is_number());
    let tag = &heard[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(
        *tag, 2,
        "the stream that named the resource, and no other: {heard:?}"
    );
    assert_eq!(heard[1]["id"], 3);
}

/// F17: a stream of changes that its client cancels ends without an answer, as every cancelled request does.
#[tokio::test]
async fn a_listen_stream_that_is_cancelled_is_not_answered() {
    let mut peer = Peer::start(&Revision::ALL);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    peer.tell(&modern(1, "subscriptions/listen", wanted)).await;
    let granted = peer.hear().await;
    assert_eq!(
        granted["method"],
        "notifications/subscriptions/acknowledged"
    );
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    peer.tell(&cancelled).await;
    for id in 2..4 {
        peer.tell(&modern(id, "tools/list", json!({}))).await;
        assert_eq!(peer.hear().await["id"], id);
    }
}

/// F17, F4: a server promises to tell of the resources that it has, those of its templates included, and of
/// no others.
#[tokio::test]
async fn a_listen_stream_is_not_promised_what_there_is_not() {
    let mut peer = Peer::start(&Revision::ALL);
    let there = ["test://watched-resource", "test://template/7/data"];
    let wanted = ["zz://q", there[0], "test://template/7", there[1]];
    let wanted =
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": wanted}});
    let listen = modern(1, "subscriptions/listen", wanted);
    peer.say(&listen.to_string()).await;
    let granted = peer.hear().await;
    assert_eq!(
        granted["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": there}),
        "{granted}"
    );
    let wanted = json!({"notifications": {"resourceSubscriptions": ["zz://q"]}});
    let listen = modern(2, "subscriptions/listen", wanted);
    peer.say(&listen.to_string()).await;
    let granted = peer.hear().await;
    assert_eq!(granted["params"]["notifications"], json!({}), "{granted}");
}

/// F3, F14: unknown tools, bad arguments and bad cursors get their codes, revision by revision.
#[tokio::test]
async fn bad_requests_get_their_codes() {
    for (version, is_result) in [
        ("2024-11-05", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let mut peer = Peer::start(&Revision::ALL);
        peer.open(version, json!({})).await;
        let unknown = peer.ask(1, "tools/call", json!({"name": "nope"})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{version}");
        let bad = peer
            .ask(
                2,
                "tools/call",
                json!({"name": "add", "arguments": {"a": "x", "b": 2}}),
            )
            .await;
        assert_eq!(
            bad["result"]["isError"] == json!(true),
            is_result,
            "{version}: {bad}"
        );
        assert_eq!(
            bad["error"]["code"] == json!(-32602),
            !is_result,
            "{version}: {bad}"
        );
        let cursor = peer
            .ask(3, "tools/list", json!({"cursor": "nonsense"}))
            .await;
        assert_eq!(cursor["error"]["code"], -32602);
        let missing = peer
            .ask(4, "resources/read", json!({"uri": "test://none"}))
            .await;
        assert_eq!(missing["error"]["code"], -32002, "{version}");
    }
}

/// F14: a list in pages is complete, and each page has its limit.
#[tokio::test]
async fn lists_come_in_pages() {
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.page_size = 7);
    let mut peer = Peer::of(server);
    peer.open("2025-11-25", json!({})).await;
    let mut names = Vec::new();
    let mut params = json!({});
    for id in 1.. {
        let page = peer.ask(id, "tools/list", params.clone()).await;
        let tools = page["result"]["tools"].as_array().unwrap().clone();
        assert!(tools.len() <= 7);
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match page["result"]["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let total = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), total);
    assert!(total > 30);
}
