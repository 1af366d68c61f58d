//! Ownership of a shared session after a client answered a question outside of calls.

use std::sync::Arc;

use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use mcpact_sim::scripted::TestClient;
use mcpact_sim::scripted::message::tool;

fn sharing(stage: &ScriptedServer) -> Arc<UpstreamServer> {
    let run = RunSettings {
        strategy: Strategy::Stateless,
        ..RunSettings::default()
    };
    let settings = UpstreamSettings {
        run,
        ..UpstreamSettings::default()
    };
    UpstreamServer::new(stage.target.clone(), settings).unwrap()
}

async fn client(bridge: &Arc<UpstreamServer>) -> TestClient {
    TestClient::legacy(bridge, "2025-11-25", json!({"roots": {}})).await
}

/// Returns the number of opened sessions.
fn sessions(stage: &ScriptedServer) -> usize {
    let greetings = stage.handshakes();
    let opened = greetings
        .iter()
        .filter(|said| said["method"] == "initialize");
    opened.count()
}

/// Returns the next message that does not open the stream of a session.
async fn after_streams(stage: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = stage.recv().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// Makes a call.
async fn call(stage: &mut ScriptedServer, peer: &mut TestClient) -> ReceivedMessage {
    peer.request(1, "tools/call", tool("t")).await;
    let said = after_streams(stage).await;
    assert_eq!(said.method(), "tools/call");
    said.text("done");
    let answer = peer.recv().await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    said
}

/// Asks `peer` a question on this stream; returns the response that the server receives.
async fn ask_outside_of_calls(
    stage: &mut ScriptedServer,
    stream: &ReceivedMessage,
    peer: &mut TestClient,
) -> Value {
    stream.ask("q", "roots/list", json!({}));
    let question = peer.recv().await;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"roots": [{"uri": "file:///ann"}]});
    peer.answer(&question, roots).await;
    after_streams(stage).await.message
}

/// A session on HTTP belongs to one client after its answer; others get another session and none of its log messages.
#[tokio::test]
async fn http_sessions_become_exclusive_after_an_answer() {
    let mut stage = ScriptedServer::http(Role::new(Revision::V2025_11_25)).await;
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let stream = stage.expect("GET").await;
    call(&mut stage, &mut ann).await;
    let heard = ask_outside_of_calls(&mut stage, &stream, &mut ann).await;
    assert_eq!(heard["result"]["roots"][0]["uri"], "file:///ann", "{heard}");
    call(&mut stage, &mut ann).await;
    assert_eq!(sessions(&stage), 1, "she goes on where she was");
    let mut bob = client(&bridge).await;
    call(&mut stage, &mut bob).await;
    assert_eq!(sessions(&stage), 2);
    call(&mut stage, &mut ann).await;
    let log = json!({"level": "error", "data": "file:///ann"});
    stream.notify("notifications/message", log.clone());
    assert_eq!(ann.recv().await["params"], log);
    call(&mut stage, &mut bob).await;
    assert_eq!(sessions(&stage), 2, "both have what they need");
    // The owner can be asked again, even with other clients.
    let heard = ask_outside_of_calls(&mut stage, &stream, &mut ann).await;
    assert!(heard["result"].is_object(), "{heard}");
}

/// Clients of a shared session are asked nothing outside of a call, so none needs a session of its own.
#[tokio::test]
async fn shared_sessions_are_not_asked_outside_of_calls() {
    let mut stage = ScriptedServer::http(Role::new(Revision::V2025_11_25)).await;
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let stream = stage.expect("GET").await;
    let mut bob = client(&bridge).await;
    stream.ask("q", "roots/list", json!({}));
    let answer = after_streams(&mut stage).await.message;
    assert!(answer["error"].is_object(), "{answer}");
    for peer in [&mut ann, &mut bob] {
        call(&mut stage, peer).await;
    }
    assert_eq!(sessions(&stage), 1);
}

/// Log messages between calls go to the only client that made calls on the session; with calls of several clients they
/// are dropped.
#[tokio::test(start_paused = true)]
async fn ambiguous_log_messages_are_dropped() {
    let mut stage = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let bridge = sharing(&stage);
    // Clients without capabilities need not wait for a turn.
    let silent = || TestClient::legacy(&bridge, "2025-11-25", json!({}));
    let [mut ann, mut bob, mut idle] = [silent().await, silent().await, silent().await];
    let said = call(&mut stage, &mut ann).await;
    let log = json!({"level": "error", "data": "about ann"});
    said.notify("notifications/message", log.clone());
    assert_eq!(ann.recv().await["params"], log);

    let mut open = Vec::new();
    for peer in [&mut ann, &mut bob] {
        peer.request(2, "tools/call", tool("t")).await;
        open.push(stage.recv().await);
    }
    open[0].notify("notifications/message", log.clone());
    for (said, peer) in open.iter().zip([&mut ann, &mut bob]) {
        said.text("done");
        let answer = peer.recv().await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    }
    open[0].notify("notifications/message", log);
    open[0].ask("p", "ping", json!({}));
    let pong = stage.recv().await;
    assert_eq!(pong.message["id"], "p", "what was said before was heard");
    for _ in 0..2 {
        for peer in [&mut ann, &mut bob, &mut idle] {
            let said = call(&mut stage, peer).await;
            assert_eq!(said.connection, open[0].connection, "they share");
        }
    }
}

/// On stdio a client keeps the connection on which it answered, also when others connect and disconnect.
#[tokio::test(start_paused = true)]
async fn owners_keep_their_stdio_connection() {
    let mut stage = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let first = call(&mut stage, &mut ann).await;
    ask_outside_of_calls(&mut stage, &first, &mut ann).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut bob = client(&bridge).await;
        let said = call(&mut stage, &mut bob).await;
        assert_ne!(said.connection, first.connection);
        others.push(said.connection);
        let again = call(&mut stage, &mut ann).await;
        assert_eq!(again.connection, first.connection);
    }
    assert_eq!(others, [others[0]; 3], "the others share");
}
