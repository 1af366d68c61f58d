//! Disconnecting HTTP clients, and questions to modern clients.

use mcpact_sim::scripted::{HttpTestClient, listen, message::tool};
use mcpact_spec::{Era, Revision};
use serde_json::json;

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use crate::upstream;

/// Starts a server of a revision on stdio or HTTP.
async fn scripted(revision: Revision, is_http: bool) -> ScriptedServer {
    match is_http {
        true => ScriptedServer::http(Role::new(revision)).await,
        false => ScriptedServer::lines(Role::new(revision)),
    }
}

/// Returns the next message that neither opens the stream of a session nor requests a list.
async fn heard(scripted: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = scripted.recv().await;
        match said.method() {
            "GET" => {}
            "tools/list" => said.result(json!({"resultType": "complete", "tools": []})),
            _ => return said,
        }
    }
}

/// Returns every combination of revision and transport.
fn servers() -> impl Iterator<Item = (Revision, bool)> {
    let all = Revision::ALL.into_iter();
    all.flat_map(|revision| [(revision, false), (revision, true)])
}

/// H14: closing the stream cancels a modern call at a server of any revision on any transport, but not a legacy call.
#[tokio::test]
async fn disconnecting_cancels_only_modern_calls() {
    for (server, is_http) in servers() {
        for client in Revision::ALL {
            let what = format!("{client} before {server}, http: {is_http}");
            let mut scripted = scripted(server, is_http).await;
            let url = listen(&upstream(&scripted)).await;
            let web = match client.era() {
                Era::Modern => HttpTestClient::modern(&url, json!({})),
                Era::Legacy => HttpTestClient::legacy(&url, client.as_str(), json!({})).await,
            };
            let caller = web.clone();
            let calling =
                tokio::spawn(
                    async move { caller.request(1, "tools/call", tool("slow")).await.status },
                );
            let said = heard(&mut scripted).await;
            assert_eq!(said.method(), "tools/call", "{what}");
            calling.abort();
            assert!(calling.await.is_err(), "{what}: not answered yet");
            match (client.era(), server.era(), is_http) {
                // The stream is the call.
                (Era::Modern, Era::Modern, true) => said.closed().await,
                (Era::Modern, _, _) => {
                    let cancelled = heard(&mut scripted).await;
                    assert_eq!(cancelled.method(), "notifications/cancelled", "{what}");
                    let id = &cancelled.params()["requestId"];
                    assert_eq!(id, &said.message["id"], "{what}");
                }
                (Era::Legacy, _, _) => {
                    let asking = tokio::spawn(async move {
                        web.request(2, "prompts/list", json!({})).await.status
                    });
                    // A cancellation would have arrived first.
                    let listed = heard(&mut scripted).await;
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

/// H13: a question of a legacy server during the call of a modern client becomes an input-required result; no request
/// is sent to the client.
#[tokio::test]
async fn modern_clients_are_asked_only_by_results() {
    for (server, is_http) in servers().filter(|(server, _)| *server >= Revision::V2025_06_18) {
        if server.era() == Era::Modern {
            continue;
        }
        let mut scripted = scripted(server, is_http).await;
        let url = listen(&upstream(&scripted)).await;
        let web = HttpTestClient::modern(
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
                    let said = heard(&mut scripted).await;
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
            // The question can no longer be answered.
            let refused = heard(&mut scripted).await.message;
            assert_eq!(refused["id"], "q", "{server} {refused}");
            assert!(refused["error"].is_object(), "{server} {refused}");
        }
    }
}
