//! Clients that disconnect while a question for them is open.

use mcpact_spec::Revision;
use serde_json::json;

use crate::scene::Scene;

use Revision::V2025_11_25;

/// BB-07: when the client disconnects, the server gets the cancelled answer at once, and its instance ends with the call.
#[tokio::test]
async fn question_is_cancelled_when_the_client_disconnects() {
    let able = json!({
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut scene = Scene::new(V2025_11_25);
    let call = (1, "tools/call", json!({"name": "ask", "arguments": {}}));
    let capabilities = json!({"tools": {}});
    let (mut client, mut server) = scene.modern_pair(capabilities, call, able).await;
    let called = server.expect("tools/call").await;
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let question = json!({"message": "Who?", "requestedSchema": schema});
    server.request(9, "elicitation/create", question).await;
    assert_eq!(client.result(1).await["resultType"], "input_required");
    assert_eq!(scene.bridge.parked(), 1);
    drop(client);
    assert_eq!(server.result(9).await, json!({"action": "cancel"}));
    let content = json!([{"type": "text", "text": "cancelled"}]);
    server.answer(&called, json!({"content": content})).await;
    server.closed().await;
    assert_eq!(scene.bridge.parked(), 0);
}

/// BB-07: the question of a connected client stays open when another client disconnects.
#[tokio::test]
async fn question_stays_open_when_another_client_disconnects() {
    let able = json!({
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut scene = Scene::new(V2025_11_25);
    let call = json!({"name": "ask", "arguments": {}});
    let first = (1, "tools/call", call.clone());
    let capabilities = json!({"tools": {}});
    let (mut client, mut server) = scene
        .modern_pair(capabilities.clone(), first, able.clone())
        .await;
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let question = json!({"message": "Who?", "requestedSchema": schema});
    let called = server.expect("tools/call").await;
    server
        .request(9, "elicitation/create", question.clone())
        .await;
    let asked = client.result(1).await;
    let other = (1, "tools/call", call.clone());
    let (mut other, mut others) = scene.modern_pair(capabilities, other, able.clone()).await;
    others.expect("tools/call").await;
    others.request(9, "elicitation/create", question).await;
    other.result(1).await;
    drop(other);
    assert_eq!(others.result(9).await, json!({"action": "cancel"}));
    let name = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    let mut again = call;
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({name.as_str(): answer});
    client
        .request_modern_with(2, "tools/call", again, able)
        .await;
    assert_eq!(server.result(9).await["action"], "accept");
    let content = json!([{"type": "text", "text": "Ann"}]);
    server.answer(&called, json!({"content": content})).await;
    assert_eq!(client.result(2).await["content"][0]["text"], "Ann");
}
