//! What HTTP headers say, on either side of a bridge.

use std::sync::Arc;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::raw::{Raw, initialize, post, session_in};
use crate::scripted::{Scripted, discovered, error, result, texted};

/// A server whose tool wants its argument in a header, too.
fn regional(arrival: &HttpRequest, message: &Value) -> HttpResponse {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => result(message, discovered(json!({"tools": {}}))),
        "tools/list" => {
            let tools = json!([{"name": "local", "inputSchema": schema}]);
            let list = json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
            result(message, list)
        }
        "tools/call" => match arrival.header("mcp-param-region") {
            Some(region) => result(message, texted(region)),
            None => error(message, 400, -32020),
        },
        _ => HttpResponse::empty(202),
    }
}

/// BA-28: when a modern server misses a header, its tool list is read once and the call is made once
/// more with the headers that it asks for; the legacy client sees only the result.
#[tokio::test]
async fn a_missing_header_is_learned_from_the_tool_list() {
    let (server, target) = Scripted::listen(regional).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let mut client = Raw::before(&bridge);
    client.shake("2025-06-18", json!({})).await;
    for id in [1, 2] {
        let call = json!({"name": "local", "arguments": {"region": "north"}});
        let answer = client.ask(id, "tools/call", call).await;
        assert_eq!(answer["result"]["content"][0]["text"], "north", "{answer}");
    }
    assert_eq!(server.heard("tools/list").len(), 1, "read once");
    assert_eq!(server.heard("tools/call").len(), 3, "one was refused");
    // Without the argument there is no header to send, however often the list is read.
    let call = json!({"name": "local", "arguments": {}});
    let answer = client.ask(3, "tools/call", call).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(server.heard("tools/call").len(), 5, "tried once more");
}

/// BA-26: a legacy client whose `Accept` takes no stream cannot be asked anything during that request, so
/// the modern server is told of no capability, and the answer is JSON; with its next request it can.
#[tokio::test]
async fn who_takes_no_stream_declares_nothing() {
    let (server, target) = Scripted::listen(|_, message| {
        let method = message["method"].as_str().unwrap_or_default();
        result(
            message,
            match method {
                "server/discover" => discovered(json!({"tools": {}})),
                _ => texted("done"),
            },
        )
    })
    .await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let front = Arc::clone(&bridge).listen(([127, 0, 0, 1], 0).into()).await;
    let front = front.unwrap();
    let address = front.address().to_string();
    tokio::spawn(front.run(std::future::pending()));
    let hello = initialize(&json!({"elicitation": {}}));
    let both = "accept: application/json, text/event-stream\r\n";
    let opened = post(&address, both, &hello).await;
    let session = session_in(&opened);
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x", "arguments": {}},
    });
    for accept in ["accept: application/json\r\n", both] {
        let reply = post(&address, &format!("{session}\r\n{accept}"), &call).await;
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        assert!(
            reply.contains("\r\ncontent-type: application/json\r\n"),
            "{reply}"
        );
        assert!(reply.contains("done"), "{reply}");
    }
    let key = "io.modelcontextprotocol/clientCapabilities";
    let declared: Vec<_> = server
        .heard("tools/call")
        .iter()
        .map(|call| call["params"]["_meta"][key].clone())
        .collect();
    let elicits = declared[1].get("elicitation").is_some();
    assert!(declared[0] == json!({}) && elicits, "{declared:?}");
}
