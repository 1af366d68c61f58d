//! SAFETY 1.1 against a server without a single setting.

use mcpact_spec::Revision;
use serde_json::json;

use crate::http::{Raw, Running, modern, request};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// T8: H1, H2: foreign pages and names are turned away on every verb, the local ones are not.
#[tokio::test]
async fn foreign_hosts_and_origins_get_403() {
    let server = Running::everything(&Revision::ALL).await;
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1@evil",
    ] {
        for verb in ["GET", "DELETE", "OPTIONS"] {
            let reply = server
                .send(&Raw::new(verb, "/mcp").with("origin", origin))
                .await;
            assert_eq!(reply.status, 403, "{verb} {origin}");
        }
        let reply = server
            .send(&Raw::text(INITIALIZE).with("origin", origin))
            .await;
        assert_eq!(reply.status, 403, "POST {origin}");
        assert_eq!(
            reply.header("mcp-session-id"),
            None,
            "the handler was not entered"
        );
    }
    for host in ["evil.example", "evil.example:80", "localhost.evil.example"] {
        assert_eq!(
            server
                .send(&Raw::text(INITIALIZE).with("host", host))
                .await
                .status,
            403,
            "{host}"
        );
    }
    let own = format!("http://localhost:{}", server.address.port());
    let twice = Raw::text(INITIALIZE)
        .and("origin", &own)
        .and("origin", &own);
    assert_eq!(server.send(&twice).await.status, 403);
    for host in ["localhost:1234", "127.0.0.1", "[::1]:9"] {
        let local = Raw::text(INITIALIZE).with("host", host);
        let local = local.with("origin", &own);
        assert_eq!(server.send(&local).await.status, 200, "{host}");
    }
    for verb in ["POST", "OPTIONS"] {
        let other = Raw::new(verb, "/mcp").with("origin", "http://localhost:1");
        let reply = server.send(&other).await;
        assert_eq!(reply.status, 403, "{verb}: another port of loopback");
        let text = "web pages of `http://localhost:1` may not call this server; if you trust them, add the origin to `allow_origins`";
        assert_eq!(reply.body, text, "{verb}");
    }
}

/// T8: H5: a body of another kind is refused before it is read, and the client learns that the connection
/// ends with that.
#[tokio::test]
async fn other_content_types_get_415() {
    let server = Running::everything(&Revision::ALL).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "text/plain; application/json",
    ] {
        let reply = server
            .send(&Raw::text(INITIALIZE).with("content-type", kind))
            .await;
        assert_eq!(reply.status, 415, "{kind}");
        assert_eq!(reply.header("connection"), Some("close"), "{kind}");
    }
    let reply = server
        .send(&Raw::text(INITIALIZE).with("content-type", "Application/JSON; charset=utf-8"))
        .await;
    assert_eq!(reply.status, 200);
}

/// T9: a body beyond the limit is refused, and the server goes on.
#[tokio::test]
async fn large_bodies_get_413() {
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.limits.body = 1024);
    let server = Running::start(server).await;
    let large = Raw::text(&format!("{{\"x\":\"{}\"}}", "y".repeat(2000)));
    assert_eq!(server.send(&large).await.status, 413);
    assert_eq!(server.send(&Raw::text(INITIALIZE)).await.status, 200);
}

/// T9: a client that is silent or never completes its headers is disconnected; one that never completes its body gets
/// an error. Other clients are not affected.
#[tokio::test]
async fn slow_clients_are_let_go() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| {
        s.limits.header_timeout = std::time::Duration::from_millis(500);
        s.limits.body_timeout = std::time::Duration::from_millis(500);
    });
    let server = Running::start(server).await;
    let session = server.session("2025-11-25").await;
    let slow = json!({"name": "slow_compute", "arguments": {"seconds": 1}});
    let call = Raw::post(&request(7, "tools/call", &slow)).with("mcp-session-id", &session);
    let innocent = server.send(&call);
    let slow = async {
        for (opening, answer) in [
            ("", ""),
            ("POST /mcp HT", ""),
            ("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ", ""),
            (
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
                "HTTP/1.1 408 Request Timeout\r\n",
            ),
            (
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
                "HTTP/1.1 408 Request Timeout\r\n",
            ),
        ] {
            let stream = tokio::net::TcpStream::connect(server.address).await;
            let mut stream = stream.unwrap();
            stream.write_all(opening.as_bytes()).await.unwrap();
            let mut end = Vec::new();
            stream.read_to_end(&mut end).await.unwrap();
            let text = String::from_utf8_lossy(&end);
            assert!(text.starts_with(answer), "{opening}: {text}");
            assert_eq!(text.is_empty(), answer.is_empty(), "{opening}: {text}");
        }
    };
    let (served, ()) = tokio::join!(innocent, slow);
    assert_eq!(served.status, 200, "{served:?}");
}

/// T9: too many and too large headers are refused with 431, and the server goes on.
#[tokio::test]
async fn large_heads_get_431() {
    let server = Running::everything(&Revision::ALL).await;
    let many = (0..200).fold(Raw::text(INITIALIZE), |raw, n| {
        raw.and(&format!("x-{n}"), "y")
    });
    assert_eq!(server.send(&many).await.status, 431);
    let large = Raw::text(INITIALIZE).and("x", &"y".repeat(100_000));
    assert_eq!(server.send(&large).await.status, 431);
    assert_eq!(server.send(&Raw::text(INITIALIZE)).await.status, 200);
}

/// T9: a body that is not UTF-8 is not JSON, in a string and outside, and the session lives on.
#[tokio::test]
async fn bodies_must_be_utf_8() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Running::everything(&Revision::ALL).await;
    let session = server.session("2025-11-25").await;
    for body in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}"[..],
        b"\xff\xfe{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xed\xa0\x80\"}}",
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("-32700"), "{answer}");
    }
    let ping = Raw::post(&request(2, "ping", &json!({}))).with("mcp-session-id", &session);
    assert_eq!(server.send(&ping).await.status, 200);
}

/// T4: H6, H7, H8, H20: the ladder of a modern request, with its statuses.
#[tokio::test]
async fn modern_faults_have_their_codes_and_statuses() {
    let server = Running::everything(&Revision::ALL).await;
    let list = modern(1, "tools/list", json!({}));
    let call = modern(
        1,
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "x"}}),
    );
    let mut bare = list.clone();
    bare["params"] = json!({});
    let mut future = list.clone();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999");
    for (name, raw, code, status) in [
        ("no metadata", Raw::modern(&bare), -32602, 400),
        (
            "header differs",
            Raw::modern(&list).with("mcp-protocol-version", "2025-11-25"),
            -32020,
            400,
        ),
        (
            "unknown version",
            Raw::modern(&future).with("mcp-protocol-version", "v999"),
            -32022,
            400,
        ),
        (
            "method differs",
            Raw::modern(&list).with("mcp-method", "Tools/List"),
            -32020,
            400,
        ),
        (
            "method twice",
            Raw::modern(&list).and("mcp-method", "tools/list"),
            -32020,
            400,
        ),
        (
            "name differs",
            Raw::modern(&call).with("mcp-name", "other"),
            -32020,
            400,
        ),
        (
            "bad sentinel",
            Raw::modern(&call).with("mcp-name", "=?base64?!!?="),
            -32020,
            400,
        ),
        (
            "unknown method",
            Raw::modern(&modern(1, "no/such", json!({}))),
            -32601,
            404,
        ),
        (
            "removed method",
            Raw::modern(&modern(1, "ping", json!({}))),
            -32601,
            404,
        ),
        (
            "not JSON",
            Raw::text("{").with("mcp-protocol-version", "2026-07-28"),
            -32700,
            400,
        ),
        (
            "an array",
            Raw::text("[]").with("mcp-protocol-version", "2026-07-28"),
            -32600,
            400,
        ),
        (
            "id null",
            Raw::text(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#),
            -32600,
            400,
        ),
    ] {
        let reply = server.send(&raw).await;
        assert_eq!(
            (reply.code(), reply.status),
            (code, status),
            "{name}: {reply:?}"
        );
    }
    assert_eq!(
        server.send(&Raw::modern(&call)).await.json()["result"]["content"][0]["text"],
        "x"
    );
}

/// T4: H9: annotated parameters must be mirrored, and integers compare as numbers.
#[tokio::test]
async fn annotated_parameters_are_checked() {
    let server = Running::everything(&Revision::ALL).await;
    let call = modern(
        1,
        "tools/call",
        json!({"name": "test_x_mcp_header", "arguments": {"region": "us"}}),
    );
    assert_eq!(
        server.send(&Raw::modern(&call)).await.code(),
        -32020,
        "missing"
    );
    let right = Raw::modern(&call).with("mcp-param-region", "us");
    assert_eq!(server.send(&right).await.status, 200);
    let wrong = Raw::modern(&call).with("mcp-param-region", "eu");
    assert_eq!(server.send(&wrong).await.code(), -32020);
}

/// T4: H16: a modern-only server has no streams, no sessions and no verbs but POST.
#[tokio::test]
async fn a_modern_only_server_has_only_post() {
    let server = Running::everything(&[Revision::V2026_07_28]).await;
    for verb in ["GET", "DELETE", "PUT"] {
        assert_eq!(
            server.send(&Raw::new(verb, "/mcp")).await.status,
            405,
            "{verb}"
        );
    }
    let list = modern(1, "tools/list", json!({}));
    let raw = Raw::modern(&list)
        .with("mcp-session-id", "anything")
        .with("last-event-id", "1-1");
    let reply = server.send(&raw).await;
    assert_eq!(reply.status, 200, "both are ignored");
    assert_eq!(reply.header("mcp-session-id"), None);
    let refused = server.send(&Raw::text(INITIALIZE)).await;
    assert_eq!(
        refused.json()["error"]["data"]["supported"],
        json!(["2026-07-28"])
    );
}

/// An address that is not the server's gets a helpful 404.
#[tokio::test]
async fn other_paths_get_404() {
    let server = Running::everything(&Revision::ALL).await;
    let reply = server.send(&Raw::new("GET", "/")).await;
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (404, "not found; the MCP endpoint is /mcp")
    );
}
