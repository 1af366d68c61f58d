//! Peers that send and do not read.

use std::time::Duration;

use mcpact::client::{Client, ClientError};
use mcpact::error::Error;
use mcpact::server::Server;
use mcpact_sim::scripted::message::initialize_result;
use mcpact_transport::error::TransportError;
use mcpact_transport::link::{LineSource, Link};
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Time without a reaction of the peer.
const SILENCE: Duration = Duration::from_secs(5);

/// Time in which a peer that does not read is disconnected.
const CUT: Duration = Duration::from_secs(30);

fn ping() -> String {
    json!({"jsonrpc": "2.0", "id": "p".repeat(1000), "method": "ping"}).to_string()
}

/// Sends pings until none is accepted. Returns their number.
async fn ping_without_end(link: &mut Link) -> usize {
    let mut count = 0;
    loop {
        link.sink.push(&ping());
        if !matches!(timeout(SILENCE, link.sink.flush()).await, Ok(Ok(()))) {
            return count;
        }
        count += 1;
    }
}

async fn next_line(source: &mut LineSource) -> Option<Value> {
    loop {
        if let Some(line) = source.next_line() {
            let Line::Json(bytes) = line else {
                panic!("{line:?}");
            };
            return Some(serde_json::from_slice(bytes).unwrap());
        }
        if !source.fill().await.unwrap() {
            return None;
        }
    }
}

/// Completes the handshake of a legacy server, and waits for a call.
async fn serve_handshake(link: &mut Link) {
    loop {
        let message = next_line(&mut link.source).await.unwrap();
        let answer = match message["method"].as_str() {
            Some("initialize") => json!({
                "jsonrpc": "2.0", "id": message["id"],
                "result": initialize_result("2025-11-25", json!({"tools": {}})),
            }),
            Some("server/discover") => json!({
                "jsonrpc": "2.0", "id": message["id"],
                "error": {"code": -32601, "message": "unknown"},
            }),
            Some("tools/call") => return,
            _ => continue,
        };
        link.sink.push(&answer.to_string());
        link.sink.flush().await.unwrap();
    }
}

/// A client with a call in flight, and the server's end.
async fn called() -> (JoinHandle<ClientError>, Link) {
    let (mut server, link) = memory::pair();
    let calling = tokio::spawn(async move {
        let client = Client::connect(link).await.unwrap();
        client.call_tool("t", json!({})).await.unwrap_err()
    });
    serve_handshake(&mut server).await;
    (calling, server)
}

#[tokio::test(start_paused = true)]
async fn server_that_asks_and_does_not_read_is_disconnected() {
    let (calling, mut server) = called().await;
    let count = ping_without_end(&mut server).await;
    assert!((1000..3000).contains(&count), "{count}");
    let error = timeout(CUT, calling).await.unwrap().unwrap();
    assert!(matches!(error, ClientError::Closed), "{error:?}");
}

/// A server that does not read calls while it works is left alone.
#[tokio::test(start_paused = true)]
async fn server_that_asks_little_may_read_late() {
    let (calling, mut server) = called().await;
    for _ in 0..100 {
        server.sink.push(&ping());
    }
    server.sink.flush().await.unwrap();
    sleep(CUT).await;
    assert!(!calling.is_finished());
    for _ in 0..100 {
        let pong = next_line(&mut server.source).await.unwrap();
        assert_eq!(pong["result"], json!({}));
    }
}

/// A server with many answers to read is served as long as it reads some.
#[tokio::test(start_paused = true)]
async fn server_that_reads_slowly_is_served() {
    let (calling, mut server) = called().await;
    let count = ping_without_end(&mut server).await;
    for _ in 0..count {
        let pong = next_line(&mut server.source).await.unwrap();
        assert_eq!(pong["result"], json!({}));
        sleep(Duration::from_millis(20)).await;
    }
    assert!(!calling.is_finished());
}

fn served() -> (Link, JoinHandle<Result<(), Error>>) {
    let (client, link) = memory::pair();
    let serving = tokio::spawn(async move { Server::new("test", "1").serve(link).await });
    (client, serving)
}

#[tokio::test(start_paused = true)]
async fn client_that_asks_and_does_not_read_is_disconnected() {
    let (mut client, serving) = served();
    let count = ping_without_end(&mut client).await;
    assert!((1000..3000).contains(&count), "{count}");
    let ended = timeout(CUT, serving).await.unwrap().unwrap();
    assert!(matches!(
        ended,
        Err(Error::Transport(TransportError::Stalled { .. }))
    ));
}

/// A client may send many requests before it reads the first response.
#[tokio::test(start_paused = true)]
async fn client_may_read_late() {
    let (mut client, serving) = served();
    for _ in 0..500 {
        client.sink.push(&ping());
    }
    client.sink.flush().await.unwrap();
    sleep(10 * CUT).await;
    for _ in 0..500 {
        let pong = next_line(&mut client.source).await.unwrap();
        assert_eq!(pong["id"].as_str().map(str::len), Some(1000));
    }
    assert!(!serving.is_finished());
    client.sink.close().await.unwrap();
    serving.await.unwrap().unwrap();
}
