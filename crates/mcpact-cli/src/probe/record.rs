//! Record of what a client and a server sent each other.

use std::sync::{Arc, Mutex, PoisonError};

use mcpact_transport::tap::{HttpExchange, Tap, Traffic};

/// Limit of recorded bytes of one connection.
const MAX_BYTES: usize = 16 << 20;

/// Limit of recorded items of one connection.
const MAX_ITEMS: usize = 10_000;

/// A recorded item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Message from the client.
    Sent(String),
    /// Line, event or body from the server. It follows the [`Http`](Self::Http) of its response.
    Received(String),
    /// Head of an HTTP response. It follows the message that it answers.
    Http(HttpHead),
    /// Another process or session of the server follows.
    Restart,
}

/// Head of an HTTP response, as far as the specification has rules for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpHead {
    /// True if it answers a message, not a GET.
    pub(crate) is_post: bool,
    /// Status.
    pub(crate) status: u16,
    /// `Content-Type`, without parameters and in lower case.
    pub(crate) content_type: Option<String>,
    /// True if there is a `WWW-Authenticate` header.
    pub(crate) has_challenge: bool,
    /// `Mcp-Session-Id`, as far as it is text.
    pub(crate) session: Option<Vec<u8>>,
    /// True if there is a body, which may be a stream of events.
    pub(crate) has_body: bool,
}

/// Items in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) items: Vec<Item>,
    /// True if the limit was reached.
    pub(crate) is_truncated: bool,
}

/// Tap that records the traffic of one connection.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    record: Record,
    bytes: usize,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Recorder {
    /// Creates a recorder that can be installed as a tap.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Marks the end of a process or session.
    pub(crate) fn restart(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.sent.clear();
        state.received.clear();
        if !state.record.items.is_empty() {
            state.add(Item::Restart, 0);
        }
    }

    /// Returns what was recorded so far.
    pub(crate) fn record(&self) -> Record {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.record.clone()
    }
}

impl Tap for Recorder {
    fn record(&self, traffic: Traffic<'_>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match traffic {
            Traffic::Written(bytes) => {
                let mut unfinished = std::mem::take(&mut state.sent);
                state.add_lines(&mut unfinished, bytes, Item::Sent);
                state.sent = unfinished;
            }
            Traffic::Read(bytes) => {
                let mut unfinished = std::mem::take(&mut state.received);
                state.add_lines(&mut unfinished, bytes, Item::Received);
                state.received = unfinished;
            }
            Traffic::Response(exchange) => state.add_exchange(exchange),
            Traffic::Event(data) => state.add_text(data.as_bytes(), Item::Received),
        }
    }
}

impl State {
    /// Adds the lines that these bytes complete; the rest stays in `unfinished`.
    fn add_lines(&mut self, unfinished: &mut Vec<u8>, bytes: &[u8], item: fn(String) -> Item) {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if unfinished.len() + part.len() <= MAX_BYTES {
                unfinished.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                let line = std::mem::take(unfinished);
                self.add_text(line.trim_ascii(), item);
            }
        }
    }

    fn add_exchange(&mut self, exchange: HttpExchange<'_>) {
        let header = |name: &str| exchange.headers.get(name);
        let is_post = exchange.method == "POST";
        if is_post {
            self.add_text(exchange.request, Item::Sent);
        }
        let content_type = header("content-type").map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            let kind = text.split(';').next().unwrap_or_default();
            kind.trim().to_owned()
        });
        let is_json = content_type.as_deref() == Some("application/json");
        let is_stream = content_type.as_deref() == Some("text/event-stream");
        let head = HttpHead {
            is_post,
            status: exchange.status,
            content_type,
            has_challenge: header("www-authenticate").is_some(),
            session: header("mcp-session-id").map(|value| value.as_bytes().to_owned()),
            has_body: is_stream || !exchange.body.is_empty(),
        };
        self.add(Item::Http(head), 0);
        // Errors of proxies and frameworks are not messages.
        if is_json && is_message(exchange.body) {
            self.add_text(exchange.body, Item::Received);
        }
    }

    fn add_text(&mut self, text: &[u8], item: fn(String) -> Item) {
        if !text.is_empty() {
            let text = String::from_utf8_lossy(text).into_owned();
            let length = text.len();
            self.add(item(text), length);
        }
    }

    fn add(&mut self, item: Item, length: usize) {
        if self.bytes + length > MAX_BYTES || self.record.items.len() >= MAX_ITEMS {
            self.record.is_truncated = true;
            return;
        }
        self.bytes += length;
        self.record.items.push(item);
    }
}

/// Returns whether a body is meant as a JSON-RPC message.
fn is_message(body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        return false;
    };
    ["jsonrpc", "result", "method", "id"]
        .iter()
        .any(|key| value.get(key).is_some())
        || value.is_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_from_several_reads() {
        let recorder = Recorder::new();
        for part in ["{\"a\":", "1}\r\n\n{}", "\nrest"] {
            Tap::record(&*recorder, Traffic::Read(part.as_bytes()));
        }
        let texts = ["{\"a\":1}", "{}"].map(|text| Item::Received(text.to_owned()));
        assert_eq!(recorder.record().items, texts);
    }

    #[test]
    fn response_follows_its_request() {
        let recorder = Recorder::new();
        let mut headers = http::HeaderMap::new();
        headers.insert(
            "content-type",
            "Application/JSON; charset=utf-8".parse().unwrap(),
        );
        Tap::record(
            &*recorder,
            Traffic::Response(HttpExchange {
                method: &http::Method::POST,
                request: b"{\"id\":1}",
                status: 200,
                headers: &headers,
                body: b"{\"id\":1,\"result\":{}}",
            }),
        );
        let items = recorder.record().items;
        let [
            Item::Sent(request),
            Item::Http(head),
            Item::Received(response),
        ] = &*items
        else {
            panic!("{items:?}");
        };
        assert_eq!(
            (&**request, &**response),
            ("{\"id\":1}", "{\"id\":1,\"result\":{}}")
        );
        assert_eq!(head.content_type.as_deref(), Some("application/json"));
    }
}
