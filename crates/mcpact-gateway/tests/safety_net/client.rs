//! A client that puts everything it receives into one inbox, on a link or on HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::Gateway;
use mcpact_sim::scripted::{
    HttpTestClient, TestClient,
    message::{modern_request, request},
};
use mcpact_spec::{Era, Revision};
use mcpact_transport::http::client::ClientResponseBody;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::rig::link;

/// Usual limit of a wait for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Address at which a client reaches the gateway.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// All servers, on a link in memory.
    Link,
    /// URL of an endpoint.
    Url(String),
}

pub(crate) struct Client {
    pub(crate) revision: Revision,
    /// Limit of each wait for a message.
    pub(crate) patience: Duration,
    capabilities: Value,
    inbox: mpsc::UnboundedReceiver<Value>,
    wire: Wire,
    /// Ends with the client.
    jobs: JoinSet<()>,
    /// Requests on HTTP.
    streams: HashMap<String, AbortHandle>,
}

enum Wire {
    Link(mpsc::UnboundedSender<Value>),
    Http {
        web: Box<HttpTestClient>,
        inbox: mpsc::UnboundedSender<Value>,
    },
}

impl Client {
    /// Connects; `key` identifies a modern client on HTTP.
    pub(crate) async fn connect(
        gateway: &Arc<Gateway>,
        address: &Address,
        revision: Revision,
        capabilities: Value,
        key: Option<&str>,
    ) -> Self {
        let connecting = Self::try_connect(gateway, address, revision, capabilities, key).await;
        connecting.unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Connects. Returns the error response if the gateway refuses.
    pub(crate) async fn try_connect(
        gateway: &Arc<Gateway>,
        address: &Address,
        revision: Revision,
        capabilities: Value,
        key: Option<&str>,
    ) -> Result<Self, Value> {
        let (put, inbox) = mpsc::unbounded_channel();
        let mut jobs = JoinSet::new();
        let wire = match address {
            Address::Link => {
                let mut peer = TestClient::on(link(gateway), None);
                if revision.era() == Era::Legacy {
                    peer.open(revision.as_str(), capabilities.clone()).await;
                }
                let (send, sent) = mpsc::unbounded_channel();
                jobs.spawn(exchange(peer, sent, put));
                Wire::Link(send)
            }
            Address::Url(url) => {
                let mut web = match revision.era() {
                    Era::Modern => HttpTestClient::modern(url, capabilities.clone()),
                    Era::Legacy => {
                        HttpTestClient::open(url, revision.as_str(), capabilities.clone()).await?
                    }
                };
                if revision.era() == Era::Legacy {
                    jobs.spawn(listen(web.clone(), put.clone()));
                }
                if let Some(key) = key.filter(|_| revision.era() == Era::Modern) {
                    web = web.with("mcpact-key", key);
                }
                Wire::Http {
                    web: Box::new(web),
                    inbox: put,
                }
            }
        };
        Ok(Self {
            revision,
            patience: PATIENCE,
            capabilities,
            inbox,
            wire,
            jobs,
            streams: HashMap::new(),
        })
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: &str, method: &str, params: Value) {
        match &self.wire {
            Wire::Link(send) => {
                let message = match self.revision.era() {
                    Era::Modern => modern_request(id, method, params, &self.capabilities),
                    Era::Legacy => request(id, method, params),
                };
                let _ = send.send(message);
            }
            Wire::Http { web, inbox } => {
                let (web, inbox) = (web.clone(), inbox.clone());
                let (id, method) = (id.to_owned(), method.to_owned());
                let key = id.clone();
                let stream = self.jobs.spawn(async move {
                    let mut reply = web.request(id, &method, params).await;
                    while let Some(message) = reply.next().await {
                        let _ = inbox.send(message);
                    }
                });
                self.streams.insert(key, stream);
            }
        }
    }

    /// Sends a notification or an answer.
    async fn tell(&self, message: Value) {
        match &self.wire {
            Wire::Link(send) => drop(send.send(message)),
            Wire::Http { web, .. } => drop(web.post(&message).await),
        }
    }

    pub(crate) async fn note(&self, method: &str, params: Value) {
        self.tell(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn answer(&self, question: &Value, result: Value) {
        self.tell(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
            .await;
    }

    /// Cancels a request: a modern client on HTTP closes its stream, others send a notification.
    pub(crate) async fn cancel(&mut self, id: &str) {
        match (&self.wire, self.revision.era()) {
            (Wire::Http { .. }, Era::Modern) => {
                if let Some(stream) = self.streams.remove(id) {
                    stream.abort();
                }
            }
            _ => {
                let params = json!({"requestId": id});
                self.note("notifications/cancelled", params).await;
            }
        }
    }

    /// Next message, without a timeout; none after the gateway has closed the connection.
    pub(crate) async fn recv(&mut self) -> Option<Value> {
        self.inbox.recv().await
    }

    /// Next message.
    pub(crate) async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(self.patience, self.inbox.recv()).await;
        next.expect("a message arrives in time")
            .expect("the gateway is there")
    }

    /// Next message with this method.
    pub(crate) async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            assert!(
                message.get("id").is_none() || message.get("method").is_some(),
                "{message}"
            );
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Response to a request. Notifications before it are skipped.
    pub(crate) async fn answered(&mut self, id: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Sends a request and returns its answer.
    pub(crate) async fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.request(id, method, params);
        self.answered(id).await
    }
}

/// Moves messages between a link and its client.
async fn exchange(
    mut peer: TestClient,
    mut sent: mpsc::UnboundedReceiver<Value>,
    inbox: mpsc::UnboundedSender<Value>,
) {
    loop {
        tokio::select! {
            message = peer.recv_or_end() => match message {
                Some(message) => drop(inbox.send(message)),
                None => return,
            },
            message = sent.recv() => match message {
                Some(message) => peer.try_send(&message).await,
                None => return,
            },
        }
    }
}

/// Reads messages of a session that belong to no request.
async fn listen(web: HttpTestClient, inbox: mpsc::UnboundedSender<Value>) {
    let answer = web.http.listen(&web.headers, None).await.unwrap();
    let ClientResponseBody::Events(mut events) = answer.body else {
        return;
    };
    while let Some(Ok(event)) = events.next().await {
        if !event.data.is_empty() {
            let _ = inbox.send(serde_json::from_str(&event.data).unwrap());
        }
    }
}
