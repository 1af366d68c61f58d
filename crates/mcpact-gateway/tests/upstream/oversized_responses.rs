//! Responses above the size limit: their request fails, other requests are not affected.

use http::Method;
use mcpact_gateway::Target;
use mcpact_sim::scripted::http_server::{HttpScript, event, result, stream};
use mcpact_sim::scripted::message::{discover_result, response, text_result};
use mcpact_sim::scripted::{LinkServer, TestClient};
use mcpact_transport::http::server::HttpResponse;
use mcpact_wire::frame::ndjson::DEFAULT_LINE_LIMIT;
use serde_json::{Value, json};

use crate::targets::{in_memory, upstream};

/// Result above the limit.
fn huge() -> String {
    let text = "\u{1f642}".repeat(DEFAULT_LINE_LIMIT / 4);
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
}

/// Returns the answers to a message, as lines.
///
/// The results of the tools `first`, `last` and `nowhere` are too long, with the id in that place. A call of `hold` is
/// answered together with the next one of `echo`, one of `log` after a notification that is too long.
fn answers(message: &Value, held: &mut Vec<Value>) -> Vec<String> {
    let text = |request: &Value| response(request, text_result("here")).to_string();
    let id = &message["id"];
    match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        _ if id.is_null() => Vec::new(),
        (Some("tools/call"), Some("first")) => {
            let huge = huge();
            vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{huge}}}"#)]
        }
        (Some("tools/call"), Some("last")) => {
            let huge = huge();
            vec![format!(r#"{{"result":{huge},"jsonrpc":"2.0","id":{id}}}"#)]
        }
        (Some("tools/call"), Some("nowhere")) => {
            let (huge, more) = (huge(), "-".repeat(200));
            vec![format!(r#"{{"result":{huge},"and":"{more}"}}"#)]
        }
        (Some("tools/call"), Some("log")) => {
            let method = "notifications/message";
            let log = format!(r#"{{"method":"{method}","params":{}}}"#, huge());
            vec![log, text(message)]
        }
        (Some("tools/call"), Some("hold")) => {
            held.push(message.clone());
            Vec::new()
        }
        (Some("tools/call"), _) => {
            let mut answers: Vec<String> = held.drain(..).map(|held| text(&held)).collect();
            answers.push(text(message));
            answers
        }
        _ => vec![response(message, json!({})).to_string()],
    }
}

fn oversizing() -> Target {
    in_memory(|| {
        let mut held = Vec::new();
        let capabilities = json!({"tools": {}, "logging": {}});
        let (link, _) = LinkServer::legacy("2025-06-18", capabilities, move |message| {
            let answers = answers(message, &mut held);
            answers.into_iter().map(Value::String).collect()
        });
        link
    })
}

fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}})
}

fn refused(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "upstream_too_long");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("limit of 16777216 bytes") && message.contains("request less data"),
        "{message}"
    );
}

fn said(answer: &Value) -> &Value {
    let text = &answer["result"]["content"][0]["text"];
    assert!(text.is_string(), "{answer}");
    text
}

/// On stdio a response that is too long is recognized by the id at its start or end; other calls continue.
#[tokio::test]
async fn oversized_line_fails_its_call_at_once() {
    let mut client = TestClient::silent(&upstream(oversizing()));
    client.open("2025-06-18", json!({})).await;
    client.request(1, "tools/call", call("hold")).await;
    refused(&client.call(2, "tools/call", call("first")).await);
    refused(&client.call(3, "tools/call", call("last")).await);
    // A message that is not a response ends no call.
    assert_eq!(
        said(&client.call(4, "tools/call", call("log")).await),
        "here"
    );
    // The line without an id fails neither of the two waiting calls.
    client.request(5, "tools/call", call("nowhere")).await;
    assert_eq!(
        said(&client.call(6, "tools/call", call("echo")).await),
        "here"
    );
    assert_eq!(said(&client.response(1).await), "here");
}

/// A response without an id fails the call that is the only one in flight.
#[tokio::test]
async fn oversized_line_without_an_id_fails_the_only_call() {
    let mut client = TestClient::silent(&upstream(oversizing()));
    client.open("2025-06-18", json!({})).await;
    refused(&client.call(1, "tools/call", call("nowhere")).await);
    assert_eq!(
        said(&client.call(2, "tools/call", call("echo")).await),
        "here"
    );
}

/// On HTTP a response that is too long fails its call, as a document or as an event of a stream that stays open.
#[tokio::test]
async fn oversized_http_response_fails_its_call_at_once() {
    let (streams, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let (_server, url) = HttpScript::listen(move |request, message| {
        if request.verb != Method::POST {
            return HttpResponse::empty(405);
        }
        let tool = message["params"]["name"].as_str();
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => result(message, discover_result(json!({"tools": {}}))),
            "tools/call" if tool == Some("whole") => {
                let body = format!(r#"{{"id":{},"result":{}}}"#, message["id"], huge());
                HttpResponse::json(200, body)
            }
            "tools/call" if tool == Some("event") => {
                let (sender, answer) = stream();
                let id = &message["id"];
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, huge());
                sender.send(event(Some("1"), None, &body)).unwrap();
                streams.send(sender).unwrap();
                answer
            }
            _ => result(message, text_result("here")),
        }
    })
    .await;
    let mut client = TestClient::silent(&upstream(Target::url(url)));
    refused(&client.call_modern(1, "tools/call", call("whole")).await);
    refused(&client.call_modern(2, "tools/call", call("event")).await);
    assert!(kept.recv().await.is_some());
    assert_eq!(
        said(&client.call_modern(3, "tools/call", call("echo")).await),
        "here"
    );
}
