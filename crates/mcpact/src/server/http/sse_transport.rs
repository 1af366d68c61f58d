//! The HTTP+SSE transport of 2024-11-05: a stream to listen on, and another address to speak to.
//!
//! Behind it stands an ordinary connection of lines, so that nothing of the protocol is written
//! twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream::unfold;
use mcpact_transport::http::server::{Answer, Arrival};
use mcpact_transport::link::{LineSink, LineSource};
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::random_id;
use crate::server::backend::Backend;
use crate::server::ending::Ending;
use crate::server::event_log::frame as event;
use crate::server::lines;

/// How many such connections may live at a time.
const LIMIT: usize = 1000;

/// Where the messages of a session go, and whose it is.
#[derive(Clone, Debug)]
struct Mailbox {
    sink: Arc<AsyncMutex<LineSink>>,
    principal: Arc<str>,
}

#[derive(Debug, Default)]
pub(super) struct SseSessions {
    mailboxes: Arc<Mutex<HashMap<String, Mailbox>>>,
    resting: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

/// The listening half; the session ends with it.
struct Listening {
    source: LineSource,
    first: Option<Bytes>,
    id: String,
    mailboxes: Arc<Mutex<HashMap<String, Mailbox>>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.mailboxes).remove(&self.id);
    }
}

fn lock(mailboxes: &Mutex<HashMap<String, Mailbox>>) -> MutexGuard<'_, HashMap<String, Mailbox>> {
    mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SseSessions {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        lock(&self.mailboxes).len()
    }

    /// Ends every session in which nobody waits for an answer, as soon as that is so.
    pub(super) fn rest(&self) {
        self.resting.send_replace(true);
    }

    /// Ends every session.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> Answer {
        let Some(id) = random_id().filter(|_| lock(&self.mailboxes).len() < LIMIT) else {
            return Answer::text(503, "too many sessions");
        };
        let (ours, theirs) = memory::pair();
        let backend = Arc::clone(backend);
        let client = Arc::clone(&principal);
        let ending = Ending::new(lines::LEFT, self.stopping.subscribe());
        let ending = ending.or_at_rest(self.resting.subscribe());
        tokio::spawn(async move {
            if let Err(error) = lines::run(backend, theirs, client, "http+sse", ending).await {
                tracing::debug!(%error, "connection ended");
            }
        });
        let sink = Arc::new(AsyncMutex::new(ours.sink));
        lock(&self.mailboxes).insert(id.clone(), Mailbox { sink, principal });
        let mut endpoint = Vec::new();
        let address = format!("/messages?sessionId={id}");
        let parts = EventParts {
            name: Some("endpoint"),
            data: Some(&address),
            ..EventParts::default()
        };
        if write_event(&mut endpoint, &parts).is_err() {
            return Answer::empty(500);
        }
        let listening = Listening {
            source: ours.source,
            first: Some(endpoint.into()),
            id,
            mailboxes: Arc::clone(&self.mailboxes),
        };
        Answer::events(unfold(listening, |mut listening| async move {
            let bytes = listening.next().await?;
            Some((bytes, listening))
        }))
    }

    pub(super) async fn post(&self, arrival: &Arrival, principal: &str) -> Answer {
        let id = arrival.query.as_deref().and_then(|query| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix("sessionId="))
        });
        let found = id.and_then(|id| lock(&self.mailboxes).get(id).cloned());
        let Some(mailbox) = found.filter(|mailbox| *mailbox.principal == *principal) else {
            return Answer::text(404, "no such session");
        };
        let Ok(text) = std::str::from_utf8(&arrival.body) else {
            return Answer::text(400, "the body is not UTF-8");
        };
        let mut sink = mailbox.sink.lock().await;
        // Between the tokens of JSON a line feed is a space; inside of them there is none.
        sink.push(&text.replace(['\n', '\r'], " "));
        match sink.flush().await {
            Ok(()) => Answer::text(202, "Accepted"),
            Err(_) => Answer::text(404, "no such session"),
        }
    }
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            while let Some(line) = self.source.next_line() {
                if let Line::Json(bytes) = line {
                    let text = std::str::from_utf8(bytes).unwrap_or_default();
                    return Some(event(None, text, None));
                }
            }
            if !self.source.fill().await.ok()? {
                return None;
            }
        }
    }
}
