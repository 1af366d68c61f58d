//! REVISIONS 8.4: the headers of a modern request.

use mcpact_spec::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http::{Raw, Running, modern};

async fn refused(server: &Running, raw: Raw, why: &str) {
    let reply = server.send(&raw).await;
    assert_eq!(
        (reply.code(), reply.status),
        (-32020, 400),
        "{why}: {reply:?}"
    );
}

fn echo(name: &str) -> Value {
    modern(
        1,
        "tools/call",
        json!({"name": name, "arguments": {"text": "x"}}),
    )
}

/// H8, HH-01, HH-05, HH-12: mirrored headers that are missing, differ, are doubled or malformed are
/// -32020 with 400.
#[tokio::test]
async fn mirrored_headers_are_held_to_the_letter() {
    let server = Running::everything(&Revision::ALL).await;
    let call = || Raw::post(&echo("echo")).with("mcp-protocol-version", "2026-07-28");
    refused(&server, call().with("mcp-name", "echo"), "HH-01: no method").await;
    let named = || call().with("mcp-method", "tools/call");
    refused(&server, named(), "HH-05: no name").await;
    for bad in [
        "Echo",
        "ECHO",
        "echo,echo",
        "ech",
        "=?base64?ZWNo?=",
        "=?base64?!!!?=",
        "=?base64?ZWNobw?=",
        "=?base64?_-_-?=",
    ] {
        refused(&server, named().with("mcp-name", bad), bad).await;
    }
    refused(
        &server,
        named().and("mcp-name", "echo").and("mcp-name", "echo"),
        "twice",
    )
    .await;
    refused(
        &server,
        named().and("mcp-name", "echo").and("mcp-name", "other"),
        "two names",
    )
    .await;
    let upper = call()
        .with("mcp-method", "TOOLS/CALL")
        .with("mcp-name", "echo");
    refused(&server, upper, "values have their case").await;
    refused(
        &server,
        named()
            .with("mcp-name", "echo")
            .and("mcp-protocol-version", "2026-07-28"),
        "two versions",
    )
    .await;
}

/// H8: bytes that are no text are refused, and nothing behind them is taken for another header.
#[tokio::test]
async fn strange_bytes_in_headers_are_refused() {
    let server = Running::everything(&Revision::ALL).await;
    let good = Raw::modern(&echo("echo")).encode();
    for (what, bad) in [
        ("raw UTF-8", "mcp-name: \u{e9}cho\r\n".as_bytes()),
        ("a broken byte", b"mcp-name: \xffecho\r\n"),
        ("NUL", b"mcp-name: ec\0ho\r\n"),
        ("a lone line feed", b"mcp-name: other\nmcp-name: echo\r\n"),
        ("a folded line", b"mcp-name: other\r\n echo\r\n"),
    ] {
        let at = good.find("mcp-name: echo\r\n").unwrap();
        let mut bytes = good.as_bytes()[..at].to_vec();
        bytes.extend_from_slice(bad);
        bytes.extend_from_slice(&good.as_bytes()[at + "mcp-name: echo\r\n".len()..]);
        let mut stream = tokio::net::TcpStream::connect(server.address)
            .await
            .unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        let text = String::from_utf8_lossy(&reply);
        assert!(text.starts_with("HTTP/1.1 400"), "{what}: {text}");
        assert!(!text.contains("result"), "{what}");
    }
    assert_eq!(
        server.send(&Raw::modern(&echo("echo"))).await.status,
        200,
        "it lives"
    );
}

/// H8, HH-03, HH-07, HH-11: names of headers have no case; a name that is no plain text comes encoded and is decoded
/// before it is compared; a literal that looks encoded is encoded again.
#[tokio::test]
async fn names_are_decoded_before_they_are_compared() {
    use mcpact::model::Tool;
    use mcpact::server::Server;
    use mcpact_wire::header_value::encode;
    let names = [
        "na\u{ef}ve",
        "=?base64?literal?=",
        " padded ",
        "\u{1F600}",
        "plain",
    ];
    let mut server = Server::new("t", "1");
    for name in names {
        let tool = Tool::new(name, json!({"type": "object"}));
        server = server.tool_with(tool, |_: Value, _| async { Ok("found") });
    }
    let server = Running::start(server).await;
    for name in names {
        let call = modern(1, "tools/call", json!({"name": name}));
        let raw = Raw::post(&call)
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("MCP-METHOD", "tools/call");
        let reply = server.send(&raw.with("mCP-nAME", &encode(name))).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "found",
            "{name}: {reply:?}"
        );
    }
}

/// H9, HH-09, HH-10, HH-15: annotated parameters; integers are compared as numbers, null and absent ones have no
/// header, and unknown `Mcp-Param-` headers are ignored.
#[tokio::test]
async fn annotated_parameters_are_compared_by_value() {
    use mcpact::model::Tool;
    use mcpact::server::Server;
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    }});
    let server =
        Server::new("t", "1").tool_with(Tool::new("t", schema), |_: Value, _| async { Ok("ok") });
    let server = Running::start(server).await;
    let call = |arguments: Value| {
        Raw::modern(&modern(
            1,
            "tools/call",
            json!({"name": "t", "arguments": arguments}),
        ))
    };
    for (raw, is_good) in [
        (call(json!({})), true),
        (
            call(json!({"region": null})).with("mcp-param-other", "x"),
            true,
        ),
        (call(json!({"region": "us"})), false),
        (
            call(json!({"region": "us"})).with("mcp-param-region", "us"),
            true,
        ),
        (
            call(json!({"region": "us"})).with("Mcp-Param-REGION", "us"),
            true,
        ),
        (
            call(json!({"region": "us"})).with("mcp-param-region", "US"),
            false,
        ),
        (
            call(json!({"region": "us"}))
                .and("mcp-param-region", "us")
                .and("mcp-param-region", "us"),
            false,
        ),
        (call(json!({})).with("mcp-param-region", "us"), false),
        (
            call(json!({"count": 42})).with("mcp-param-count", "42.0"),
            true,
        ),
        (
            call(json!({"count": 42})).with("mcp-param-count", "43"),
            false,
        ),
        (
            call(json!({"count": 42})).with("mcp-param-count", "forty-two"),
            false,
        ),
    ] {
        let reply = server.send(&raw).await;
        let body = reply.json();
        // null does not fit the schema, but that is no fault of the headers.
        assert_eq!(
            body["error"]["code"] != json!(-32020),
            is_good,
            "{}: {reply:?}",
            raw.encode()
        );
    }
}

/// HH-20: a task is named in its header, too.
#[tokio::test]
async fn tasks_are_named_in_their_header() {
    let server = Running::everything(&Revision::ALL).await;
    let mut get = modern(1, "tasks/get", json!({"taskId": "one"}));
    get["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    refused(&server, Raw::modern(&get).with("mcp-name", "two"), "HH-20").await;
    assert_eq!(
        server.send(&Raw::modern(&get)).await.code(),
        -32602,
        "an unknown task"
    );
}

/// H1, HH-19: a foreign origin is 403 in upper case, too, and on every address of the server.
#[tokio::test]
async fn foreign_origins_are_refused_everywhere() {
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.http_sse = true);
    let server = Running::start(server).await;
    for origin in [
        "HTTP://EVIL.EXAMPLE",
        "http://evil.example",
        "null",
        "file://",
        "http://localhost.evil.example",
        "http://127.0.0.1@evil",
    ] {
        for (verb, path) in [
            ("GET", "/sse"),
            ("POST", "/messages?sessionId=1"),
            ("OPTIONS", "/sse"),
            ("POST", "/mcp"),
            ("OPTIONS", "/mcp"),
        ] {
            let raw = Raw::new(verb, path)
                .with("content-type", "application/json")
                .with("origin", origin);
            assert_eq!(
                server.send(&raw).await.status,
                403,
                "{verb} {path} {origin}"
            );
        }
    }
}

/// H2: a host with a port, a number or a trailing dot is read as what it is.
#[tokio::test]
async fn hosts_are_read_as_what_they_are() {
    let server = Running::everything(&Revision::ALL).await;
    let list = || Raw::modern(&modern(1, "tools/list", json!({})));
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("localhost.", 200),
        ("127.0.0.1:1", 200),
        ("[::1]", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil.example:80", 403),
        ("127.0.0.2.nip.io", 403),
        ("", 403),
    ] {
        let reply = server.send(&list().with("host", host)).await;
        assert_eq!(reply.status, status, "{host}: {reply:?}");
    }
    let twice = list().and("host", "evil.example");
    assert_ne!(server.send(&twice).await.status, 200, "two hosts");
}

/// H5: a modern body is one request or notification, nothing else.
#[tokio::test]
async fn a_modern_body_is_one_message() {
    let server = Running::everything(&[Revision::V2026_07_28]).await;
    let list = modern(1, "tools/list", json!({}));
    for body in [
        json!([list]),
        json!([]),
        json!("x"),
        json!(7),
        json!(null),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
    ] {
        let raw = Raw::post(&body)
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", "tools/list");
        assert_eq!(server.send(&raw).await.status, 400, "{body}");
    }
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.send(&Raw::modern(&note)).await.status, 202);
}
