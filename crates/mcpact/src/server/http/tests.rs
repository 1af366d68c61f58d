use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_transport::http::server::HttpResponseBody;
use serde_json::{Value, json};

use super::*;
use crate::server::dispatch::Core;
use crate::server::{NoArgs, Server};

/// Server with a slow tool.
fn endpoint() -> HttpEndpoint<Core> {
    let server = Server::new("s", "1").tool("slow", "Takes a minute", |_: NoArgs, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok("done")
    });
    HttpEndpoint::new(server.build().unwrap())
}

fn http_request(headers: &[(&'static str, &str)], body: &Value) -> Box<HttpRequest> {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    Box::new(HttpRequest {
        verb: Verb::POST,
        path: String::from("/mcp"),
        query: None,
        headers: HeaderMap::from_iter(headers),
        body: Bytes::from(body.to_string()),
        peer: None,
    })
}

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Calls the tool as a client of this revision with this `Accept` header.
async fn call(
    endpoint: &HttpEndpoint<Core>,
    revision: Revision,
    accept: (&'static str, &str),
) -> HttpResponse {
    let mut params = json!({"name": "slow", "arguments": {}});
    let mut headers = vec![accept, ("mcp-protocol-version", revision.as_str())];
    let session;
    if revision == Revision::V2026_07_28 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers.extend([("mcp-method", "tools/call"), ("mcp-name", "slow")]);
    } else {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision.as_str(), "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}}});
        let opened = endpoint.handle(http_request(&[BOTH], &hello)).await;
        let id = opened.headers.iter().find(|(name, _)| *name == SESSION_ID);
        session = id.unwrap().1.to_str().unwrap().to_owned();
        headers.push(("mcp-session-id", &session));
    }
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    endpoint.handle(http_request(&headers, &request)).await
}

/// H15: a slow response becomes a stream with keep-alives, if the client accepts one.
#[tokio::test(start_paused = true)]
async fn slow_call_becomes_a_stream() {
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let endpoint = endpoint();
        let begin = tokio::time::Instant::now();
        let answer = call(&endpoint, revision, BOTH).await;
        assert!(begin.elapsed() < Duration::from_secs(30), "{revision}");
        let HttpResponseBody::Events(events) = answer.body else {
            panic!("{revision}: no stream");
        };
        let events: Vec<Bytes> = events.collect().await;
        let last = String::from_utf8(events.last().unwrap().to_vec()).unwrap();
        assert!(
            last.contains("\"id\":2") && last.contains("done"),
            "{revision}: {last}"
        );
        let plain = call(&endpoint, revision, ("accept", "application/json")).await;
        let HttpResponseBody::Json(text) = plain.body else {
            panic!("{revision}: not what was asked for");
        };
        assert!(
            String::from_utf8_lossy(&text).contains("done"),
            "{revision}"
        );
    }
}
