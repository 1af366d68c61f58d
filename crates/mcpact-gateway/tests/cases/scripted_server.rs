//! Scripted server on stdio or HTTP.
//!
//! It answers the handshake of its era; the test receives everything else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName, Method as Verb};
use mcpact_gateway::{Local, Target};
use mcpact_spec::{Era, Revision};
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Time limit of each wait on sockets.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of each wait in memory, where the clock is virtual.
const VIRTUAL_PATIENCE: Duration = Duration::from_secs(3600);

/// Handshake of a server.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Value,
    /// Replacement of the handshake result.
    pub(crate) introduction: Option<Value>,
    /// True if a session has its own stream on HTTP.
    pub(crate) can_push: bool,
}

impl Role {
    pub(crate) fn new(revision: Revision) -> Self {
        Self {
            revision,
            capabilities: json!({"tools": {}, "prompts": {}, "resources": {}, "logging": {},
                "completions": {}}),
            introduction: None,
            can_push: true,
        }
    }

    /// Declares change notifications.
    pub(crate) fn changing(mut self) -> Self {
        self.capabilities["tools"]["listChanged"] = json!(true);
        self.capabilities["resources"]["subscribe"] = json!(true);
        self
    }

    pub(crate) fn introduced(mut self, introduction: Value) -> Self {
        self.introduction = Some(introduction);
        self
    }

    /// Returns the response to a message of the handshake; none for other messages.
    fn greet(&self, message: &Value) -> Option<Option<Value>> {
        let id = &message["id"];
        let result =
            |result: Value| Some(Some(json!({"jsonrpc": "2.0", "id": id, "result": result})));
        match (message["method"].as_str()?, self.revision.era()) {
            ("server/discover", Era::Modern) => result(self.introduction.clone().unwrap_or_else(|| {
                json!({"resultType": "complete", "supportedVersions": [self.revision.as_str()],
                    "capabilities": self.capabilities, "ttlMs": 0, "cacheScope": "private",
                    "instructions": "be kind",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "stage", "version": "7"}}})
            })),
            ("initialize", Era::Legacy) => result(self.introduction.clone().unwrap_or_else(|| {
                json!({"protocolVersion": self.revision.as_str(), "capabilities": self.capabilities,
                    "instructions": "be kind",
                    "serverInfo": {"name": "stage", "version": "7"}})
            })),
            ("server/discover" | "initialize", _) => {
                let error = json!({"code": -32601, "message": "Method not found"});
                Some(Some(json!({"jsonrpc": "2.0", "id": id, "error": error})))
            }
            ("notifications/initialized", Era::Legacy) => Some(None),
            _ => None,
        }
    }
}

/// Message of a server.
enum Word {
    /// Message.
    Message(Value),
    /// Last message of a request.
    Last(Value),
    /// HTTP status and document.
    Status(u16, Value),
    /// End of the connection or stream.
    End,
}

/// Message that the server received, with the way to reply.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    pub(crate) message: Value,
    pub(crate) headers: HeaderMap,
    /// Number of the connection; on HTTP of the session, or 0 without one.
    pub(crate) connection: usize,
    voice: mpsc::UnboundedSender<Word>,
}

impl ReceivedMessage {
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn params(&self) -> &Value {
        &self.message["params"]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn say(&self, word: Word) {
        // The client may have disconnected.
        let _ = self.voice.send(word);
    }

    pub(crate) fn result(&self, result: Value) {
        let id = &self.message["id"];
        self.say(Word::Last(
            json!({"jsonrpc": "2.0", "id": id, "result": result}),
        ));
    }

    /// Sends a tool result with a text.
    pub(crate) fn text(&self, text: &str) {
        self.result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}));
    }

    pub(crate) fn error(&self, error: Value) {
        let id = &self.message["id"];
        self.say(Word::Last(
            json!({"jsonrpc": "2.0", "id": id, "error": error}),
        ));
    }

    pub(crate) fn status(&self, status: u16, document: Value) {
        self.say(Word::Status(status, document));
    }

    pub(crate) fn note(&self, method: &str, params: Value) {
        let note = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.say(Word::Message(note));
    }

    pub(crate) fn ask(&self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        let ask = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(Word::Message(ask));
    }

    pub(crate) fn hang_up(&self) {
        self.say(Word::End);
    }

    /// Returns true once the connection is closed.
    pub(crate) fn is_over(&self) -> bool {
        self.voice.is_closed()
    }

    /// Waits until the client disconnects.
    pub(crate) async fn closed(&self) {
        let gone = tokio::time::timeout(PATIENCE, self.voice.closed()).await;
        gone.expect("the other side goes away");
    }
}

/// Handle of the test for a server.
pub(crate) struct ScriptedServer {
    pub(crate) target: Target,
    heard: mpsc::UnboundedReceiver<ReceivedMessage>,
    patience: Duration,
    greetings: Arc<Mutex<Vec<Value>>>,
    /// Held by every open connection.
    connections: Arc<()>,
}

impl ScriptedServer {
    /// Starts a server in memory; every connection is a new instance.
    pub(crate) fn lines(role: Role) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let greetings = Arc::<Mutex<Vec<Value>>>::default();
        let log = Arc::clone(&greetings);
        let count = Mutex::new(0);
        let connections = Arc::new(());
        let open = Arc::clone(&connections);
        let target = Target::Local(Local(Arc::new(move || {
            let (ours, theirs) = memory::pair();
            let connection = {
                let mut count = count.lock().unwrap();
                *count += 1;
                *count
            };
            let (role, log, tell) = (role.clone(), Arc::clone(&log), tell.clone());
            let open = Arc::clone(&open);
            tokio::spawn(async move {
                play(theirs, connection, role, log, tell).await;
                drop(open);
            });
            ours
        })));
        Self {
            target,
            heard,
            patience: VIRTUAL_PATIENCE,
            connections,
            greetings,
        }
    }

    /// Starts a server on a socket.
    pub(crate) async fn http(role: Role) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let greetings = Arc::<Mutex<Vec<Value>>>::default();
        let server = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let target = Target::url(format!("http://{}/mcp", server.address()));
        let booth = Booth {
            role,
            log: Arc::clone(&greetings),
            tell,
            sessions: AtomicUsize::new(0),
        };
        tokio::spawn(server.serve(Arc::new(booth), std::future::pending()));
        Self {
            target,
            heard,
            patience: PATIENCE,
            connections: Arc::default(),
            greetings,
        }
    }

    /// Returns the next message that is not part of a handshake.
    pub(crate) async fn hear(&mut self) -> ReceivedMessage {
        let heard = tokio::time::timeout(self.patience, self.heard.recv()).await;
        heard.expect("something is said").unwrap()
    }

    /// Returns the next message without a time limit; none at the end.
    pub(crate) async fn hear_more(&mut self) -> Option<ReceivedMessage> {
        self.heard.recv().await
    }

    /// Returns a token that every open connection, and everything that opens connections, holds.
    pub(crate) fn connections(&self) -> Arc<()> {
        Arc::clone(&self.connections)
    }

    /// Returns the next message, which must have this method.
    pub(crate) async fn hear_of(&mut self, method: &str) -> ReceivedMessage {
        let said = self.hear().await;
        assert_eq!(said.method(), method, "{}", said.message);
        said
    }

    /// Returns the messages received so far.
    pub(crate) fn heard(&mut self) -> Vec<ReceivedMessage> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }

    /// Returns the messages of handshakes so far.
    pub(crate) fn greetings(&self) -> Vec<Value> {
        self.greetings.lock().unwrap().clone()
    }
}

/// Serves one stdio connection.
async fn play(
    link: Link,
    connection: usize,
    role: Role,
    log: Arc<Mutex<Vec<Value>>>,
    tell: mpsc::UnboundedSender<ReceivedMessage>,
) {
    let Link {
        mut source,
        mut sink,
    } = link;
    let (voice, mut words) = mpsc::unbounded_channel();
    loop {
        while let Some(line) = source.next_line() {
            let Line::Json(bytes) = line else {
                panic!("the bridge wrote {line:?}");
            };
            let message: Value = serde_json::from_slice(bytes).unwrap();
            if let Some(greeting) = role.greet(&message) {
                log.lock().unwrap().push(message);
                if let Some(greeting) = greeting {
                    sink.push(&greeting.to_string());
                }
                continue;
            }
            let said = ReceivedMessage {
                message,
                headers: HeaderMap::new(),
                connection,
                voice: voice.clone(),
            };
            if tell.send(said).is_err() {
                return;
            }
        }
        if sink.flush().await.is_err() {
            return;
        }
        tokio::select! {
            more = source.fill() => if !more.unwrap_or(false) { return },
            Some(word) = words.recv() => match word {
                Word::Message(message) | Word::Last(message) => sink.push(&message.to_string()),
                Word::Status(..) => panic!("lines have no status"),
                Word::End => return,
            },
        }
    }
}

/// HTTP service of the server.
struct Booth {
    role: Role,
    log: Arc<Mutex<Vec<Value>>>,
    tell: mpsc::UnboundedSender<ReceivedMessage>,
    sessions: AtomicUsize,
}

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

impl Endpoint for Booth {
    async fn handle(&self, arrival: Box<HttpRequest>) -> HttpResponse {
        if arrival.verb == Verb::DELETE {
            return HttpResponse::empty(200);
        }
        let message: Value = match arrival.verb == Verb::GET {
            true if !self.role.can_push => return HttpResponse::empty(405),
            true => json!({"method": "GET"}),
            false => serde_json::from_slice(&arrival.body).unwrap(),
        };
        if let Some(greeting) = self.role.greet(&message) {
            self.log.lock().unwrap().push(message);
            return match greeting {
                None => HttpResponse::empty(202),
                Some(greeting) if greeting.get("error").is_some() => {
                    HttpResponse::json(404, greeting.to_string())
                }
                Some(greeting) => {
                    let answer = HttpResponse::json(200, greeting.to_string());
                    let is_legacy = self.role.revision.era() == Era::Legacy;
                    if is_legacy {
                        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
                        answer.with(SESSION, &format!("s{session}"))
                    } else {
                        answer
                    }
                }
            };
        }
        let has_answer = message.get("method").is_some() && message.get("id").is_some();
        let is_stream = message["method"] == "GET";
        let (voice, mut words) = mpsc::unbounded_channel();
        let session = arrival.headers.get(SESSION).and_then(|id| id.to_str().ok());
        let connection = session.and_then(|id| id.strip_prefix('s')?.parse().ok());
        let said = ReceivedMessage {
            message,
            headers: arrival.headers,
            connection: connection.unwrap_or_default(),
            voice,
        };
        let _ = self.tell.send(said);
        if is_stream {
            return events(None, words);
        }
        if !has_answer {
            return HttpResponse::empty(202);
        }
        match words.recv().await {
            Some(Word::Last(message)) => HttpResponse::json(200, message.to_string()),
            Some(Word::Status(status, document)) => {
                HttpResponse::json(status, document.to_string())
            }
            Some(Word::Message(message)) => events(Some(message), words),
            Some(Word::End) | None => HttpResponse::empty(500),
        }
    }
}

fn event(message: &Value) -> Bytes {
    Bytes::from(format!("data: {message}\n\n"))
}

fn events(first: Option<Value>, words: mpsc::UnboundedReceiver<Word>) -> HttpResponse {
    let first = first.map(|message| event(&message));
    HttpResponse::events(unfold((first, Some(words)), |(first, words)| async move {
        if let Some(first) = first {
            return Some((first, (None, words)));
        }
        let mut words = words?;
        match words.recv().await? {
            Word::Message(message) => Some((event(&message), (None, Some(words)))),
            Word::Last(message) => Some((event(&message), (None, None))),
            Word::Status(..) | Word::End => None,
        }
    }))
}
