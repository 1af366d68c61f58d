//! A session that clients share, until one of them has told the server something outside of any call.

use std::sync::Arc;

use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::peer::{Peer, tool};
use crate::stage::{Role, Said, Stage};

fn sharing(stage: &Stage) -> Arc<Bridge> {
    let run = RunSettings {
        strategy: Strategy::Stateless,
        ..RunSettings::default()
    };
    let settings = BridgeSettings {
        run,
        ..BridgeSettings::default()
    };
    Bridge::new(stage.target.clone(), settings).unwrap()
}

async fn client(bridge: &Arc<Bridge>) -> Peer {
    Peer::legacy(bridge, "2025-11-25", json!({"roots": {}})).await
}

/// How many sessions were opened.
fn sessions(stage: &Stage) -> usize {
    let greetings = stage.greetings();
    let opened = greetings
        .iter()
        .filter(|said| said["method"] == "initialize");
    opened.count()
}

/// The next message that is not the stream of a session.
async fn after_streams(stage: &mut Stage) -> Said {
    loop {
        let said = stage.hear().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// Makes a call.
async fn call(stage: &mut Stage, peer: &mut Peer) -> Said {
    peer.request(1, "tools/call", tool("t")).await;
    let said = after_streams(stage).await;
    assert_eq!(said.method(), "tools/call");
    said.text("done");
    let answer = peer.hear().await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    said
}

/// The server asks on this stream, and `peer` answers; what the server hears.
async fn confide(stage: &mut Stage, stream: &Said, peer: &mut Peer) -> Value {
    stream.ask("q", "roots/list", json!({}));
    let question = peer.hear().await;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"roots": [{"uri": "file:///ann"}]});
    peer.answer(&question, roots).await;
    after_streams(stage).await.message
}

/// A session at a server on HTTP is one client's from its answer on; others have another one, and do not hear what is
/// in the log of that one.
#[tokio::test]
async fn a_session_on_http_becomes_ones() {
    let mut stage = Stage::http(Role::new(Revision::V2025_11_25)).await;
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let stream = stage.hear_of("GET").await;
    call(&mut stage, &mut ann).await;
    let heard = confide(&mut stage, &stream, &mut ann).await;
    assert_eq!(heard["result"]["roots"][0]["uri"], "file:///ann", "{heard}");
    call(&mut stage, &mut ann).await;
    assert_eq!(sessions(&stage), 1, "she goes on where she was");
    let mut bob = client(&bridge).await;
    call(&mut stage, &mut bob).await;
    assert_eq!(sessions(&stage), 2);
    call(&mut stage, &mut ann).await;
    let log = json!({"level": "error", "data": "file:///ann"});
    stream.note("notifications/message", log.clone());
    assert_eq!(ann.hear().await["params"], log);
    call(&mut stage, &mut bob).await;
    assert_eq!(sessions(&stage), 2, "both have what they need");
    // It is hers, so that she can be asked again, whoever else is there.
    let heard = confide(&mut stage, &stream, &mut ann).await;
    assert!(heard["result"].is_object(), "{heard}");
}

/// Whoever is there with others is asked nothing outside of a call, so that nobody needs a session for itself.
#[tokio::test]
async fn of_several_nobody_is_asked() {
    let mut stage = Stage::http(Role::new(Revision::V2025_11_25)).await;
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let stream = stage.hear_of("GET").await;
    let mut bob = client(&bridge).await;
    stream.ask("q", "roots/list", json!({}));
    let answer = after_streams(&mut stage).await.message;
    assert!(answer["error"].is_object(), "{answer}");
    for peer in [&mut ann, &mut bob] {
        call(&mut stage, peer).await;
    }
    assert_eq!(sessions(&stage), 1);
}

/// What a server logs between calls is heard by the only client that has made any there; during and after the calls of
/// several it may be about each, and is heard by nobody.
#[tokio::test(start_paused = true)]
async fn what_may_be_about_anothers_call_is_heard_by_nobody() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_11_25));
    let bridge = sharing(&stage);
    // Whoever can be asked nothing need not wait for a turn.
    let silent = || Peer::legacy(&bridge, "2025-11-25", json!({}));
    let [mut ann, mut bob, mut idle] = [silent().await, silent().await, silent().await];
    let said = call(&mut stage, &mut ann).await;
    let log = json!({"level": "error", "data": "about ann"});
    said.note("notifications/message", log.clone());
    assert_eq!(ann.hear().await["params"], log);

    let mut open = Vec::new();
    for peer in [&mut ann, &mut bob] {
        peer.request(2, "tools/call", tool("t")).await;
        open.push(stage.hear().await);
    }
    open[0].note("notifications/message", log.clone());
    for (said, peer) in open.iter().zip([&mut ann, &mut bob]) {
        said.text("done");
        let answer = peer.hear().await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    }
    open[0].note("notifications/message", log);
    open[0].ask("p", "ping", json!({}));
    let pong = stage.hear().await;
    assert_eq!(pong.message["id"], "p", "what was said before was heard");
    for _ in 0..2 {
        for peer in [&mut ann, &mut bob, &mut idle] {
            let said = call(&mut stage, peer).await;
            assert_eq!(said.connection, open[0].connection, "they share");
        }
    }
}

/// On lines, a client keeps the connection on which it was asked, also when others come and go.
#[tokio::test(start_paused = true)]
async fn a_client_keeps_its_connection() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_11_25));
    let bridge = sharing(&stage);
    let mut ann = client(&bridge).await;
    let first = call(&mut stage, &mut ann).await;
    confide(&mut stage, &first, &mut ann).await;
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
