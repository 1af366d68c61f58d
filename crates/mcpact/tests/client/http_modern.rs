//! HTTP of the modern era: headers that mirror the body, and one stream per request.

use std::sync::atomic::{AtomicUsize, Ordering};

use mcpact::client::{CallOptions, CancelToken, Client, ClientError};
use mcpact_sim::scripted::message::discover_result;
use serde_json::{Map, Value, json};

use crate::http_server::{Event, HttpServer, Reply, Seen};

fn everything() -> Value {
    json!({ "tools": {}, "prompts": {}, "resources": {} })
}

fn discover(seen: &Seen) -> Reply {
    // Servers of both eras may return a session id that has no meaning.
    let result = discover_result(everything());
    let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
    Reply::Json(200, vec![("Mcp-Session-Id", "ignored".to_owned())], answer)
}

/// T4: only POSTs, each with version, method and name headers, and never a session id.
#[tokio::test]
async fn every_request_has_protocol_headers() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        "tools/call" => Reply::result(seen, json!({ "resultType": "complete", "content": [] })),
        "resources/read" => {
            Reply::result(seen, json!({ "resultType": "complete", "contents": [] }))
        }
        "prompts/get" => Reply::result(seen, json!({ "resultType": "complete", "messages": [] })),
        _ => Reply::result(seen, json!({ "resultType": "complete", "tools": [] })),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    client.list_tools().await.unwrap();
    client.call_tool("caf\u{e9}", json!({})).await.unwrap();
    client.read_resource("file:///a b").await.unwrap();
    client.get_prompt("p", Map::new()).await.unwrap();
    client.close().await;
    let all = server.seen();
    assert!(all.iter().all(|seen| seen.verb == "POST"));
    for seen in &all {
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(seen.method()));
        assert_eq!(seen.header("mcp-session-id"), None);
    }
    let names: Vec<_> = all.iter().map(|seen| seen.header("mcp-name")).collect();
    let encoded = Some("=?base64?Y2Fmw6k=?=");
    assert_eq!(names, [None, None, encoded, Some("file:///a b"), Some("p")]);
}

/// T4 F13: cancellation closes the stream; nothing is posted.
#[tokio::test]
async fn cancellation_closes_the_stream() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        _ => Reply::Events(vec![Event::Hold]),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let token = CancelToken::new();
    let options = CallOptions::new().cancel(token.clone());
    let (outcome, ()) = tokio::join!(client.call_tool_with("t", json!({}), options), async {
        server
            .until(|server| server.of("tools/call").len() == 1)
            .await;
        token.cancel();
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
    server.until(|server| server.left() == ["tools/call"]).await;
    assert!(server.of("notifications/cancelled").is_empty());
}

/// T4: notifications and the result of a request come on its stream.
#[tokio::test]
async fn result_may_arrive_on_a_stream() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        _ => {
            let token = &seen.body["params"]["_meta"]["progressToken"];
            let params = json!({ "progressToken": token, "progress": 1 });
            Reply::Events(vec![
                Event::Text(": keep-alive".to_owned()),
                Event::Data(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })),
                Event::Data(json!({ "jsonrpc": "2.0", "id": seen.body["id"],
                    "result": { "resultType": "complete", "content": [] } })),
                Event::Hold,
            ])
        }
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&count);
    let options = CallOptions::new().on_progress(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    client
        .call_tool_with("t", json!({}), options)
        .await
        .unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// T4: a broken modern stream is neither resumed nor is its call resent.
#[tokio::test]
async fn broken_modern_stream_is_not_resumed() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        _ => Reply::Events(vec![Event::Text("id: 7\nretry: 1\ndata:".to_owned())]),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let failed = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::ProtocolViolation(_)),
        "{failed:?}"
    );
    assert!(server.verbs("GET").is_empty());
    assert_eq!(server.of("tools/call").len(), 1);
}

fn annotated(header: &str) -> Value {
    json!({ "resultType": "complete", "tools": [
        { "name": "good", "inputSchema": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": header },
            "place": { "type": "object", "properties": {
                "number": { "type": "integer", "x-mcp-header": "Number" } } },
            "loud": { "type": "boolean", "x-mcp-header": "Loud" } } } },
        { "name": "bad", "inputSchema": { "type": "object", "properties": {
            "x": { "type": "number", "x-mcp-header": "X" } } } },
    ] })
}

/// T4, H11, HH-09, HH-13: annotated parameters are mirrored into headers, nested ones too, but not null and absent
/// ones; tools with invalid annotations are left out of the list.
#[tokio::test]
async fn annotated_parameters_are_mirrored_into_headers() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        "tools/list" => Reply::result(seen, annotated("Region")),
        _ => Reply::result(seen, json!({ "resultType": "complete", "content": [] })),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good"]);
    let arguments = json!({ "region": " \u{fc}ber ", "place": { "number": 42 }, "loud": null });
    client.call_tool("good", arguments).await.unwrap();
    client
        .call_tool("good", json!({ "loud": true }))
        .await
        .unwrap();
    let calls = server.of("tools/call");
    assert_eq!(
        calls[0].header("mcp-param-region"),
        Some("=?base64?IMO8YmVyIA==?=")
    );
    assert_eq!(calls[0].header("mcp-param-number"), Some("42"));
    assert_eq!(calls[0].header("mcp-param-loud"), None);
    assert_eq!(calls[1].header("mcp-param-region"), None);
    assert_eq!(calls[1].header("mcp-param-loud"), Some("true"));
}

/// T4, HH-14: after a header mismatch the tools are listed again, and the call is repeated once.
#[tokio::test]
async fn header_mismatch_refreshes_tools_and_retries_once() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        "tools/list" => Reply::result(seen, annotated("Region")),
        _ if seen.header("mcp-param-region") == Some("eu") => {
            Reply::result(seen, json!({ "resultType": "complete", "content": [] }))
        }
        _ => Reply::error(seen, 400, -32020, Value::Null),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    client
        .call_tool("good", json!({ "region": "eu" }))
        .await
        .unwrap();
    assert_eq!(server.of("tools/call").len(), 2);
    let failed = client
        .call_tool("good", json!({ "region": "us" }))
        .await
        .unwrap_err();
    assert_eq!(failed.code(), Some(-32020));
    assert_eq!(server.of("tools/call").len(), 4);
    assert_eq!(server.of("tools/list").len(), 2);
}

/// T4: an unknown method is a 404 with an error, not a lost session.
#[tokio::test]
async fn unknown_method_404_is_not_a_lost_session() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => discover(seen),
        _ => Reply::error(seen, 404, -32601, Value::Null),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let failed = client.list_tools().await.unwrap_err();
    assert_eq!(failed.code(), Some(-32601));
    assert_eq!(server.of("server/discover").len(), 1);
}

/// A server that refuses a version and lists that very version is probed once more.
#[tokio::test]
async fn refused_version_that_is_listed_is_probed_again() {
    let asked = AtomicUsize::new(0);
    let server = HttpServer::start(move |seen| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => {
            let data = json!({ "supported": ["2026-07-28"], "requested": "2026-07-28" });
            Reply::error(seen, 400, -32022, data)
        }
        _ => discover(seen),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2026-07-28");
}
