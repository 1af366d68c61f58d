//! Answers that are longer than a message may be: whoever asked is told so, and nobody else.

use std::sync::Arc;

use http::Method;
use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_transport::http::server::HttpResponse;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::scripted::{Scripted, discovered, event, result, stream, texted};

fn bridge(target: Target) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}

/// A result that does not fit.
fn huge() -> String {
    let text = "\u{1f642}".repeat(DEFAULT_LINE_LIMIT / 4);
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
}

/// Answers calls of the tools `first`, `last` and `nowhere` at too great a length, with the id there. A
/// call of `hold` is answered together with the next one of `echo`, one of `log` after a note that is too
/// long.
async fn talk(mut link: Link) {
    let mut held = Vec::new();
    while link.source.fill().await.unwrap_or_default() {
        let mut said = Vec::new();
        while let Some(Line::Json(bytes)) = link.source.next_line() {
            let message: Value = serde_json::from_slice(bytes).unwrap();
            let Some(id) = message.get("id").cloned() else {
                continue;
            };
            let answer = |id: &Value, result: Value| {
                json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
            };
            let text = json!({"content": [{"type": "text", "text": "here"}]});
            match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    let introduction = json!({
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}, "logging": {}},
                        "serverInfo": {"name": "talkative", "version": "1"},
                    });
                    said.push(answer(&id, introduction));
                }
                "tools/call" => match message["params"]["name"].as_str().unwrap_or_default() {
                    "first" => said.push(format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
                        huge()
                    )),
                    "last" => said.push(format!(
                        r#"{{"result":{},"jsonrpc":"2.0","id":{id}}}"#,
                        huge()
                    )),
                    "nowhere" => said.push(format!(
                        r#"{{"result":{},"and":"{}"}}"#,
                        huge(),
                        "-".repeat(200)
                    )),
                    "log" => {
                        let method = "notifications/message";
                        said.push(format!(r#"{{"method":"{method}","params":{}}}"#, huge()));
                        said.push(answer(&id, text));
                    }
                    "hold" => held.push(id),
                    _ => {
                        let all = held.drain(..).chain([id]);
                        said.extend(all.map(|id| answer(&id, text.clone())));
                    }
                },
                _ => said.push(answer(&id, json!({}))),
            }
        }
        for message in said {
            link.sink.push(&message);
        }
        link.sink.flush().await.unwrap();
    }
}

fn talkative() -> Target {
    Target::Local(Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        tokio::spawn(talk(theirs));
        ours
    })))
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

/// On lines an answer is told by the id at either end of it; other calls are not disturbed.
#[tokio::test]
async fn the_caller_of_a_line_that_is_too_long_is_told_at_once() {
    let mut client = Raw::before(&bridge(talkative()));
    client.shake("2025-06-18", json!({})).await;
    client.post(1, "tools/call", call("hold")).await;
    refused(&client.ask(2, "tools/call", call("first")).await);
    refused(&client.ask(3, "tools/call", call("last")).await);
    // What is no answer ends no call.
    assert_eq!(
        said(&client.ask(4, "tools/call", call("log")).await),
        "here"
    );
    // Here two calls wait, and one is answered.
    client.post(5, "tools/call", call("nowhere")).await;
    assert_eq!(
        said(&client.ask(6, "tools/call", call("echo")).await),
        "here"
    );
    assert_eq!(said(&client.answer(1).await), "here");
}

/// An answer that names nobody is for the only caller.
#[tokio::test]
async fn the_only_caller_is_told_of_an_answer_without_an_id() {
    let mut client = Raw::before(&bridge(talkative()));
    client.shake("2025-06-18", json!({})).await;
    refused(&client.ask(1, "tools/call", call("nowhere")).await);
    assert_eq!(
        said(&client.ask(2, "tools/call", call("echo")).await),
        "here"
    );
}

/// On HTTP every answer has its own way, in one piece or as an event of a stream that stays open.
#[tokio::test]
async fn the_caller_of_an_http_answer_that_is_too_long_is_told_at_once() {
    let (streams, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let (_server, target) = Scripted::listen(move |arrival, message| {
        if arrival.verb != Method::POST {
            return HttpResponse::empty(405);
        }
        let tool = message["params"]["name"].as_str();
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => result(message, discovered(json!({"tools": {}}))),
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
            _ => result(message, texted("here")),
        }
    })
    .await;
    let mut client = Raw::before(&bridge(target));
    refused(&client.ask_modern(1, "tools/call", call("whole")).await);
    refused(&client.ask_modern(2, "tools/call", call("event")).await);
    assert!(kept.recv().await.is_some());
    assert_eq!(
        said(&client.ask_modern(3, "tools/call", call("echo")).await),
        "here"
    );
}
