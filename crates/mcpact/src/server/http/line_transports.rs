//! WebSockets, and the HTTP+SSE transport of 2024-11-05: an event stream, and a second endpoint for messages.
//!
//! Both present a session as a line-based connection, so that the protocol is implemented once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use mcpact_transport::link::{LineSink, LineSource, WriteProgress};
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::Mutex as AsyncMutex;

use super::random_id;
use crate::server::backend::{Backend, Principal};
use crate::server::connection::{self, SessionSwitches};
use crate::server::line_usage::{LineUsage, longest_idle};
use crate::server::sse_replay_log::sse_event;
use crate::{lock, log};

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 1000;

/// Bytes of an event that are sent at once, so that the progress of a slow client is seen.
const PIECE: usize = 64 * 1024;

/// Sender to a session, with its principal.
#[derive(Clone, Debug)]
struct SseSession {
    sink: Arc<AsyncMutex<LineSink>>,
    principal: Principal,
    usage: Arc<LineUsage>,
}

#[derive(Debug, Default)]
pub(super) struct SseSessions {
    sessions: Arc<Mutex<HashMap<String, SseSession>>>,
    pub(super) switches: SessionSwitches,
}

/// Event stream of a session; the session ends with it.
struct SseStream {
    source: LineSource,
    progress: WriteProgress,
    /// Rest of the current event.
    next: Bytes,
    id: String,
    sessions: Arc<Mutex<HashMap<String, SseSession>>>,
}

impl Drop for SseStream {
    fn drop(&mut self) {
        lock(&self.sessions).remove(&self.id);
    }
}

impl SseSessions {
    /// Returns the number of sessions.
    pub(super) fn len(&self) -> usize {
        lock(&self.sessions).len()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        lock(&self.sessions).contains_key(id)
    }

    /// Makes room for a session; `false` if all have a request in flight.
    fn has_room(&self) -> bool {
        let mut sessions = lock(&self.sessions);
        if sessions.len() < MAX_SESSIONS {
            return true;
        }
        let idle = longest_idle(sessions.iter().map(|(id, session)| (id, &session.usage)));
        let idle = idle.cloned().and_then(|id| sessions.remove(&id));
        idle.map(|session| session.usage.evict()).is_some()
    }

    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Principal) -> HttpResponse {
        let Some(id) = random_id().filter(|_| self.has_room()) else {
            return HttpResponse::text(503, "too many sessions");
        };
        let (ours, theirs) = memory::pair();
        let progress = theirs.sink.progress();
        let backend = Arc::clone(backend);
        let client = principal.clone();
        let usage = Arc::<LineUsage>::default();
        let session_end = self.switches.session_end(connection::DISCONNECT_GRACE);
        let session_end = session_end.with_usage(&usage);
        let start = backend.settings().session_start;
        let (session_usage, sessions, ended) =
            (Arc::clone(&usage), Arc::clone(&self.sessions), id.clone());
        tokio::spawn(async move {
            tokio::select! {
                served = connection::run(backend, theirs, client, "http+sse", session_end) => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "connection ended");
                    }
                }
                () = session_usage.over(start) => tracing::info!(event = log::event::IDLE_REAP, "idle HTTP+SSE session closed"),
            }
            // The response of a client that does not read lasts longer.
            lock(&sessions).remove(&ended);
        });
        let sink = Arc::new(AsyncMutex::new(ours.sink));
        lock(&self.sessions).insert(
            id.clone(),
            SseSession {
                sink,
                principal,
                usage,
            },
        );
        let mut endpoint = Vec::new();
        let endpoint_url = format!("/messages?sessionId={id}");
        let parts = EventParts {
            name: Some("endpoint"),
            data: Some(&endpoint_url),
            ..EventParts::default()
        };
        if write_event(&mut endpoint, &parts).is_err() {
            return HttpResponse::empty(500);
        }
        let stream = SseStream {
            source: ours.source,
            progress,
            next: endpoint.into(),
            id,
            sessions: Arc::clone(&self.sessions),
        };
        HttpResponse::events(unfold(stream, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((bytes, stream))
        }))
    }

    pub(super) async fn post(
        &self,
        http_request: &HttpRequest,
        principal: &Principal,
    ) -> HttpResponse {
        let id = http_request.query.as_deref().and_then(|query| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix("sessionId="))
        });
        let found = id.and_then(|id| lock(&self.sessions).get(id).cloned());
        let Some(session) = found.filter(|session| session.principal == *principal) else {
            return HttpResponse::text(404, "no such session");
        };
        let Ok(text) = std::str::from_utf8(&http_request.body) else {
            return HttpResponse::text(400, "the body is not UTF-8");
        };
        let mut sink = session.sink.lock().await;
        // Between JSON tokens a line feed equals a space; inside of tokens it cannot occur.
        sink.push(&text.replace(['\n', '\r'], " "));
        match sink.flush().await {
            Ok(()) => HttpResponse::text(202, "Accepted"),
            Err(_) => HttpResponse::text(404, "no such session"),
        }
    }
}

impl SseStream {
    async fn next(&mut self) -> Option<Bytes> {
        while self.next.is_empty() {
            if let Some(line) = self.source.next_line() {
                match line {
                    Line::Json(bytes) => {
                        let text = std::str::from_utf8(bytes).unwrap_or_default();
                        self.next = sse_event(None, text, None);
                    }
                    // The client would wait for it.
                    Line::TooLong { .. } => {
                        let is_short = self.source.was_short_of_memory();
                        tracing::warn!(
                            is_short_of_memory = is_short,
                            "event stream closed: a message was lost"
                        );
                        return None;
                    }
                    Line::Noise(_) => {}
                }
            } else if !self.source.fill().await.ok()? {
                return None;
            }
        }
        let piece = self.next.split_to(self.next.len().min(PIECE));
        self.progress.add(piece.len());
        Some(piece)
    }
}

/// Maximum number of open sockets.
const MAX_SOCKETS: usize = 1000;

/// Time for the error responses of a socket that is closed by the server.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Open WebSockets by number.
#[derive(Debug, Default)]
struct OpenSockets {
    all: HashMap<u64, Arc<LineUsage>>,
    last: u64,
}

#[derive(Debug, Default)]
pub(super) struct WebSockets {
    open: Arc<Mutex<OpenSockets>>,
    pub(super) switches: SessionSwitches,
}

/// An open WebSocket; it is counted until this is dropped.
struct OpenSocket {
    number: u64,
    usage: Arc<LineUsage>,
    open: Arc<Mutex<OpenSockets>>,
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        lock(&self.open).all.remove(&self.number);
    }
}

impl WebSockets {
    /// Counts a socket, for which an idle one makes room. None if all have a request in flight.
    fn admit(&self) -> Option<OpenSocket> {
        let mut open = lock(&self.open);
        if open.all.len() >= MAX_SOCKETS {
            let idle = longest_idle(open.all.iter().map(|(number, usage)| (*number, usage)))?;
            open.all.remove(&idle)?.evict();
        }
        open.last += 1;
        let (number, usage) = (open.last, Arc::<LineUsage>::default());
        open.all.insert(number, Arc::clone(&usage));
        Some(OpenSocket {
            number,
            usage,
            open: Arc::clone(&self.open),
        })
    }

    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Principal) -> HttpResponse {
        let Some(socket) = self.admit() else {
            return HttpResponse::text(503, "too many sockets");
        };
        let backend = Arc::clone(backend);
        let session_end = self.switches.session_end(connection::DISCONNECT_GRACE);
        let session_end = session_end.with_usage(&socket.usage);
        let start = backend.settings().session_start;
        HttpResponse::socket(move |link, usage| {
            socket.usage.report_to(usage);
            tokio::spawn(async move {
                let stop_requested = session_end.clone().stop_requested();
                let stopped = async {
                    stop_requested.await;
                    tokio::time::sleep(CLOSE_TIMEOUT).await;
                };
                tokio::select! {
                    served = connection::run(backend, link, principal, "websocket", session_end) => {
                        if let Err(error) = served {
                            tracing::debug!(%error, "connection ended");
                        }
                    }
                    () = stopped => {}
                    () = socket.usage.over(start) => tracing::info!(event = log::event::IDLE_REAP, "idle WebSocket closed"),
                }
            });
        })
    }

    /// Returns the number of open sockets.
    pub(super) fn len(&self) -> usize {
        lock(&self.open).all.len()
    }
}
