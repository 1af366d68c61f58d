//! Servers that do what the specification does not foresee, as real ones do.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderName, Method};
use mcpact::client::{CallOptions, CancelToken, ClientError};
use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::sse::{EventParts, write_event};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::middle::{Carrier, connect};
use crate::raw::Raw;
use crate::scripted::Scripted;

fn bridge(target: Target) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}

fn introduction() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "peculiar", "version": "1"},
    })
}

fn text(text: &Value) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A server that asks for roots as soon as it may, and answers a call when it knows them.
async fn hasten(mut link: Link) {
    let mut waiting = Value::Null;
    while link.source.fill().await.unwrap_or_default() {
        let mut said = Vec::new();
        while let Some(Line::Json(bytes)) = link.source.next_line() {
            let message: Value = serde_json::from_slice(bytes).unwrap();
            let id = &message["id"];
            said.push(match message["method"].as_str() {
                Some("initialize") => json!({"id": id, "result": introduction()}),
                Some("notifications/initialized") => json!({"id": "r", "method": "roots/list"}),
                Some("tools/call") => {
                    waiting = id.clone();
                    continue;
                }
                Some(_) => {
                    json!({"id": id, "error": {"code": -32601, "message": "Method not found"}})
                }
                None => {
                    let root = &message["result"]["roots"][0]["uri"];
                    json!({"id": waiting, "result": text(root)})
                }
            });
        }
        for mut message in said {
            message["jsonrpc"] = json!("2.0");
            link.sink.push(&message.to_string());
        }
        link.sink.flush().await.unwrap();
    }
}

/// A question that comes before the client has finished its handshake is put to it afterwards.
#[tokio::test]
async fn an_early_question_waits_for_the_handshake() {
    let target = Target::Local(Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        tokio::spawn(hasten(theirs));
        ours
    })));
    let mut client = Raw::before(&bridge(target));
    client.shake("2025-06-18", json!({"roots": {}})).await;
    let call = json!({"name": "root", "arguments": {}});
    client.post(1, "tools/call", call).await;
    let asked = client.note("roots/list").await;
    let roots = json!({"roots": [{"uri": "file:///home/ann"}]});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": roots});
    client.send(answer).await;
    let told = client.answer(1).await;
    assert_eq!(told["result"], text(&json!("file:///home/ann")), "{told}");
}

/// A server on HTTP that answers what it does not know under an id of its own, and asks during a call on
/// the stream that belongs to none.
#[derive(Debug, Default)]
struct Aside {
    stream: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    answered: Mutex<Option<oneshot::Sender<Value>>>,
}

impl Aside {
    async fn post(&self, message: &Value) -> HttpResponse {
        let id = &message["id"];
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
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let session = HeaderName::from_static("mcp-session-id");
        HttpResponse::json(200, answer.to_string()).with(session, "one")
    }

    /// Asks the model and tells what it said.
    async fn call(&self) -> Value {
        let (answer, answered) = oneshot::channel();
        *self.answered.lock().unwrap() = Some(answer);
        let params = json!({"messages": [], "maxTokens": 10});
        let method = "sampling/createMessage";
        let ask = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
        let data = ask.to_string();
        let mut bytes = Vec::new();
        let parts = EventParts {
            data: Some(&data),
            ..EventParts::default()
        };
        write_event(&mut bytes, &parts).unwrap();
        let stream = self.stream.lock().unwrap().clone();
        stream.unwrap().send(bytes.into()).unwrap();
        text(&answered.await.unwrap()["content"]["text"])
    }

    fn listen(&self) -> HttpResponse {
        let (sender, receiver) = mpsc::unbounded_channel();
        sender.send(Bytes::from_static(b": hello\n\n")).unwrap();
        *self.stream.lock().unwrap() = Some(sender);
        HttpResponse::events(unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        }))
    }
}

impl Endpoint for Aside {
    async fn handle(&self, arrival: Box<HttpRequest>) -> HttpResponse {
        match arrival.verb {
            Method::POST => {
                let message = serde_json::from_slice(&arrival.body).unwrap();
                self.post(&message).await
            }
            Method::GET => self.listen(),
            _ => HttpResponse::empty(405),
        }
    }
}

/// A modern client uses a server of which the bridge learns the era by an error that names no request of
/// its own, and is asked what the server asks aside while its call is the only one.
#[tokio::test]
async fn a_question_aside_belongs_to_the_only_call() {
    let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/mcp", http.address());
    tokio::spawn(http.serve(Arc::new(Aside::default()), std::future::pending()));
    let mut client = Raw::before(&bridge(Target::url(url)));
    let call = json!({"name": "ask", "arguments": {}});
    let mut call = client.modern(call, &json!({"sampling": {}}));
    let asked = client.ask(1, "tools/call", call.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    let content = json!({"type": "text", "text": "Paris"});
    let said = json!({"model": "m", "role": "assistant", "content": content});
    call["inputResponses"] = json!({key: said});
    call["requestState"] = asked["result"]["requestState"].clone();
    let told = client.ask(2, "tools/call", call).await;
    assert_eq!(told["result"]["content"][0]["text"], "Paris", "{told}");
}

/// What a client gives up is given up at the server, whatever the two speak.
#[tokio::test]
async fn a_call_that_is_given_up_ends_at_the_server() {
    for client in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for server in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let (connected, _running) = connect(Carrier::Lines, client, Carrier::Lines, server)
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
            // Once this is answered, the cancellation has been sent: the next call finds the way free.
            connected.list_tools().await.unwrap();
            // The connection of the call rests for a moment, and another one knows nothing of it.
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

/// Who stands before a server may answer for it in JSON that is no message; it is told what it said.
#[tokio::test]
async fn trouble_before_the_agreement_is_told_with_its_status() {
    let script = |_: &HttpRequest, _: &Value| {
        HttpResponse::json(503, r#"{"message":"Service Unavailable"}"#)
    };
    let (_, target) = Scripted::listen(script).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let mut client = Raw::before(&bridge);
    let refused = client.ask_modern(1, "tools/list", json!({})).await;
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(told.contains("503"), "{told}");
}
