//! A raw HTTP client.

use std::net::SocketAddr;

use mcpact::server::Server;
use mcpact_spec::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A server that listens until it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    pub(crate) async fn start(server: Server) -> Self {
        let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (address, url) = (listening.address(), listening.url());
        let task = tokio::spawn(async move {
            let _ = listening.run(std::future::pending()).await;
        });
        Self { address, url, task }
    }

    pub(crate) async fn everything(revisions: &[Revision]) -> Self {
        Self::start(mcpact_everything::server(revisions)).await
    }

    pub(crate) async fn send(&self, request: &Raw) -> Reply {
        request.send(self.address).await
    }

    /// A legacy session of this revision, by its id.
    pub(crate) async fn session(&self, revision: &str) -> String {
        let params = json!({"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        let opened = self
            .send(&Raw::post(&request(0, "initialize", &params)))
            .await;
        assert_eq!(opened.json()["result"]["protocolVersion"], revision);
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = self
            .send(&Raw::post(&note).with("mcp-session-id", &id))
            .await;
        assert_eq!(accepted.status, 202);
        id
    }
}

pub(crate) fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn modern(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, method, &params)
}

/// A request, byte by byte.
pub(crate) struct Raw {
    verb: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Raw {
    pub(crate) fn new(verb: &'static str, path: &str) -> Self {
        let headers = vec![
            ("host".to_owned(), "localhost".to_owned()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
        ];
        Self {
            verb,
            path: path.to_owned(),
            headers,
            body: String::new(),
        }
    }

    pub(crate) fn post(body: &Value) -> Self {
        Self::text(&body.to_string())
    }

    pub(crate) fn text(body: &str) -> Self {
        let mut raw = Self::new("POST", "/mcp").with("content-type", "application/json");
        raw.body = body.to_owned();
        raw
    }

    /// A modern request with the headers that mirror it.
    pub(crate) fn modern(message: &Value) -> Self {
        let raw = Self::post(message)
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", message["method"].as_str().unwrap());
        let name = ["name", "uri", "taskId"]
            .iter()
            .find_map(|key| message["params"][key].as_str());
        match name {
            Some(name) => raw.with("mcp-name", name),
            None => raw,
        }
    }

    /// To another path.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    /// Adds a header, or replaces it.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.and(name, value)
    }

    /// Adds a header even if it stands there already.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The request as it goes over the wire.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.verb, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!(
            "content-length: {}\r\nconnection: close\r\n\r\n",
            self.body.len()
        ));
        text.push_str(&self.body);
        text
    }

    pub(crate) async fn send(&self, address: SocketAddr) -> Reply {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(self.encode().as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        Reply::parse(&bytes)
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .unwrap_or(0);
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let body = if is_chunked {
            unchunk(body)
        } else {
            body.to_owned()
        };
        Self {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The messages of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| !data.is_empty())
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no error: {self:?}"))
    }
}

fn unchunk(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.push_str(rest.get(..size).unwrap_or(rest));
        body = rest.get(size + 2..).unwrap_or("");
    }
    out
}
