//! WebSockets, and the HTTP+SSE transport of 2024-11-05: an event stream, and a second endpoint for messages.
//!
//! Both present a session as a line-based connection, so that the protocol is implemented once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use mcpact_transport::link::{LineSink, LineSource};
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::random_id;
use crate::lock;
use crate::server::backend::Backend;
use crate::server::connection::{self, SessionSwitches};
use crate::server::sse_replay_log::sse_event;

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 1000;

/// Sender to a session, with its principal.
#[derive(Clone, Debug)]
struct SseSession {
    sink: Arc<AsyncMutex<LineSink>>,
    principal: Arc<str>,
}

#[derive(Debug, Default)]
pub(super) struct SseSessions {
    sessions: Arc<Mutex<HashMap<String, SseSession>>>,
    pub(super) switches: SessionSwitches,
}

/// Event stream of a session; the session ends with it.
struct SseStream {
    source: LineSource,
    first: Option<Bytes>,
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

    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> HttpResponse {
        let Some(id) = random_id().filter(|_| lock(&self.sessions).len() < MAX_SESSIONS) else {
            return HttpResponse::text(503, "too many sessions");
        };
        let (ours, theirs) = memory::pair();
        let backend = Arc::clone(backend);
        let client = Arc::clone(&principal);
        let session_end = self.switches.session_end(connection::DISCONNECT_GRACE);
        tokio::spawn(async move {
            if let Err(error) =
                connection::run(backend, theirs, client, "http+sse", session_end).await
            {
                tracing::debug!(%error, "connection ended");
            }
        });
        let sink = Arc::new(AsyncMutex::new(ours.sink));
        lock(&self.sessions).insert(id.clone(), SseSession { sink, principal });
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
            first: Some(endpoint.into()),
            id,
            sessions: Arc::clone(&self.sessions),
        };
        HttpResponse::events(unfold(stream, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((bytes, stream))
        }))
    }

    pub(super) async fn post(&self, http_request: &HttpRequest, principal: &str) -> HttpResponse {
        let id = http_request.query.as_deref().and_then(|query| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix("sessionId="))
        });
        let found = id.and_then(|id| lock(&self.sessions).get(id).cloned());
        let Some(session) = found.filter(|session| *session.principal == *principal) else {
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
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            while let Some(line) = self.source.next_line() {
                if let Line::Json(bytes) = line {
                    let text = std::str::from_utf8(bytes).unwrap_or_default();
                    return Some(sse_event(None, text, None));
                }
            }
            if !self.source.fill().await.ok()? {
                return None;
            }
        }
    }
}

/// Maximum number of open sockets.
const MAX_SOCKETS: usize = 1000;

/// Time for the error responses of a socket that is closed by the server.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct WebSockets {
    permits: Arc<Semaphore>,
    pub(super) switches: SessionSwitches,
}

impl Default for WebSockets {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_SOCKETS)),
            switches: SessionSwitches::default(),
        }
    }
}

impl WebSockets {
    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> HttpResponse {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return HttpResponse::text(503, "too many sockets");
        };
        let backend = Arc::clone(backend);
        let session_end = self.switches.session_end(connection::DISCONNECT_GRACE);
        HttpResponse::socket(move |link| {
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
                }
                drop(permit);
            });
        })
    }

    /// Returns the number of open sockets.
    pub(super) fn len(&self) -> usize {
        MAX_SOCKETS - self.permits.available_permits()
    }
}
