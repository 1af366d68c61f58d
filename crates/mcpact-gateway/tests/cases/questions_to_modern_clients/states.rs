//! Validity of request states.

use mcpact::server::PrincipalSource;
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{HttpTestClient, TestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::json;

use super::{accept, after_streams, code, form, key, retry, scene, suspended, upstream};
use crate::scripted_server::{Role, ScriptedServer};

/// BB-09: a state of an ended gateway is invalid, and the tool does not run again.
#[tokio::test(start_paused = true)]
async fn state_of_another_bridge_is_invalid() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (_said, asked) = suspended(&mut scripted, &mut peer).await;
    let mut other = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let mut later = TestClient::modern(&upstream(&other), json!({"elicitation": {}}));
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    let answer = later.ask(2, "tools/call", back).await;
    assert_eq!(code(&answer), -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("requestState"), "{message}");
    assert!(other.received().is_empty(), "the tool does not run");
}

/// MR-05, MR-07, BB-11: a state that was modified or sent with another call or other arguments is rejected, and stays
/// valid for its own call.
#[tokio::test(start_paused = true)]
async fn state_is_bound_to_its_call() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (_said, asked) = suspended(&mut scripted, &mut peer).await;
    let answers = json!({key(&asked): accept("Ann")});
    let own = retry(&tool("greet"), &asked, answers.clone());
    let mut other_arguments = own.clone();
    other_arguments["arguments"] = json!({"a": 2});
    let mut changed = own.clone();
    let mut state = changed["requestState"].as_str().unwrap().to_owned();
    let flipped = if state.ends_with('A') { "B" } else { "A" };
    state.replace_range(state.len() - 1.., flipped);
    changed["requestState"] = json!(state);
    let mut invented = own.clone();
    invented["requestState"] = json!("e30");
    let wrong = [
        retry(&tool("other"), &asked, answers.clone()),
        other_arguments,
        changed,
        invented,
    ];
    for (id, params) in (10..).zip(wrong) {
        let answer = peer.ask(id, "tools/call", params).await;
        assert_eq!(code(&answer), -32602, "{answer}");
    }
    let read = retry(&json!({"uri": "test://r"}), &asked, answers);
    assert_eq!(code(&peer.ask(20, "resources/read", read).await), -32602);
    assert!(
        scripted.received().is_empty(),
        "the server heard nothing of it"
    );
    // The order of arguments is irrelevant.
    peer.request(21, "tools/call", own).await;
    assert_eq!(scripted.recv().await.message["id"], "q1");
}

/// BB-11: a state is rejected for another principal and stays valid for its own.
#[tokio::test]
async fn state_is_bound_to_its_principal() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2025_11_25)).await;
    let mut settings = UpstreamSettings::default();
    settings.front.principals =
        PrincipalSource::from_fn(|headers| Some(headers.get("x-user")?.to_str().ok()?.to_owned()));
    let upstream = UpstreamServer::new(scripted.target.clone(), settings).unwrap();
    let url = listen(&upstream).await;
    let capabilities = json!({"elicitation": {}});
    let ann = HttpTestClient::modern(&url, capabilities.clone()).with("x-user", "ann");
    let bob = HttpTestClient::modern(&url, capabilities).with("x-user", "bob");
    let (mut reply, said) = tokio::join!(ann.request(1, "tools/call", tool("greet")), async {
        let said = after_streams(&mut scripted).await;
        said.ask("q1", "elicitation/create", form("Who?"));
        said
    });
    let asked = reply.only().await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Eve")}));
    let refused = bob
        .request(1, "tools/call", back.clone())
        .await
        .only()
        .await;
    assert_eq!(code(&refused), -32602);
    let (mut reply, ()) = tokio::join!(ann.request(2, "tools/call", back), async {
        let answered = after_streams(&mut scripted).await;
        assert_eq!(answered.message["id"], "q1");
        said.text("hello");
    });
    assert_eq!(reply.only().await["result"]["content"][0]["text"], "hello");
}
