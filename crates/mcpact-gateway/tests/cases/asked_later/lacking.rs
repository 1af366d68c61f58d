//! Questions that a client cannot be asked, or not in this way.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use super::{after_streams, bridge, code, form, key, retry, scene};
use crate::peer::{Peer, tool};
use crate::stage::{Role, Stage};
use crate::web::{Web, listen};

/// BB-13: a question before any call of a client belongs to nobody.
#[tokio::test(start_paused = true)]
async fn a_question_without_a_call_belongs_to_nobody() {
    let (mut stage, mut peer) = scene(json!({"roots": {}}));
    // Something that opens the connection and cannot be asked anything.
    peer.request(1, "tools/list", json!({})).await;
    let said = stage.hear_of("tools/list").await;
    said.result(json!({"tools": []}));
    assert_eq!(peer.hear().await["id"], 1);
    said.ask("r1", "roots/list", json!({}));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("r1"), -32602)
    );
    peer.hears_nothing().await;
}

/// BB-30: a question during a request that cannot carry one is refused, and the request goes on.
#[tokio::test(start_paused = true)]
async fn a_list_asks_nothing() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/list", json!({})).await;
    let said = stage.hear_of("tools/list").await;
    said.ask("q1", "elicitation/create", form("Who?"));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    said.result(json!({"tools": []}));
    let answer = peer.hear().await;
    assert_eq!(answer["result"]["resultType"], "complete");
}

/// BB-29: a server that asks what the client did not declare hears that nobody can; what it makes of
/// that is passed on, and where it makes an error of it the client learns what it lacks.
#[tokio::test(start_paused = true)]
async fn a_client_learns_what_it_lacks() {
    let (mut stage, mut peer) = scene(json!({}));
    for is_error in [false, true] {
        peer.request(1, "tools/call", tool("greet")).await;
        let said = stage.hear_of("tools/call").await;
        said.ask("q1", "elicitation/create", form("Who?"));
        let refused = stage.hear().await;
        assert_eq!(
            (&refused.message["id"], code(&refused.message)),
            (&json!("q1"), -32601)
        );
        if is_error {
            said.error(json!({"code": -32603, "message": "no form, no greeting"}));
            let answer = peer.hear().await;
            assert_eq!(code(&answer), -32021, "{answer}");
            let needed = &answer["error"]["data"]["requiredCapabilities"];
            assert_eq!(needed, &json!({"elicitation": {}}));
        } else {
            said.result(json!({"content": [], "isError": true}));
            assert_eq!(peer.hear().await["result"]["isError"], true);
        }
    }
}

/// BB-15: a server that wants a URL visited first, before a client that cannot: the error names what it
/// lacks, with its status, and the server's own code is not passed on.
#[tokio::test]
async fn a_client_without_urls_learns_what_it_lacks() {
    let mut stage = Stage::http(Role::new(Revision::V2025_11_25)).await;
    let url = listen(&bridge(&stage)).await;
    let web = Web::modern(&url, json!({"elicitation": {}}));
    let (mut reply, ()) = tokio::join!(web.request(1, "tools/call", tool("pay")), async {
        let said = after_streams(&mut stage).await;
        said.error(json!({"code": -32042, "message": "visit", "data": {"elicitations": [
            {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}));
    });
    assert_eq!(reply.status, 400);
    let answer = reply.only().await;
    assert_eq!(code(&answer), -32021);
    let needed = &answer["error"]["data"]["requiredCapabilities"];
    assert_eq!(needed, &json!({"elicitation": {"url": {}}}));
}

/// A URL to visit becomes a question; when the server calls it visited, the call is made again.
#[tokio::test(start_paused = true)]
async fn a_visited_url_lets_the_call_be_made_again() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("pay")).await;
    let said = stage.hear().await;
    said.error(
        json!({"code": -32042, "message": "visit", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}),
    );
    let asked = peer.hear().await;
    let request = &asked["result"]["inputRequests"][key(&asked)];
    assert_eq!(request["params"]["url"], "https://pay.example");
    assert_eq!(request["params"].get("elicitationId"), None, "{request}");
    let back = retry(
        &tool("pay"),
        &asked,
        json!({key(&asked): {"action": "accept"}}),
    );
    peer.request(2, "tools/call", back).await;
    said.note(
        "notifications/elicitation/complete",
        json!({"elicitationId": "e1"}),
    );
    let again = stage.hear_of("tools/call").await;
    assert_eq!(again.params(), &tool("pay"));
    again.text("paid");
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "paid");
}

/// BB-24: a server of 2025-06-18 would take a client that only visits URLs for one that fills in
/// forms, and meets it again as one that does not.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_visits_urls_is_not_taken_for_another() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_06_18));
    let mut peer = Peer::modern(&bridge(&stage), json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear_of("tools/call").await;
    said.text("hello");
    assert_eq!(peer.hear().await["id"], 1);
    let greetings = stage.greetings();
    let openings: Vec<&Value> = greetings
        .iter()
        .filter(|message| message["method"] == "initialize")
        .map(|message| &message["params"]["capabilities"])
        .collect();
    assert_eq!(
        openings.last().unwrap().get("elicitation"),
        None,
        "{openings:?}"
    );
}

/// BB-28: one sampled block in a list is the block itself for a server that knows no lists.
#[tokio::test(start_paused = true)]
async fn one_sampled_block_is_the_block_itself() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_06_18));
    let mut peer = Peer::modern(&bridge(&stage), json!({"sampling": {}}));
    peer.request(1, "tools/call", tool("think")).await;
    let said = stage.hear().await;
    said.ask(
        1,
        "sampling/createMessage",
        json!({"maxTokens": 9,
        "messages": [{"role": "user", "content": {"type": "text", "text": "capital?"}}]}),
    );
    let asked = peer.hear().await;
    let block = json!({"type": "text", "text": "Paris"});
    let answer = json!({"role": "assistant", "model": "m", "content": [block.clone()]});
    peer.request(
        2,
        "tools/call",
        retry(&tool("think"), &asked, json!({key(&asked): answer})),
    )
    .await;
    let answered = stage.hear().await;
    assert_eq!(answered.message["result"]["content"], block);
    said.text("Paris it is");
    assert_eq!(peer.hear().await["id"], 2);
}
