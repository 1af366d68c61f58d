//! Servers that deviate from the specification in ways that occur in practice.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderName, Method};
use mcpact::client::{CallOptions, CancelToken, ClientError};
use mcpact_gateway::Target;
use mcpact_sim::scripted::http_server::{self, event, stream};
use mcpact_sim::scripted::message::{
    initialize_result, method_not_found, modern_params, request, response,
};
use mcpact_sim::scripted::{HttpScript, LinkServer, TestClient};
use mcpact_spec::Revision;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_transport::link::Link;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::pairs::{Transport, connect};
use crate::targets::{in_memory, upstream};

fn introduction() -> Value {
    initialize_result("2025-11-25", json!({"tools": {}}))
}

fn text(text: &Value) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Connects to a server that requests roots right after the handshake, and answers a call when it has them.
fn asks_for_roots_early() -> Link {
    let mut waiting = Value::Null;
    let script = move |message: &Value| match message["method"].as_str() {
        Some("initialize") => vec![response(message, introduction())],
        Some("notifications/initialized") => vec![request("r", "roots/list", json!({}))],
        Some("tools/call") => {
            waiting = message.clone();
            Vec::new()
        }
        Some(_) => vec![method_not_found(message)],
        None => {
            let root = &message["result"]["roots"][0]["uri"];
            vec![response(&waiting, text(root))]
        }
    };
    LinkServer::start(script).0
}

/// A question that arrives before the handshake of the client is complete is asked after it.
#[tokio::test]
async fn early_question_waits_for_the_handshake() {
    let mut client = TestClient::silent(&upstream(in_memory(asks_for_roots_early)));
    client.open("2025-06-18", json!({"roots": {}})).await;
    let call = json!({"name": "root", "arguments": {}});
    client.request(1, "tools/call", call).await;
    let asked = client.notification("roots/list").await;
    let roots = json!({"roots": [{"uri": "file:///home/ann"}]});
    client.answer(&asked, roots).await;
    let done = client.response(1).await;
    assert_eq!(done["result"], text(&json!("file:///home/ann")), "{done}");
}

/// HTTP server that answers unknown methods with an id of its own, and asks during a call on the stream of the session.
#[derive(Debug, Default)]
struct AsksOnSessionStream {
    stream: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    answered: Mutex<Option<oneshot::Sender<Value>>>,
}

impl AsksOnSessionStream {
    async fn post(&self, message: &Value) -> HttpResponse {
        let result = match message["method"].as_str() {
            Some("initialize") => introduction(),
            Some("tools/call") => self.call().await,
            Some("notifications/initialized") => return HttpResponse::empty(202),
            Some(_) => {
                let error = json!({"code": -32600, "message": "Bad Request"});
                let body = json!({"jsonrpc": "2.0", "id": "server-error", "error": error});
                return HttpResponse::json(400, body.to_string());
            }
            None => {
                let waiting = self.answered.lock().unwrap().take();
                waiting.unwrap().send(message["result"].clone()).unwrap();
                return HttpResponse::empty(202);
            }
        };
        let session = HeaderName::from_static("mcp-session-id");
        http_server::result(message, result).with(session, "one")
    }

    /// Asks the model; returns its text.
    async fn call(&self) -> Value {
        let (answer, answered) = oneshot::channel();
        *self.answered.lock().unwrap() = Some(answer);
        let params = json!({"messages": [], "maxTokens": 10});
        let question = request("q", "sampling/createMessage", params).to_string();
        let stream = self.stream.lock().unwrap().clone();
        stream.unwrap().send(event(None, None, &question)).unwrap();
        text(&answered.await.unwrap()["content"]["text"])
    }

    fn listen(&self) -> HttpResponse {
        let (sender, answer) = stream();
        sender.send(Bytes::from_static(b": hello\n\n")).unwrap();
        *self.stream.lock().unwrap() = Some(sender);
        answer
    }
}

impl Endpoint for AsksOnSessionStream {
    async fn handle(&self, request: Box<HttpRequest>) -> HttpResponse {
        match request.verb {
            Method::POST => {
                let message = serde_json::from_slice(&request.body).unwrap();
                self.post(&message).await
            }
            Method::GET => self.listen(),
            _ => HttpResponse::empty(405),
        }
    }
}

/// The era of a server is detected by an error with a foreign id. A question on the session stream is assigned to the call
/// if it is the only one.
#[tokio::test]
async fn question_on_the_session_stream_belongs_to_the_only_call() {
    let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/mcp", http.address().unwrap());
    tokio::spawn(http.serve(
        Arc::new(AsksOnSessionStream::default()),
        std::future::pending(),
    ));
    let mut client = TestClient::silent(&upstream(Target::url(url)));
    let call = json!({"name": "ask", "arguments": {}});
    let mut call = modern_params(call, &json!({"sampling": {}}));
    let asked = client.call(1, "tools/call", call.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    let content = json!({"type": "text", "text": "Paris"});
    let said = json!({"model": "m", "role": "assistant", "content": content});
    call["inputResponses"] = json!({key: said});
    call["requestState"] = asked["result"]["requestState"].clone();
    let done = client.call(2, "tools/call", call).await;
    assert_eq!(done["result"]["content"][0]["text"], "Paris", "{done}");
}

/// Cancelling a call cancels it at the server, in all combinations of eras.
#[tokio::test]
async fn cancelled_call_is_cancelled_at_the_server() {
    for client in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for server in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let connected = connect(Transport::Link, client, Transport::Link, server)
                .await
                .unwrap();
            let token = CancelToken::new();
            let canceller = token.clone();
            let options = CallOptions::new()
                .cancel(token)
                .on_progress(move |_| canceller.cancel());
            let key = json!({"key": format!("{client} {server}")});
            let call = connected.call_tool_with("test_cancellation", key.clone(), options);
            assert!(matches!(call.await, Err(ClientError::Cancelled)));
            // Once this is answered, the cancellation has been sent.
            connected.list_tools().await.unwrap();
            // The connection of the call takes no other call for a while, and another one has not seen the cancellation.
            let mut is_seen = false;
            for _ in 0..3 {
                let seen = connected.call_tool("test_cancellation_seen", key.clone());
                is_seen |= seen.await.unwrap().all_text().ends_with("was cancelled.");
                if is_seen {
                    break;
                }
            }
            assert!(is_seen, "{client} before {server}");
        }
    }
}

/// A proxy in front of a server may answer with JSON that is not a message: the error contains its status.
#[tokio::test]
async fn http_error_during_negotiation_is_reported_with_its_status() {
    let script = |_: &HttpRequest, _: &Value| {
        HttpResponse::json(503, r#"{"message":"Service Unavailable"}"#)
    };
    let (_, url) = HttpScript::listen(script).await;
    let bridge = upstream(Target::url(url));
    let mut client = TestClient::silent(&bridge);
    let refused = client.call_modern(1, "tools/list", json!({})).await;
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.contains("503"), "{text}");
}
