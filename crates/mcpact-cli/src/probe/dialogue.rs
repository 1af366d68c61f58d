//! A record, with its messages parsed and its responses matched to requests.

use mcpact_engine::pact::Pact;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use serde_json::Value;

use super::record::{HttpHead, Item, Record};

/// Transport that a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Lines on the stdio of a process.
    Stdio,
    /// HTTP.
    Http,
}

/// Messages of one or more connections.
#[derive(Debug)]
pub(crate) struct Dialogue<'a> {
    pub(crate) carrier: Carrier,
    /// The pact of the connection, if there is one.
    pub(crate) pact: Option<&'a Pact>,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// An item of the record, parsed.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// Request or notification of the client.
    Sent(Sent),
    /// Message of the server; in a batch, each message on its own.
    Received(Received),
    /// Text of the server that is not JSON.
    NotJson(&'a str),
    /// Array of messages.
    Batch,
    /// Head of an HTTP response, with the message that it answers.
    Http(&'a HttpHead, Option<usize>),
    /// Another process or session follows.
    Restart,
}

/// Request or notification of the client.
#[derive(Debug)]
pub(crate) struct Sent {
    /// None for a notification.
    pub(crate) id: Option<Value>,
    /// None for a response to the server.
    pub(crate) method: Option<String>,
    /// Version that the message offers.
    pub(crate) version: Option<String>,
}

/// Returns the version that a message offers, in its handshake or its metadata.
fn offered(message: &Value) -> Option<String> {
    let params = message.get("params")?;
    let version = params.get("protocolVersion").or_else(|| {
        let meta = params.get("_meta")?;
        meta.get(meta::PROTOCOL_VERSION)
    });
    version?.as_str().map(str::to_owned)
}

/// Message of the server.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) message: Value,
    /// Index of the request that it answers.
    pub(crate) answers: Option<usize>,
    /// True if that request was answered before.
    pub(crate) is_repeated: bool,
}

impl Received {
    /// Returns whether the message is a response, or meant as one.
    pub(crate) fn is_response(&self) -> bool {
        self.message.get("method").is_none()
    }

    /// Returns the method of a request or notification.
    pub(crate) fn method(&self) -> Option<&str> {
        self.message.get("method")?.as_str()
    }

    /// Returns whether the message is a request.
    pub(crate) fn is_request(&self) -> bool {
        self.method().is_some() && self.message.get("id").is_some()
    }
}

impl<'a> Dialogue<'a> {
    /// Parses a record.
    pub(crate) fn new(record: &'a Record, carrier: Carrier, pact: Option<&'a Pact>) -> Self {
        let entries = Vec::with_capacity(record.items.len());
        let mut dialogue = Self {
            carrier,
            pact,
            entries,
        };
        for item in &record.items {
            dialogue.add(item);
        }
        dialogue
    }

    fn add(&mut self, item: &'a Item) {
        match item {
            Item::Restart => self.entries.push(Entry::Restart),
            Item::Http(head) => {
                let answers = self.entries.len().checked_sub(1).filter(|_| head.is_post);
                self.entries.push(Entry::Http(head, answers));
            }
            Item::Sent(text) => {
                let message: Value = serde_json::from_str(text).unwrap_or_default();
                let method = message.get("method").and_then(Value::as_str);
                self.entries.push(Entry::Sent(Sent {
                    id: message.get("id").cloned(),
                    method: method.map(str::to_owned),
                    version: offered(&message),
                }));
            }
            Item::Received(text) => match serde_json::from_str(text) {
                Err(_) => self.entries.push(Entry::NotJson(text)),
                Ok(Value::Array(all)) => {
                    self.entries.push(Entry::Batch);
                    for one in all {
                        self.add_message(one);
                    }
                }
                Ok(message) => self.add_message(message),
            },
        }
    }

    fn add_message(&mut self, message: Value) {
        let answers = match message.get("method") {
            Some(_) => None,
            None => message.get("id").and_then(|id| self.request(id)),
        };
        let is_repeated =
            answers.is_some() && self.received().any(|earlier| earlier.answers == answers);
        self.entries.push(Entry::Received(Received {
            message,
            answers,
            is_repeated,
        }));
    }

    /// Returns the latest request of this connection with an id.
    fn request(&self, id: &Value) -> Option<usize> {
        let own = self.entries.iter().enumerate().rev();
        let mut own = own.take_while(|(_, entry)| !matches!(entry, Entry::Restart));
        let found = own.find(|(_, entry)| match entry {
            Entry::Sent(sent) => sent.method.is_some() && sent.id.as_ref() == Some(id),
            _ => false,
        });
        found.map(|(at, _)| at)
    }

    /// Returns the messages of the server.
    pub(crate) fn received(&self) -> impl Iterator<Item = &Received> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Received(received) => Some(received),
            _ => None,
        })
    }

    /// Returns the messages of the client.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Sent> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Sent(sent) => Some(sent),
            _ => None,
        })
    }

    /// Returns the message of the client at an index.
    pub(crate) fn sent_at(&self, at: usize) -> Option<&Sent> {
        match self.entries.get(at)? {
            Entry::Sent(sent) => Some(sent),
            _ => None,
        }
    }

    /// Returns the method of the request that a response answers.
    pub(crate) fn asked(&self, received: &Received) -> Option<Method> {
        let sent = self.sent_at(received.answers?)?;
        Method::parse(sent.method.as_deref()?)
    }

    /// Returns the first response to each request, with the method of the request.
    pub(crate) fn responses(&self) -> impl Iterator<Item = (Method, &Value)> {
        let first = self.received().filter(|received| !received.is_repeated);
        first.filter_map(|received| {
            let method = self.asked(received)?;
            Some((method, &received.message))
        })
    }

    /// Returns the results with the method of their request.
    pub(crate) fn results(&self) -> impl Iterator<Item = (Method, &Value)> {
        self.responses()
            .filter_map(|(method, message)| Some((method, message.get("result")?)))
    }
}
