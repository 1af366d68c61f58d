//! A client on HTTP that checks nothing and hides nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::error::RowError;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Timeout of a response, longer than any valid delay.
const PATIENCE: Duration = Duration::from_secs(60);

/// Protocol era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// One client; it opens as many connections as it has requests at a time.
#[derive(Debug)]
pub(crate) struct Client {
    address: String,
    path: String,
    era: Era,
    pub(crate) headers: HeaderMap,
    capabilities: Value,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// Response to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<HeaderValue>,
    pub(crate) messages: Vec<Value>,
}

impl Reply {
    /// The messages that answer something.
    pub(crate) fn answers(&self) -> Vec<&Value> {
        let is_answer = |message: &&Value| message.get("method").is_none();
        self.messages.iter().filter(is_answer).collect()
    }

    /// The notes of a method.
    pub(crate) fn notes(&self, method: &str) -> Vec<&Value> {
        let is_such = |message: &&Value| message["method"] == method;
        self.messages.iter().filter(is_such).collect()
    }
}

impl Client {
    /// A client that has said nothing yet.
    pub(crate) fn new(address: &str, path: &str, era: Era) -> Result<Self, RowError> {
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(address).map_err(http::Error::from)?;
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        if era == Era::Modern {
            headers.insert(VERSION, HeaderValue::from_static("2026-07-28"));
        }
        Ok(Self {
            address: address.to_owned(),
            path: path.to_owned(),
            era,
            headers,
            capabilities: json!({}),
            idle: Mutex::default(),
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// With capabilities of its own.
    pub(crate) fn declaring(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// A client that has opened its conversation, if its era has any.
    pub(crate) async fn open(address: &str, path: &str, era: Era) -> Result<Self, RowError> {
        Self::new(address, path, era)?.greet().await
    }

    /// Opens the conversation.
    pub(crate) async fn greet(mut self) -> Result<Self, RowError> {
        if self.era == Era::Modern {
            return Ok(self);
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": {"name": "driver", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let reply = self.post(&hello).await?;
        let session = reply.session.clone().filter(|_| reply.status == 200);
        let session =
            session.ok_or_else(|| RowError::stage(format!("no session is given: {reply:?}")))?;
        self.headers.insert(SESSION, session);
        let version = HeaderValue::from_static("2025-11-25");
        self.headers.insert(VERSION, version);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(&note).await?;
        Ok(self)
    }

    /// A request of this client's era, as it goes out.
    pub(crate) fn request(&self, id: &Value, method: &str, mut params: Value) -> Value {
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({"name": "driver", "version": "1"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// A call of a tool.
    pub(crate) async fn call(
        &self,
        id: &Value,
        tool: &str,
        arguments: Value,
    ) -> Result<Reply, RowError> {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(&self.request(id, "tools/call", params)).await
    }

    /// Sends a message and reads everything that comes back.
    pub(crate) async fn post(&self, message: &Value) -> Result<Reply, RowError> {
        let body = Bytes::from(message.to_string());
        let exchange = async {
            let (connection, response) = self.send(Method::POST, body, message).await?;
            let reply = read(response).await?;
            self.rest(connection);
            Ok(reply)
        };
        let exchange = tokio::time::timeout(PATIENCE, exchange).await;
        exchange.map_err(|_| RowError::Patience("an answer"))?
    }

    /// Ends the conversation.
    pub(crate) async fn leave(&self) -> Result<u16, RowError> {
        let (_, response) = self
            .send(Method::DELETE, Bytes::new(), &Value::Null)
            .await?;
        Ok(response.status().as_u16())
    }

    fn rest(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
    }

    /// Sends bytes; the answer is the caller's to read, and so is the connection.
    pub(crate) async fn send(
        &self,
        method: Method,
        body: Bytes,
        message: &Value,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), RowError> {
        let mut connection = self.connection().await?;
        let mut request = Request::builder().method(method).uri(self.path.as_str());
        if let Some(headers) = request.headers_mut() {
            *headers = self.all_headers(message);
        }
        let request = request.body(Full::new(body))?;
        let response = connection.send_request(request).await?;
        Ok((connection, response))
    }

    /// The headers that go with a message; modern ones say what it is.
    pub(crate) fn all_headers(&self, message: &Value) -> HeaderMap {
        let mut headers = self.headers.clone();
        if self.era != Era::Modern {
            return headers;
        }
        let texts = [
            (METHOD, &message["method"]),
            (NAME, &message["params"]["name"]),
        ];
        for (header, text) in texts {
            let value = text
                .as_str()
                .and_then(|text| HeaderValue::from_str(text).ok());
            if let Some(value) = value {
                headers.insert(header, value);
            }
        }
        headers
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, RowError> {
        loop {
            let resting = {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                idle.pop()
            };
            let Some(mut resting) = resting else { break };
            if resting.ready().await.is_ok() {
                return Ok(resting);
            }
        }
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, work) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(work);
        Ok(connection)
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(response: Response<Incoming>) -> Result<Reply, RowError> {
    let status = response.status().as_u16();
    let session = response.headers().get(SESSION).cloned();
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let body = response.into_body().collect().await?.to_bytes();
    let messages = if is_stream {
        events(&String::from_utf8_lossy(&body))
    } else {
        serde_json::from_slice(&body).into_iter().collect()
    };
    Ok(Reply {
        status,
        session,
        messages,
    })
}

/// The messages of a stream of events.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok())
        .collect()
}

/// An answer that is read message by message.
#[derive(Debug)]
pub(crate) struct Stream {
    body: Incoming,
    status: u16,
    text: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        Self {
            status: response.status().as_u16(),
            body: response.into_body(),
            text: Vec::new(),
        }
    }

    /// The reply that consists of this message.
    pub(crate) fn reply(&self, message: Value) -> Reply {
        Reply {
            status: self.status,
            session: None,
            messages: vec![message],
        }
    }

    /// The next message, or nothing when the stream is over.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, RowError> {
        loop {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let text = String::from_utf8_lossy(&line);
                if let Some(message) = events(&text).pop() {
                    return Ok(Some(message));
                }
            }
            let Some(frame) = self.body.frame().await else {
                // Without a stream of events the body is the message.
                let rest = std::mem::take(&mut self.text);
                return Ok(serde_json::from_slice(&rest).ok());
            };
            if let Ok(bytes) = frame?.into_data() {
                self.text.extend_from_slice(&bytes);
            }
        }
    }
}
