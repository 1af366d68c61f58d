//! Log levels: of a session on one side, of a request on the other.

use mcpact_sim::scripted::TestClient;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scene::Scene;

use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn call() -> Value {
    json!({"name": "t", "arguments": {}})
}

fn done() -> Value {
    json!({"content": []})
}

async fn log(server: &mut TestClient, level: &str) {
    let message = json!({"level": level, "data": level});
    server.notify("notifications/message", message).await;
}

async fn hears(client: &mut TestClient, level: &str) {
    let heard = client.expect("notifications/message").await;
    assert_eq!(heard["params"]["level"], level);
}

/// BB-22: the level that a request names is set at the server before the call, and each request
/// hears only what it asked for.
#[tokio::test]
async fn a_requests_level_is_set_at_a_legacy_server() {
    let mut scene = Scene::new(V2025_06_18);
    let first = (1, "tools/call", call());
    let capabilities = json!({"tools": {}, "logging": {}});
    let (mut client, mut server) = scene
        .modern_pair(capabilities, first, json!({ LEVEL: "info" }))
        .await;
    let set = server.expect("logging/setLevel").await;
    assert_eq!(set["params"]["level"], "info");
    server.answer(&set, json!({})).await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["_meta"], Value::Null);
    for level in ["debug", "info", "error"] {
        log(&mut server, level).await;
    }
    server.answer(&called, done()).await;
    hears(&mut client, "info").await;
    hears(&mut client, "error").await;
    client.result(1).await;

    // The session stays as verbose as it is; who asked for nothing hears nothing.
    client
        .request_modern_with(2, "tools/call", call(), json!({}))
        .await;
    let called = server.expect("tools/call").await;
    log(&mut server, "emergency").await;
    server.answer(&called, done()).await;
    client.result(2).await;

    let quiet = json!({ LEVEL: "warning" });
    client
        .request_modern_with(3, "tools/call", call(), quiet)
        .await;
    let called = server.expect("tools/call").await;
    for level in ["info", "warning"] {
        log(&mut server, level).await;
    }
    server.answer(&called, done()).await;
    hears(&mut client, "warning").await;
    client.result(3).await;

    let loud = json!({ LEVEL: "debug" });
    client
        .request_modern_with(4, "tools/call", call(), loud)
        .await;
    let set = server.expect("logging/setLevel").await;
    assert_eq!(set["params"]["level"], "debug");
    server
        .send(json!({"id": set["id"], "error": {"code": -32603, "message": "no"}}))
        .await;
    let called = server.expect("tools/call").await;
    server.answer(&called, done()).await;
    client.result(4).await;
}

/// BB-22: a message that may belong to several clients goes to none.
#[tokio::test]
async fn messages_that_could_be_anybodys_are_dropped() {
    let mut scene = Scene::new(V2025_11_25);
    let capabilities = json!({"tools": {}, "logging": {}});
    let loud = json!({ LEVEL: "debug" });
    let first = (1, "tools/call", call());
    let (mut client, mut server) = scene.modern_pair(capabilities, first, loud.clone()).await;
    let set = server.expect("logging/setLevel").await;
    server.answer(&set, json!({})).await;
    let one = server.expect("tools/call").await;
    client
        .request_modern_with(2, "tools/call", call(), loud)
        .await;
    let two = server.expect("tools/call").await;
    log(&mut server, "error").await;
    server.answer(&one, done()).await;
    client.result(1).await;
    log(&mut server, "notice").await;
    server.answer(&two, done()).await;
    hears(&mut client, "notice").await;
    client.result(2).await;
}

/// BB-22: a server that does not log is not asked to.
#[tokio::test]
async fn a_server_without_logging_is_left_alone() {
    let mut scene = Scene::new(V2025_06_18);
    let first = (1, "tools/call", call());
    let (mut client, mut server) = scene
        .modern_pair(json!({"tools": {}}), first, json!({ LEVEL: "debug" }))
        .await;
    let called = server.expect("tools/call").await;
    server.answer(&called, done()).await;
    client.result(1).await;
}

/// BA-16: a legacy client's level goes with each of its requests, and nothing goes before it has set
/// one.
#[tokio::test]
async fn a_sessions_level_goes_with_each_request() {
    let mut scene = Scene::new(V2026_07_28);
    let capabilities = json!({"tools": {}, "logging": {}});
    let pair = scene.legacy_pair(V2025_06_18, json!({}), capabilities);
    let (mut client, mut server) = pair.await;
    let modern_done = json!({"resultType": "complete", "content": []});

    client.request(2, "tools/call", call()).await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["_meta"][LEVEL], Value::Null);
    server.answer(&called, modern_done.clone()).await;
    client.result(2).await;

    client
        .request(3, "logging/setLevel", json!({"level": "loud"}))
        .await;
    assert_eq!(client.error(3).await, -32602);
    client
        .request(4, "logging/setLevel", json!({"level": "warning"}))
        .await;
    client.result(4).await;

    client.request(5, "tools/call", call()).await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["_meta"][LEVEL], "warning");
    log(&mut server, "error").await;
    server.answer(&called, modern_done).await;
    hears(&mut client, "error").await;
    client.result(5).await;
}
