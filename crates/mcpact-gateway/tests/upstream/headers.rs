//! HTTP headers of clients and servers.

use mcpact_gateway::Target;
use mcpact_sim::scripted::http_server::{HttpScript, error, result};
use mcpact_sim::scripted::message::{discover_result, initialize, request, text_result, tool};
use mcpact_sim::scripted::{TestClient, listen, post, session_header};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::targets::upstream;

/// Server with a tool that requires its argument in a header, too.
fn regional(request: &HttpRequest, message: &Value) -> HttpResponse {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => result(message, discover_result(json!({"tools": {}}))),
        "tools/list" => {
            let tools = json!([{"name": "local", "inputSchema": schema}]);
            let list = json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
            result(message, list)
        }
        "tools/call" => match request.header("mcp-param-region") {
            Some(region) => result(message, text_result(region)),
            None => error(message, 400, -32020),
        },
        _ => HttpResponse::empty(202),
    }
}

/// BA-28: if a modern server misses a header, its tool list is read once and the call is sent again with the headers of
/// the list; the legacy client sees only the result.
#[tokio::test]
async fn missing_header_is_taken_from_the_tool_list() {
    let (server, url) = HttpScript::listen(regional).await;
    let bridge = upstream(Target::url(url));
    let mut client = TestClient::silent(&bridge);
    client.open("2025-06-18", json!({})).await;
    for id in [1, 2] {
        let call = json!({"name": "local", "arguments": {"region": "north"}});
        let answer = client.call(id, "tools/call", call).await;
        assert_eq!(answer["result"]["content"][0]["text"], "north", "{answer}");
    }
    assert_eq!(server.received("tools/list").len(), 1, "read once");
    assert_eq!(
        server.received("tools/call").len(),
        3,
        "one call was refused"
    );
    // Without the argument there is no header to send.
    let call = json!({"name": "local", "arguments": {}});
    let answer = client.call(3, "tools/call", call).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(server.received("tools/call").len(), 5, "sent twice");
}

/// BA-26: a legacy client that accepts no stream cannot be asked during that request, so no capability is declared to
/// the modern server, and the response is JSON. A later request with another `Accept` declares them.
#[tokio::test]
async fn request_without_stream_declares_no_capabilities() {
    let (server, url) = HttpScript::listen(|_, message| {
        let method = message["method"].as_str().unwrap_or_default();
        result(
            message,
            match method {
                "server/discover" => discover_result(json!({"tools": {}})),
                _ => text_result("done"),
            },
        )
    })
    .await;
    let bridge = upstream(Target::url(url));
    let url = listen(&bridge).await;
    let hello = initialize(0, "2025-11-25", json!({"elicitation": {}}));
    let both = "accept: application/json, text/event-stream\r\n";
    let opened = post(&url, both, &hello).await;
    let session = session_header(&opened);
    let call = request(1, "tools/call", tool("x"));
    for accept in ["accept: application/json\r\n", both] {
        let reply = post(&url, &format!("{session}{accept}"), &call).await;
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        assert!(
            reply.contains("\r\ncontent-type: application/json\r\n"),
            "{reply}"
        );
        assert!(reply.contains("done"), "{reply}");
    }
    let key = "io.modelcontextprotocol/clientCapabilities";
    let declared: Vec<_> = server
        .received("tools/call")
        .iter()
        .map(|call| call["params"]["_meta"][key].clone())
        .collect();
    let elicits = declared[1].get("elicitation").is_some();
    assert!(declared[0] == json!({}) && elicits, "{declared:?}");
}
