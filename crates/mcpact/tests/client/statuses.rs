//! HTTP statuses and transport limits.

use std::time::Duration;

use mcpact::client::{Client, ClientError, EraMode, Failure, HttpSettings};
use mcpact_sim::scripted::message::{discover_result, initialize_result};
use serde_json::{Value, json};

use crate::http_server::{Event, HttpServer, Reply};

/// Temporary statuses are no evidence for an era: the client does not fall back.
#[tokio::test]
async fn temporary_statuses_cause_no_fallback() {
    let unauthorized: [fn() -> Reply; 2] = [
        || {
            Reply::Empty(
                401,
                vec![("WWW-Authenticate", "Bearer scope=\"x\"".to_owned())],
            )
        },
        || {
            let headers = vec![("WWW-Authenticate", "Bearer scope=\"x\"".to_owned())];
            let error = json!({ "code": -32001, "message": "no" });
            Reply::Json(
                401,
                headers,
                json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            )
        },
    ];
    for answer in unauthorized {
        let server = HttpServer::start(move |_| answer()).await;
        let failed = Client::connect(&server.url).await.unwrap_err();
        let ClientError::Auth {
            status: 401,
            challenge,
        } = &failed
        else {
            panic!("{failed:?}");
        };
        assert_eq!(challenge.as_deref(), Some("Bearer scope=\"x\""));
        assert_eq!(server.seen().len(), 1);
    }

    let server =
        HttpServer::start(|_| Reply::Empty(429, vec![("Retry-After", "17".to_owned())])).await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    let ClientError::Http {
        status: 429,
        retry_after,
    } = &failed
    else {
        panic!("{failed:?}");
    };
    assert_eq!(retry_after.as_deref(), Some("17"));
    assert_eq!(server.seen().len(), 1);

    let server = HttpServer::start(|_| Reply::Empty(503, Vec::new())).await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    assert!(matches!(failed, ClientError::Refused { .. }), "{failed:?}");
    assert_eq!(server.seen().len(), 1);

    let server = HttpServer::start(|_| Reply::Other(200, "text/html", "<html>".to_owned())).await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    let ClientError::Refused { failure, .. } = &failed else {
        panic!("{failed:?}");
    };
    assert!(matches!(failure, Failure::Probe(_)));
    assert!(failed.to_string().contains("/mcp"), "{failed}");
}

/// P6: errors with a foreign id, without id, or without JSON-RPC indicate a legacy server.
#[tokio::test]
async fn malformed_errors_indicate_legacy() {
    let strange: [fn() -> Reply; 4] = [
        || {
            Reply::Json(
                400,
                Vec::new(),
                json!({ "jsonrpc": "2.0", "id": "server-error",
            "error": { "code": -32600, "message": "Bad Request: Missing session ID" } }),
            )
        },
        || {
            Reply::Json(
                400,
                Vec::new(),
                json!({ "jsonrpc": "2.0", "id": null,
            "error": { "code": -32000, "message": "Bad Request" } }),
            )
        },
        || Reply::Json(400, Vec::new(), json!({ "error": "what?" })),
        || Reply::Other(422, "text/plain", "expected initialize".to_owned()),
    ];
    for refuse in strange {
        let server = HttpServer::start(move |seen| match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => Reply::Empty(405, Vec::new()),
            (_, "server/discover") => refuse(),
            (_, "initialize") => Reply::result(seen, initialize_result("2025-06-18", json!({}))),
            _ => Reply::accepted(),
        })
        .await;
        let client = Client::connect(&server.url).await.unwrap();
        assert_eq!(client.pact().revision().as_str(), "2025-06-18");
    }
}

/// An error response without id belongs to its request.
#[tokio::test]
async fn error_without_id_reaches_its_caller() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => Reply::result(
            seen,
            initialize_result("2025-06-18", json!({ "tools": {} })),
        ),
        (_, "tools/list") => Reply::Json(
            400,
            Vec::new(),
            json!({ "jsonrpc": "2.0", "id": null,
            "error": { "code": -32000, "message": "Bad Request" } }),
        ),
        (_, "tools/call") => Reply::Empty(403, Vec::new()),
        _ => Reply::accepted(),
    })
    .await;
    let builder = Client::builder("t", "1").mode(EraMode::Legacy);
    let client = builder.connect(&server.url).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap_err().code(), Some(-32000));
    let failed = client.call_tool("t", Value::Null).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::Auth { status: 403, .. }),
        "{failed:?}"
    );
}

/// T7: custom headers go with every request; protocol headers cannot be set.
#[tokio::test]
async fn protocol_headers_cannot_be_set() {
    for name in [
        "Mcp-Session-Id",
        "mcp-protocol-version",
        "Mcp-Param-Region",
        "Host",
        "Accept",
        "bad name",
    ] {
        let builder = Client::builder("t", "1").header(name, "x");
        let failed = builder.connect("http://127.0.0.1:9/mcp").await.unwrap_err();
        let source = std::error::Error::source(&failed).unwrap().to_string();
        assert!(source.contains(name), "{source}");
    }
}

/// T7: a redirect within the origin is followed with method and body; one to another origin is not, and nothing is
/// sent there.
#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let server = HttpServer::start(|seen| match (seen.path.as_str(), seen.method()) {
        ("/mcp", _) => Reply::Empty(307, vec![("Location", "/mcp/".to_owned())]),
        (_, "server/discover") => Reply::result(seen, discover_result(json!({}))),
        _ => Reply::accepted(),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2026-07-28");

    let other = HttpServer::start(|_| Reply::accepted()).await;
    let location = other.url.clone();
    let server =
        HttpServer::start(move |_| Reply::Empty(308, vec![("Location", location.clone())])).await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    let source = std::error::Error::source(&failed).unwrap().to_string();
    assert!(source.contains(&other.url), "{source}");
    assert!(other.seen().is_empty());

    let server =
        HttpServer::start(|_| Reply::Empty(307, vec![("Location", "/mcp".to_owned())])).await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::Unreachable { .. }),
        "{failed:?}"
    );
    assert_eq!(server.seen().len(), 4);
}

/// A redirected call is not sent again: it may have run before the redirect.
#[tokio::test]
async fn redirected_call_is_not_repeated() {
    let other = HttpServer::start(|_| Reply::accepted()).await;
    for status in [301, 302, 303, 307, 308] {
        for location in [other.url.clone(), "/elsewhere".to_owned()] {
            let to = location.clone();
            let server = HttpServer::start(move |seen| match seen.method() {
                "server/discover" => Reply::result(seen, discover_result(json!({ "tools": {} }))),
                "tools/list" => Reply::result(seen, json!({ "tools": [] })),
                _ => Reply::Empty(status, vec![("Location", to.clone())]),
            })
            .await;
            let client = Client::connect(&server.url).await.unwrap();
            let failed = client.call_tool("t", json!({})).await.unwrap_err();
            let failed = format!("{failed:?}");
            let host = location.strip_prefix("http://").unwrap_or(&server.url);
            let host = host
                .trim_start_matches("http://")
                .split('/')
                .next()
                .unwrap();
            assert!(failed.contains(host), "{status}: {failed}");
            let calls = server.seen().into_iter();
            let calls = calls.filter(|seen| seen.method() == "tools/call").count();
            assert_eq!(calls, 1, "{status} {location}");
        }
    }
    assert!(other.seen().is_empty());
}

/// After the handshake was redirected, calls go to the new URL at once.
#[tokio::test]
async fn calls_go_where_the_handshake_was_redirected() {
    let server = HttpServer::start(|seen| match (seen.path.as_str(), seen.method()) {
        ("/mcp", _) => Reply::Empty(307, vec![("Location", "/mcp/".to_owned())]),
        (_, "server/discover") => Reply::result(seen, discover_result(json!({ "tools": {} }))),
        (_, "tools/list") => Reply::result(seen, json!({ "tools": [] })),
        _ => Reply::result(seen, json!({ "content": [] })),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    let calls = server.seen().into_iter();
    let mut calls = calls.filter(|seen| seen.method() == "tools/call");
    assert_eq!(calls.next().unwrap().path, "/mcp/");
    assert!(calls.next().is_none());
}

/// T7: a redirect to the same URL is reported as such, whatever the status.
#[tokio::test]
async fn redirect_to_the_same_url_is_reported() {
    for status in [301, 302, 307, 308] {
        let location = || vec![("Location", "/mcp".to_owned())];
        let server = HttpServer::start(move |_| Reply::Empty(status, location())).await;
        let failed = Client::connect(&server.url).await.unwrap_err();
        let source = std::error::Error::source(&failed).unwrap().to_string();
        assert!(source.contains("redirects in a loop"), "{status}: {source}");
        assert!(source.contains(&server.url), "{status}: {source}");
    }
}

/// T9: oversized bodies and events are errors and do not exhaust memory.
#[tokio::test]
async fn oversized_bodies_and_events_are_errors() {
    let server = HttpServer::start(|seen| match seen.method() {
        "server/discover" => Reply::result(seen, discover_result(json!({ "tools": {} }))),
        "tools/list" => Reply::result(seen, json!({ "tools": ["x".repeat(20_000)] })),
        _ => Reply::Events(vec![
            Event::Data(json!({ "jsonrpc": "2.0", "id": seen.body["id"],
            "result": { "content": [{ "type": "text", "text": "x".repeat(20_000) }] } })),
            Event::Hold,
        ]),
    })
    .await;
    let settings = HttpSettings {
        body_limit: 10_000,
        event_limit: 10_000,
        ..HttpSettings::default()
    };
    let client = Client::builder("t", "1")
        .http(settings)
        .connect(&server.url)
        .await
        .unwrap();
    let failed = client.list_tools().await.unwrap_err();
    assert!(matches!(failed, ClientError::Transport(_)), "{failed:?}");
    let failed = client.call_tool("t", Value::Null).await.unwrap_err();
    assert!(matches!(failed, ClientError::Transport(_)), "{failed:?}");
}

/// An unreachable server and a silent one produce different errors, in time.
#[tokio::test]
async fn unreachable_and_silent_servers_produce_different_errors() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let failed = Client::connect(format!("http://{address}/mcp"))
        .await
        .unwrap_err();
    assert!(
        matches!(failed, ClientError::Unreachable { .. }),
        "{failed:?}"
    );

    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let builder = Client::builder("t", "1").silence_limit(Duration::from_millis(50));
    let failed = builder
        .connect(format!("http://{address}/mcp"))
        .await
        .unwrap_err();
    assert!(matches!(failed, ClientError::Refused { .. }), "{failed:?}");
    for address in ["ftp://x/", "not a url", "http://user:pw@x/"] {
        let failed = Client::connect(address).await.unwrap_err();
        assert!(
            matches!(failed, ClientError::Unreachable { .. }),
            "{failed:?}"
        );
    }
}
