//! Streams that a legacy server breaks off, and that are taken up again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderName, Method};
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::raw::Raw;
use crate::scripted::{Scripted, error, event, result, stream};

/// A server of 2025-11-25 that asks during its call, and hangs up after the question.
#[derive(Default)]
struct Polling {
    call: Mutex<Value>,
    resumed: Mutex<Option<mpsc::UnboundedSender<Bytes>>>,
    calls: AtomicUsize,
}

impl Polling {
    fn answer(&self, arrival: &HttpRequest, message: &Value) -> HttpResponse {
        if arrival.verb == Method::GET {
            return self.listen(arrival);
        }
        match message["method"].as_str() {
            Some("initialize") => {
                let hello = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "polling", "version": "1"},
                });
                result(message, hello).with(HeaderName::from_static("mcp-session-id"), "s1")
            }
            Some("tools/call") => self.call(message),
            Some(_) if message.get("id").is_some() => error(message, 200, -32601),
            Some(_) => HttpResponse::empty(202),
            None => self.answered(message),
        }
    }

    /// The question, and the end of the stream: the client shall come back.
    fn call(&self, message: &Value) -> HttpResponse {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.call.lock().unwrap() = message["id"].clone();
        let (sender, answer) = stream();
        if message["params"]["name"] == "vanish" {
            sender.send(event(Some("v-1"), Some(20), "")).unwrap();
            return answer;
        }
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let question =
            json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params});
        sender.send(event(Some("c-1"), Some(20), "")).unwrap();
        sender
            .send(event(Some("c-2"), None, &question.to_string()))
            .unwrap();
        answer
    }

    fn listen(&self, arrival: &HttpRequest) -> HttpResponse {
        if arrival.header("last-event-id") != Some("c-2") {
            return HttpResponse::empty(405);
        }
        let (sender, answer) = stream();
        // A comment opens the stream.
        sender.send(Bytes::from_static(b": again\n\n")).unwrap();
        *self.resumed.lock().unwrap() = Some(sender);
        answer
    }

    /// The answer to the question ends the call, on the stream that was taken up.
    fn answered(&self, message: &Value) -> HttpResponse {
        let name = message["result"]["content"]["name"].as_str().unwrap();
        let done = json!({"content": [{"type": "text", "text": name}]});
        let call = self.call.lock().unwrap();
        let done = json!({"jsonrpc": "2.0", "id": *call, "result": done});
        let Some(stream) = self.resumed.lock().unwrap().take() else {
            return HttpResponse::empty(500);
        };
        stream
            .send(event(Some("c-3"), None, &done.to_string()))
            .unwrap();
        HttpResponse::empty(202)
    }
}

/// BB-32: a server of 2025-11-25 may hang up while its call waits for input; the stream is taken up with
/// `Last-Event-ID`, the parked call survives, and the tool runs once.
#[tokio::test]
async fn a_parked_call_survives_the_end_of_its_stream() {
    let polling = Arc::new(Polling::default());
    let server = Arc::clone(&polling);
    let script = move |arrival: &HttpRequest, message: &Value| server.answer(arrival, message);
    let (_, target) = Scripted::listen(script).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let mut client = Raw::before(&bridge);
    let declared = json!({"elicitation": {}});
    let call = json!({"name": "greet", "arguments": {}});
    let params = client.modern(call.clone(), &declared);
    let asked = client.ask(1, "tools/call", params).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap().clone();
    while polling.resumed.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let mut again = client.modern(call, &declared);
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Ann"}}});
    let done = client.ask(2, "tools/call", again).await;
    assert_eq!(done["result"]["content"][0]["text"], "Ann", "{done}");
    assert_eq!(polling.calls.load(Ordering::SeqCst), 1, "it ran once");
}

/// BB-32: whoever waits for an answer whose stream broke is told that, and not of the attempt to take it up.
#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_is_told() {
    let polling = Polling::default();
    let script = move |arrival: &HttpRequest, message: &Value| polling.answer(arrival, message);
    let (_, target) = Scripted::listen(script).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let mut client = Raw::before(&bridge);
    let call = json!({"name": "vanish", "arguments": {}});
    let lost = client.ask_modern(1, "tools/call", call).await;
    let told = lost["error"]["message"].as_str().unwrap();
    assert!(
        told.contains("ended without a result, and could not be resumed (HTTP 405)"),
        "{told}"
    );
    assert_eq!(lost["error"]["data"]["reason"], "upstream_gone", "{lost}");
}
