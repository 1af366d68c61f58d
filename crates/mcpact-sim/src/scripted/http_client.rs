//! Raw client on HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact::server::backend::{Backend, HttpListener};
use mcpact_transport::http::client::{
    ClientResponse, ClientResponseBody, EventStream, HttpClient, HttpSettings,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::message::{initialize, modern_request, notification, request, response};

/// Client of a URL, for tests that send and check each message themselves.
#[derive(Clone, Debug)]
pub struct HttpTestClient {
    /// Client that sends the requests.
    pub http: HttpClient,
    /// Headers of each request.
    pub headers: HeaderMap,
    /// Capabilities of a modern client; none for a legacy client.
    capabilities: Option<Value>,
}

/// Response to one request; dropping it closes the stream.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Empty,
    One(Option<Value>),
    Events(Box<EventStream>),
}

impl Reply {
    /// Returns the next message; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        match &mut self.body {
            Body::Empty => None,
            Body::One(value) => value.take(),
            Body::Events(events) => loop {
                let event = events.next().await?.unwrap();
                if !event.data.is_empty() {
                    return Some(serde_json::from_str(&event.data).unwrap());
                }
            },
        }
    }

    /// Returns the only message.
    pub async fn only(&mut self) -> Value {
        let only = self.next().await.expect("a message");
        let more = self.next().await;
        assert_eq!(more, None, "nothing after {only}");
        only
    }
}

/// Starts an HTTP listener for a backend; returns its URL.
pub async fn listen(backend: &Arc<impl Backend>) -> String {
    let address = ([127, 0, 0, 1], 0).into();
    let listener = HttpListener::bind(Arc::clone(backend), address).await;
    let listener = listener.unwrap();
    let url = listener.url();
    tokio::spawn(listener.run(std::future::pending()));
    url
}

/// Sends a raw HTTP request to an origin or address; returns the raw response.
///
/// Each header ends with CR and LF. `Host` is added unless it is given.
pub async fn exchange(verb: &str, origin: &str, path: &str, headers: &str, body: &str) -> String {
    let host = origin.strip_prefix("http://").unwrap_or(origin);
    let mut stream = TcpStream::connect(host).await.unwrap();
    let own_host = match headers.contains("Host:") {
        true => String::new(),
        false => format!("Host: {host}\r\n"),
    };
    let length = body.len();
    let request = format!(
        "{verb} {path} HTTP/1.1\r\n{own_host}{headers}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// Posts a message with these headers; returns the raw response.
pub async fn post(url: &str, headers: &str, message: &Value) -> String {
    let (origin, path) = url.rsplit_once('/').unwrap();
    let (path, body) = (format!("/{path}"), message.to_string());
    let headers = format!("content-type: application/json\r\n{headers}");
    exchange("POST", origin, &path, &headers, &body).await
}

/// Returns the header with the session that a raw response has opened.
#[must_use]
pub fn session_header(response: &str) -> String {
    let mut lines = response.lines();
    let session = lines.find(|line| line.starts_with("mcp-session-id: "));
    format!("{}\r\n", session.unwrap())
}

impl HttpTestClient {
    /// Creates a modern client.
    #[must_use]
    pub fn modern(url: &str, capabilities: Value) -> Self {
        Self {
            http: HttpClient::new(url, HttpSettings::default()).unwrap(),
            headers: HeaderMap::new(),
            capabilities: Some(capabilities),
        }
    }

    /// Opens a session.
    pub async fn legacy(url: &str, version: &str, capabilities: Value) -> Self {
        let opened = Self::open(url, version, capabilities).await;
        opened.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Opens a session; returns the response if that fails.
    pub async fn open(url: &str, version: &str, capabilities: Value) -> Result<Self, Value> {
        let mut web = Self {
            http: HttpClient::new(url, HttpSettings::default()).unwrap(),
            headers: HeaderMap::new(),
            capabilities: None,
        };
        let body = Bytes::from(initialize(0, version, capabilities).to_string());
        let answer = web.http.post(&web.headers, body).await.unwrap();
        let Some(session) = answer.headers.get("mcp-session-id").cloned() else {
            return Err(Self::read(answer).only().await);
        };
        web = web.with("mcp-session-id", session.to_str().unwrap());
        web = web.with("mcp-protocol-version", version);
        let ready = notification("notifications/initialized", json!({}));
        assert_eq!(web.post(&ready).await.status, 202);
        Ok(web)
    }

    /// Adds a header to each request.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sends a message.
    pub async fn post(&self, message: &Value) -> Reply {
        let body = Bytes::from(message.to_string());
        Self::read(self.http.post(&self.headers, body).await.unwrap())
    }

    fn read(answer: ClientResponse) -> Reply {
        let body = match answer.body {
            ClientResponseBody::Empty => Body::Empty,
            ClientResponseBody::Json(bytes) => {
                Body::One(Some(serde_json::from_slice(&bytes).unwrap()))
            }
            ClientResponseBody::Events(events) => Body::Events(events),
            ClientResponseBody::Other(text) => panic!("{}: {text}", answer.status),
        };
        Reply {
            status: answer.status,
            body,
        }
    }

    /// Sends a request, with the headers of its era.
    pub async fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Reply {
        let Some(capabilities) = &self.capabilities else {
            return self.post(&request(id, method, params)).await;
        };
        let named = ["name", "uri", "taskId"]
            .iter()
            .find_map(|key| params[*key].as_str());
        let mut web = self.clone().with("mcp-protocol-version", "2026-07-28");
        let method_value = HeaderValue::from_str(method).unwrap();
        web.headers
            .insert(HeaderName::from_static("mcp-method"), method_value);
        if let Some(name) = named {
            let name = HeaderValue::from_str(name).unwrap();
            web.headers
                .insert(HeaderName::from_static("mcp-name"), name);
        }
        web.post(&modern_request(id, method, params, capabilities))
            .await
    }

    /// Answers a request of the server.
    pub async fn answer(&self, question: &Value, result: Value) {
        let answer = response(question, result);
        assert_eq!(self.post(&answer).await.status, 202);
    }

    /// Ends the session; returns the status.
    pub async fn delete(&self) -> u16 {
        self.http.delete(&self.headers).await.unwrap()
    }
}
