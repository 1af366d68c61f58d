//! HTTP+SSE of 2024-11-05.

use std::sync::{Arc, Mutex};

use mcpact::client::{Client, ClientError, EraMode, Revision};
use mcpact_sim::scripted::message::initialize_result;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::http_server::{Event, HttpServer, Reply};

/// Newest revision of the server.
const NEWEST: &str = "2025-06-18";

/// Server with an event stream for GET, which carries the answers to POSTs.
async fn serve(
    endpoint: impl Fn(&str) -> String + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let posted = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&posted);
    let url = format!("{origin}/sse");
    tokio::spawn(async move {
        let (say, mut said) = mpsc::channel::<Value>(16);
        let mut stream = None;
        loop {
            let (mut socket, _) = tokio::select! {
                Some(message) = said.recv() => {
                    let stream: &mut tokio::net::TcpStream = stream.as_mut().unwrap();
                    let event = format!("event: message\ndata: {message}\n\n");
                    stream.write_all(event.as_bytes()).await.unwrap();
                    continue;
                }
                accepted = listener.accept() => accepted.unwrap(),
            };
            let mut bytes = vec![0; 65536];
            let mut length = 0;
            let (head, body) = loop {
                length += socket.read(&mut bytes[length..]).await.unwrap();
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let wanted = head
                        .lines()
                        .find_map(|line| {
                            line.to_ascii_lowercase()
                                .strip_prefix("content-length: ")
                                .map(str::to_owned)
                        })
                        .map_or(0, |wanted| wanted.parse::<usize>().unwrap());
                    if body.len() >= wanted {
                        break (head.to_owned(), body.to_owned());
                    }
                }
            };
            let answer = |status: &str| {
                format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            };
            if head.starts_with("GET /sse") {
                let endpoint = endpoint(&origin);
                let text = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: {endpoint}\n\n"
                );
                socket.write_all(text.as_bytes()).await.unwrap();
                stream = Some(socket);
            } else if head.starts_with("POST /messages?s=1") {
                socket
                    .write_all(answer("202 Accepted").as_bytes())
                    .await
                    .unwrap();
                let message: Value = serde_json::from_str(&body).unwrap();
                let method = message["method"].as_str().unwrap().to_owned();
                log.lock().unwrap().push(method.clone());
                let result = match method.as_str() {
                    "initialize" => {
                        let revision = message["params"]["protocolVersion"].as_str().unwrap();
                        initialize_result(revision.min(NEWEST), json!({ "tools": {} }))
                    }
                    "tools/list" => json!({ "tools": [{ "name": "old", "inputSchema": {} }] }),
                    _ => continue,
                };
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                say.send(answer).await.unwrap();
            } else {
                socket
                    .write_all(answer("405 Not Allowed").as_bytes())
                    .await
                    .unwrap();
            }
        }
    });
    (url, posted)
}

/// T5: a server that rejects POST is asked for its event stream, and messages go to the endpoint of the stream.
#[tokio::test]
async fn http_sse_transport_is_detected() {
    let (url, posted) = serve(|_| "/messages?s=1".to_owned()).await;
    let client = Client::connect(url).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), NEWEST);
    assert_eq!(client.list_tools().await.unwrap()[0].name, "old");
    client.close().await;
    let posted = posted.lock().unwrap();
    assert_eq!(
        *posted,
        ["initialize", "notifications/initialized", "tools/list"]
    );
}

/// T5: newer revisions work over the old transport, also if the client requires one of them.
#[tokio::test]
async fn newer_revisions_work_over_http_sse() {
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
    ] {
        let (url, _) = serve(|_| "/messages?s=1".to_owned()).await;
        let builder = Client::builder("test", "1").mode(EraMode::Pin(revision));
        let client = builder.connect(url).await.unwrap();
        assert_eq!(client.pact().revision(), revision);
        client.close().await;
    }
}

/// T5: an endpoint of another origin is rejected.
#[tokio::test]
async fn endpoint_of_another_origin_is_rejected() {
    let other = HttpServer::start(|_| Reply::accepted()).await;
    let target = other.url.clone();
    let (url, posted) = serve(move |_| target.clone()).await;
    let failed = Client::connect(url).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::Unreachable { .. }),
        "{failed:?}"
    );
    assert!(posted.lock().unwrap().is_empty());
    assert!(other.seen().is_empty());
}

/// T5: an ordinary web page produces an error.
#[tokio::test]
async fn ordinary_web_page_is_an_error() {
    let server = HttpServer::start(|seen| match seen.verb.as_str() {
        "GET" => Reply::Events(vec![Event::Text("data: hello".to_owned())]),
        _ => Reply::Empty(404, Vec::new()),
    })
    .await;
    let failed = Client::connect(&server.url).await.unwrap_err();
    let source = std::error::Error::source(&failed).unwrap().to_string();
    assert!(source.contains("`endpoint`"), "{failed}: {source}");
}
