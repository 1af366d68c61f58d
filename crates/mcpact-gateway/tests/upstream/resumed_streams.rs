//! Streams that a legacy server ends early, and that the gateway resumes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderName, Method};
use mcpact_gateway::Target;
use mcpact_sim::scripted::TestClient;
use mcpact_sim::scripted::http_server::{HttpScript, error, event, result, stream};
use mcpact_sim::scripted::message::{
    initialize_result, modern_params, request, response, text_result,
};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::targets::upstream;

/// Server of 2025-11-25 that asks during a call and ends the stream after the question.
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
                let hello = initialize_result("2025-11-25", json!({"tools": {}}));
                result(message, hello).with(HeaderName::from_static("mcp-session-id"), "s1")
            }
            Some("tools/call") => self.call(message),
            Some(_) if message.get("id").is_some() => error(message, 200, -32601),
            Some(_) => HttpResponse::empty(202),
            None => self.answered(message),
        }
    }

    /// Sends the question and ends the stream, which the client then resumes.
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
        let question = request("q1", "elicitation/create", params);
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

    /// Sends the result of the call on the resumed stream.
    fn answered(&self, message: &Value) -> HttpResponse {
        let name = message["result"]["content"]["name"].as_str().unwrap();
        let call = json!({"id": *self.call.lock().unwrap()});
        let done = response(&call, text_result(name));
        let Some(stream) = self.resumed.lock().unwrap().take() else {
            return HttpResponse::empty(500);
        };
        stream
            .send(event(Some("c-3"), None, &done.to_string()))
            .unwrap();
        HttpResponse::empty(202)
    }
}

/// BB-32: a server of 2025-11-25 may end the stream while its call waits for input. The stream is resumed with
/// `Last-Event-ID`, the suspended call continues, and the tool runs once.
#[tokio::test]
async fn suspended_call_continues_on_the_resumed_stream() {
    let polling = Arc::new(Polling::default());
    let server = Arc::clone(&polling);
    let script = move |request: &HttpRequest, message: &Value| server.answer(request, message);
    let (_, url) = HttpScript::listen(script).await;
    let bridge = upstream(Target::url(url));
    let mut client = TestClient::silent(&bridge);
    let declared = json!({"elicitation": {}});
    let call = json!({"name": "greet", "arguments": {}});
    let params = modern_params(call.clone(), &declared);
    let asked = client.call(1, "tools/call", params).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap().clone();
    while polling.resumed.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let mut again = modern_params(call, &declared);
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Ann"}}});
    let done = client.call(2, "tools/call", again).await;
    assert_eq!(done["result"]["content"][0]["text"], "Ann", "{done}");
    assert_eq!(
        polling.calls.load(Ordering::SeqCst),
        1,
        "the tool runs once"
    );
}

/// BB-32: if a stream cannot be resumed, the error of the call says that it ended without a result.
#[tokio::test]
async fn call_fails_if_its_stream_cannot_be_resumed() {
    let polling = Polling::default();
    let script = move |request: &HttpRequest, message: &Value| polling.answer(request, message);
    let (_, url) = HttpScript::listen(script).await;
    let bridge = upstream(Target::url(url));
    let mut client = TestClient::silent(&bridge);
    let call = json!({"name": "vanish", "arguments": {}});
    let lost = client.call_modern(1, "tools/call", call).await;
    let text = lost["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("ended without a result, and could not be resumed (HTTP 405)"),
        "{text}"
    );
    assert_eq!(lost["error"]["data"]["reason"], "upstream_gone", "{lost}");
}
