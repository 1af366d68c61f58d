//! Scripted client on HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_gateway::UpstreamServer;
use mcpact_transport::http::client::{
    ClientResponse, ClientResponseBody, EventStream, HttpClient, HttpSettings,
};
use serde_json::{Value, json};

use crate::scripted_client::{modern, request};

/// Client of a listening bridge.
#[derive(Clone)]
pub(crate) struct HttpTestClient {
    pub(crate) http: HttpClient,
    pub(crate) facts: HeaderMap,
    capabilities: Option<Value>,
}

/// Response to one request; dropping it closes the stream.
pub(crate) struct Reply {
    pub(crate) status: u16,
    body: Body,
}

enum Body {
    Empty,
    One(Option<Value>),
    Events(Box<EventStream>),
}

impl Reply {
    /// Returns the next message; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
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
    pub(crate) async fn only(&mut self) -> Value {
        let only = self.next().await.expect("a message");
        let more = self.next().await;
        assert_eq!(more, None, "nothing after {only}");
        only
    }
}

/// Starts an HTTP listener for a bridge; returns its URL.
pub(crate) async fn listen(bridge: &Arc<UpstreamServer>) -> String {
    let front = Arc::clone(bridge).listen(([127, 0, 0, 1], 0).into()).await;
    let front = front.unwrap();
    let url = front.url();
    tokio::spawn(front.run(std::future::pending()));
    url
}

impl HttpTestClient {
    pub(crate) fn modern(url: &str, capabilities: Value) -> Self {
        Self {
            http: HttpClient::new(url, HttpSettings::default()).unwrap(),
            facts: HeaderMap::new(),
            capabilities: Some(capabilities),
        }
    }

    /// Opens a session.
    pub(crate) async fn legacy(url: &str, version: &str, capabilities: Value) -> Self {
        let opened = Self::open(url, version, capabilities).await;
        opened.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Opens a session; returns the response if that fails.
    pub(crate) async fn open(url: &str, version: &str, capabilities: Value) -> Result<Self, Value> {
        let mut web = Self {
            http: HttpClient::new(url, HttpSettings::default()).unwrap(),
            facts: HeaderMap::new(),
            capabilities: None,
        };
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}});
        let body = Bytes::from(request(0, "initialize", params).to_string());
        let answer = web.http.post(&web.facts, body).await.unwrap();
        let Some(session) = answer.headers.get("mcp-session-id").cloned() else {
            return Err(Self::read(answer).only().await);
        };
        web = web.with("mcp-session-id", session.to_str().unwrap());
        web = web.with("mcp-protocol-version", version);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(web.post(&ready).await.status, 202);
        Ok(web)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.facts.insert(HeaderName::from_static(name), value);
        self
    }

    pub(crate) async fn post(&self, message: &Value) -> Reply {
        let body = Bytes::from(message.to_string());
        Self::read(self.http.post(&self.facts, body).await.unwrap())
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

    pub(crate) async fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Reply {
        let Some(capabilities) = &self.capabilities else {
            return self.post(&request(id, method, params)).await;
        };
        let named = ["name", "uri", "taskId"]
            .iter()
            .find_map(|key| params[*key].as_str());
        let mut web = self.clone().with("mcp-protocol-version", "2026-07-28");
        let method_value = HeaderValue::from_str(method).unwrap();
        web.facts
            .insert(HeaderName::from_static("mcp-method"), method_value);
        if let Some(name) = named {
            let name = HeaderValue::from_str(name).unwrap();
            web.facts.insert(HeaderName::from_static("mcp-name"), name);
        }
        web.post(&modern(id, method, params, capabilities)).await
    }

    pub(crate) async fn answer(&self, question: &Value, result: Value) {
        let id = &question["id"];
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(self.post(&answer).await.status, 202);
    }

    pub(crate) async fn delete(&self) -> u16 {
        self.http.delete(&self.facts).await.unwrap()
    }
}
