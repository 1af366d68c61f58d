//! Secrets are never logged, at any level.

use mcpact::client::{ChildCommand, Client, EraMode, Revision};
use mcpact::model::Tool;
use mcpact::server::{HandlerError, Server};
use serde_json::{Value, json};

use crate::record::{Log, ask, client, initialize, modern};

const CANARY: &str = "canary-f3a91c77";

#[track_caller]
fn assert_no_secret(log: &Log) {
    let all = log.all();
    assert!(!all.is_empty());
    for entry in all {
        let sings = entry.fields.values().any(|value| value.contains(CANARY));
        assert!(!sings, "{entry:?}");
    }
}

fn server() -> Server {
    let schema = json!({ "type": "object", "properties": { "mode": { "type": "string" } } });
    Server::new("quiet", "1").tool_with(
        Tool::new("take", schema),
        |arguments: Value, _| async move {
            match arguments["mode"].as_str() {
                Some("fail") => Err(HandlerError::invalid_params("cannot take that")),
                _ => Ok("taken"),
            }
        },
    )
}

/// P16: headers, URL, arguments and metadata are never logged over HTTP, in either era.
#[tokio::test]
async fn request_content_is_not_logged() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (log, _guard) = Log::start();
        let listening = server().listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("{}?key={CANARY}", listening.url());
        let serving = tokio::spawn(listening.run(std::future::pending()));
        let client = Client::builder("t", "1")
            .mode(EraMode::Pin(revision))
            .header("Authorization", format!("Bearer {CANARY}"))
            .header("X-Key", CANARY)
            .connect(url)
            .await
            .unwrap();
        for arguments in [
            json!({ "secret": CANARY }),
            json!({ "mode": "fail", "secret": CANARY }),
            json!({ "mode": { "of": CANARY } }),
        ] {
            let _ = client.call_tool("take", arguments).await;
        }
        let _ = client.call_tool(CANARY, json!({})).await;
        let _ = client.read_resource(&format!("{CANARY}://x")).await;
        client.close().await;
        serving.abort();
        assert_no_secret(&log);
    }
}

/// P16: malformed and refused messages are not logged either.
#[tokio::test]
async fn refused_message_is_not_logged() {
    let (log, _guard) = Log::start();
    let mut client = client(server());
    let mut refused = modern(1, "tools/call", "2025-06-18");
    refused["params"]["_meta"]["com.example/token"] = json!(CANARY);
    refused["params"]["arguments"] = json!({ "secret": CANARY });
    ask(&mut client, refused.clone()).await;
    refused["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    refused["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(CANARY);
    ask(&mut client, refused).await;
    let mut experimental = initialize("2025-06-18");
    experimental["params"]["capabilities"]["experimental"] = json!({ "x": { "token": CANARY } });
    experimental["params"]["capabilities"]["roots"] = json!(CANARY);
    experimental["params"]["_meta"] = json!({ "token": CANARY });
    ask(&mut client, experimental).await;
    ask(&mut client, json!(CANARY)).await;
    assert_no_secret(&log);
}

/// Environment values are masked in the stderr of a process, and its other output is not repeated.
#[tokio::test]
async fn environment_is_not_logged() {
    let (log, _guard) = Log::start();
    let script = r#"echo "my key is $KEY" >&2; echo "key=$KEY"; read -r line; exit 3"#;
    let command = ChildCommand::new("sh")
        .with_args(["-c", script, CANARY])
        .with_env("KEY", CANARY);
    let failed = Client::connect(command).await.unwrap_err();
    assert!(failed.to_string().contains("my key is ***"), "{failed}");
    assert_no_secret(&log);
}

/// A server that echoes its input in an invalid response does not get it into the log.
#[tokio::test]
async fn invalid_response_is_not_logged() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (log, _guard) = Log::start();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let echo = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut bytes = vec![0; 65536];
            let _ = socket.read(&mut bytes).await;
            let body = format!("you sent Bearer {CANARY}");
            let head = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close";
            let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = socket.write_all(text.as_bytes()).await;
        }
    });
    let builder = Client::builder("t", "1").header("Authorization", format!("Bearer {CANARY}"));
    builder.connect(url).await.unwrap_err();
    echo.abort();
    assert_no_secret(&log);
}
