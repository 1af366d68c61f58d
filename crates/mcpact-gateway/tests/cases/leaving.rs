//! Clients on HTTP that leave, and those that are never asked by request.

use std::sync::Arc;

use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_spec::{Era, Revision};
use serde_json::json;

use crate::peer::tool;
use crate::stage::{Role, Said, Stage};
use crate::web::{Web, listen};

fn bridge(stage: &Stage) -> Arc<Bridge> {
    Bridge::new(stage.target.clone(), BridgeSettings::default()).unwrap()
}

/// A server of a revision, on lines or on HTTP.
async fn stage(revision: Revision, is_http: bool) -> Stage {
    match is_http {
        true => Stage::http(Role::new(revision)).await,
        false => Stage::lines(Role::new(revision)),
    }
}

/// The next message that is no stream of a session, nor a look at the lists.
async fn heard(stage: &mut Stage) -> Said {
    loop {
        let said = stage.hear().await;
        match said.method() {
            "GET" => {}
            "tools/list" => said.result(json!({"resultType": "complete", "tools": []})),
            _ => return said,
        }
    }
}

/// Every way to be a server.
fn servers() -> impl Iterator<Item = (Revision, bool)> {
    let all = Revision::ALL.into_iter();
    all.flat_map(|revision| [(revision, false), (revision, true)])
}

/// H14: who closes the stream of a modern call has cancelled it, at a server of any revision on any carrier;
/// who loses the stream of a legacy one has not.
#[tokio::test]
async fn leaving_cancels_in_the_modern_era_only() {
    for (server, is_http) in servers() {
        for client in Revision::ALL {
            let what = format!("{client} before {server}, http: {is_http}");
            let mut stage = stage(server, is_http).await;
            let url = listen(&bridge(&stage)).await;
            let web = match client.era() {
                Era::Modern => Web::modern(&url, json!({})),
                Era::Legacy => Web::legacy(&url, client.as_str(), json!({})).await,
            };
            let caller = web.clone();
            let calling =
                tokio::spawn(
                    async move { caller.request(1, "tools/call", tool("slow")).await.status },
                );
            let said = heard(&mut stage).await;
            assert_eq!(said.method(), "tools/call", "{what}");
            calling.abort();
            assert!(calling.await.is_err(), "{what}: nobody has answered yet");
            match (client.era(), server.era(), is_http) {
                // Its stream is the call.
                (Era::Modern, Era::Modern, true) => said.closed().await,
                (Era::Modern, _, _) => {
                    let cancelled = heard(&mut stage).await;
                    assert_eq!(cancelled.method(), "notifications/cancelled", "{what}");
                    let id = &cancelled.params()["requestId"];
                    assert_eq!(id, &said.message["id"], "{what}");
                }
                (Era::Legacy, _, _) => {
                    let asking = tokio::spawn(async move {
                        web.request(2, "prompts/list", json!({})).await.status
                    });
                    // Had the call been cancelled, the server would have heard of that first.
                    let listed = heard(&mut stage).await;
                    assert_eq!(listed.method(), "prompts/list", "{what}");
                    assert!(!said.is_over(), "{what}");
                    said.text("done");
                    listed.result(json!({"resultType": "complete", "prompts": []}));
                    assert_eq!(asking.await.unwrap(), 200, "{what}");
                }
            }
        }
    }
}

/// H13: what a legacy server asks during the call of a modern client ends the call with a result that asks;
/// no request is ever sent to the client.
#[tokio::test]
async fn a_modern_client_is_asked_by_a_result_only() {
    for (server, is_http) in servers().filter(|(server, _)| *server >= Revision::V2025_06_18) {
        if server.era() == Era::Modern {
            continue;
        }
        let mut stage = stage(server, is_http).await;
        let url = listen(&bridge(&stage)).await;
        let web = Web::modern(
            &url,
            json!({"elicitation": {}, "sampling": {}, "roots": {}}),
        );
        for (method, params) in [
            ("roots/list", json!({})),
            (
                "sampling/createMessage",
                json!({"maxTokens": 9, "messages": []}),
            ),
            (
                "elicitation/create",
                json!({"message": "Who?",
                    "requestedSchema": {"type": "object", "properties": {}}}),
            ),
        ] {
            let (mut reply, said) =
                tokio::join!(web.request(1, "tools/call", tool("ask")), async {
                    let said = heard(&mut stage).await;
                    said.ask("q", method, params.clone());
                    said
                });
            let only = reply.only().await;
            let result = &only["result"];
            assert_eq!(result["resultType"], "input_required", "{server} {only}");
            let asked = result["inputRequests"].as_object().unwrap();
            let mut asked = asked.values().map(|asked| asked["method"].as_str());
            assert_eq!(asked.next(), Some(Some(method)), "{server} {only}");
            said.text("done");
            // Nobody can answer it any more.
            let refused = heard(&mut stage).await.message;
            assert_eq!(refused["id"], "q", "{server} {refused}");
            assert!(refused["error"].is_object(), "{server} {refused}");
        }
    }
}
