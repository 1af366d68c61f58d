//! Results that ask for input.

use mcpact::client::{Client, ClientError, Link};
use mcpact::model::{FormRequest, Root};
use mcpact_sim::scripted::link_server::{LinkServer, result};
use serde_json::{Map, Value, json};

/// Server with a tool that asks `rounds` times.
fn asking(rounds: usize) -> (Link, LinkServer) {
    let mut round = 0;
    LinkServer::modern(json!({ "tools": {} }), move |message| {
        if message["params"]["name"] == "plain" {
            return result(message, json!({ "content": [] }));
        }
        if round == rounds {
            return result(
                message,
                json!({ "content": [{ "type": "text", "text": "done" }] }),
            );
        }
        round += 1;
        let mut asked = json!({
            "resultType": "input_required",
            "inputRequests": {
                "who": { "method": "elicitation/create", "params": {
                    "mode": "form", "message": "who?",
                    "requestedSchema": { "type": "object", "properties": {
                        "name": { "type": "string", "default": "Ann" } } } } },
                "where": { "method": "roots/list" },
            },
        });
        if round == 1 {
            asked["requestState"] = json!("caf\u{e9} \"1\" \u{1F600}");
        }
        result(message, asked)
    })
}

async fn connect(link: Link) -> Client {
    Client::builder("t", "1")
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .roots(vec![Root::new("file:///work")])
        .connect(link)
        .await
        .unwrap()
}

/// F16, P12, MR-01, MR-02, MR-03: every question is answered under its key, the state is returned unchanged and only
/// if present, each attempt has its own id, and a result without `resultType` is complete.
#[tokio::test]
async fn questions_in_a_result_are_answered() {
    let (link, received) = asking(2);
    let client = connect(link).await;
    let answer = client.call_tool("ask", json!({ "x": 1 })).await.unwrap();
    assert_eq!(answer.all_text(), "done");
    client.call_tool("plain", json!({})).await.unwrap();
    let calls = received.received("tools/call");
    assert_eq!(calls.len(), 4);
    let ids: std::collections::HashSet<String> =
        calls.iter().map(|call| call["id"].to_string()).collect();
    assert_eq!(ids.len(), 4);
    let answers = json!({
        "who": { "action": "accept", "content": { "name": "Ann" } },
        "where": { "roots": [{ "uri": "file:///work" }] },
    });
    for call in &calls[1..3] {
        assert_eq!(call["params"]["arguments"], json!({ "x": 1 }));
        assert_eq!(call["params"]["inputResponses"], answers);
    }
    assert_eq!(
        calls[1]["params"]["requestState"],
        "caf\u{e9} \"1\" \u{1F600}"
    );
    for call in [&calls[0], &calls[2], &calls[3]] {
        assert!(call["params"].get("requestState").is_none(), "{call}");
    }
    assert!(calls[3]["params"].get("inputResponses").is_none());
}

/// F16: the number of rounds is limited.
#[tokio::test]
async fn rounds_of_questions_are_limited() {
    let (link, received) = asking(usize::MAX);
    let failed = connect(link)
        .await
        .call_tool("ask", Value::Null)
        .await
        .unwrap_err();
    assert!(
        matches!(failed, ClientError::Limit { limit: 10, .. }),
        "{failed:?}"
    );
    assert_eq!(received.received("tools/call").len(), 11);
}

/// F16: a question without a handler fails the call and gets no invented answer.
#[tokio::test]
async fn question_without_handler_fails_the_call() {
    let (link, received) = asking(1);
    let client = Client::connect(link).await.unwrap();
    let failed = client.call_tool("ask", Value::Null).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::NoHandler { .. }),
        "{failed:?}"
    );
    assert_eq!(received.received("tools/call").len(), 1);
}

/// F16: a state without questions means retry later.
#[tokio::test(start_paused = true)]
async fn state_without_questions_means_retry_later() {
    let mut first = true;
    let (link, received) =
        LinkServer::modern(
            json!({ "resources": {} }),
            move |message| match std::mem::take(&mut first) {
                true => result(
                    message,
                    json!({ "resultType": "input_required", "requestState": "s" }),
                ),
                false => result(message, json!({ "resultType": "complete", "contents": [] })),
            },
        );
    let client = Client::connect(link).await.unwrap();
    client.read_resource("a:b").await.unwrap();
    assert_eq!(
        received.received("resources/read")[1]["params"]["requestState"],
        "s"
    );

    let (link, _) = LinkServer::modern(json!({ "resources": {} }), |message| {
        result(message, json!({ "resultType": "input_required" }))
    });
    let failed = Client::connect(link)
        .await
        .unwrap()
        .read_resource("a:b")
        .await;
    assert!(
        matches!(failed, Err(ClientError::ProtocolViolation(_))),
        "{failed:?}"
    );
}
