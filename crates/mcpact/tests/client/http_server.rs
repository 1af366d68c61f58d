//! Scripted HTTP server on a raw socket, which records requests and answers with a closure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Scripted response.
pub(crate) enum Reply {
    /// Status, headers and JSON.
    Json(u16, Vec<(&'static str, String)>, Value),
    /// Status and headers.
    Empty(u16, Vec<(&'static str, String)>),
    /// Status and another document.
    Other(u16, &'static str, String),
    /// Stream of these events; the connection then closes.
    Events(Vec<Event>),
}

pub(crate) enum Event {
    /// Raw event, without the blank line.
    Text(String),
    /// A message.
    Data(Value),
    /// Keeps the stream open until the client disconnects.
    Hold,
}

impl Reply {
    pub(crate) fn result(seen: &Seen, result: Value) -> Self {
        Self::Json(
            200,
            Vec::new(),
            json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result }),
        )
    }

    pub(crate) fn error(seen: &Seen, status: u16, code: i64, data: Value) -> Self {
        let error = json!({ "code": code, "message": "no", "data": data });
        Self::Json(
            status,
            Vec::new(),
            json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }),
        )
    }

    pub(crate) fn accepted() -> Self {
        Self::Empty(202, Vec::new())
    }
}

/// Running server.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Paths and methods of streams that the client has closed.
    left: Arc<Mutex<Vec<String>>>,
}

impl HttpServer {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            seen: Arc::default(),
            left: Arc::default(),
        };
        let this = server.clone();
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let this = this.clone();
                let script = Arc::clone(&script);
                tokio::spawn(async move {
                    let mut socket = socket;
                    let Some(seen) = read(&mut socket).await else {
                        return;
                    };
                    this.seen.lock().unwrap().push(seen.clone());
                    let reply = script(&seen);
                    if write(&mut socket, reply).await.is_none() {
                        this.left.lock().unwrap().push(seen.method().to_owned());
                    }
                });
            }
        });
        server
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn of(&self, method: &str) -> Vec<Seen> {
        let mut all = self.seen();
        all.retain(|seen| seen.method() == method);
        all
    }

    pub(crate) fn verbs(&self, verb: &str) -> Vec<Seen> {
        let mut all = self.seen();
        all.retain(|seen| seen.verb == verb);
        all
    }

    pub(crate) fn left(&self) -> Vec<String> {
        self.left.lock().unwrap().clone()
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, is_seen: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_seen(self) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waiting)
            .await
            .expect("it is seen in time");
    }
}

async fn read(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let mut chunk = [0; 4096];
        match socket.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[head + 4..].to_vec();
    while body.len() < length {
        let mut chunk = [0; 4096];
        let count = socket.read(&mut chunk).await.ok()?;
        body.extend_from_slice(&chunk[..count]);
    }
    Some(Seen {
        verb: first.next()?.to_owned(),
        path: first.next()?.to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at: Instant::now(),
    })
}

/// Returns `None` if the client disconnects first.
async fn write(socket: &mut TcpStream, reply: Reply) -> Option<()> {
    let head = |status: u16, headers: &[(&'static str, String)]| {
        let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    };
    match reply {
        Reply::Json(status, headers, body) => {
            let body = body.to_string();
            let mut text = head(status, &headers);
            let length = body.len();
            text.push_str("Content-Type: application/json\r\n");
            text.push_str(&format!("Content-Length: {length}\r\n\r\n{body}"));
            socket.write_all(text.as_bytes()).await.ok()
        }
        Reply::Empty(status, headers) => {
            let text = head(status, &headers) + "Content-Length: 0\r\n\r\n";
            socket.write_all(text.as_bytes()).await.ok()
        }
        Reply::Other(status, kind, body) => {
            let mut text = head(status, &[("Content-Type", kind.to_owned())]);
            text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
            socket.write_all(text.as_bytes()).await.ok()
        }
        Reply::Events(events) => {
            let text = head(200, &[("Content-Type", "text/event-stream".to_owned())]) + "\r\n";
            socket.write_all(text.as_bytes()).await.ok()?;
            for event in events {
                match event {
                    Event::Text(text) => socket
                        .write_all(format!("{text}\n\n").as_bytes())
                        .await
                        .ok()?,
                    Event::Data(value) => {
                        socket
                            .write_all(format!("data: {value}\n\n").as_bytes())
                            .await
                            .ok()?;
                    }
                    Event::Hold => {
                        // The client sends nothing more: only the end can be read.
                        let _ = socket.read(&mut [0; 1]).await;
                        return None;
                    }
                }
            }
            Some(())
        }
    }
}
