//! SSE stream of a legacy session, for messages that belong to no call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody, EventStream, HttpClient};
use tokio::sync::mpsc;

use super::refusal::{rejects_revision, session_unknown};
use super::{HttpReplyPath, MAX_ATTEMPTS};
use crate::connection::inbox::{Incoming, Unsolicited, parse};
use crate::connection::{CallObserver, DropReason, MessageHandler};

/// Destination of messages that belong to no call.
pub(super) struct UnsolicitedSink {
    pub(super) unsolicited: mpsc::Sender<Unsolicited>,
    pub(super) handler: Option<Arc<dyn MessageHandler>>,
    pub(super) observer: Arc<dyn CallObserver>,
}

/// Reads the stream until the session ends, resuming it after interruptions.
pub(super) async fn listen(
    http: HttpClient,
    headers: Arc<HeaderMap>,
    sink: UnsolicitedSink,
    open: tokio::sync::oneshot::Sender<bool>,
    is_gone: Arc<AtomicBool>,
) {
    let mut open = Some(open);
    let mut was_there = false;
    let mut resume = Resume::default();
    while resume.attempt <= MAX_ATTEMPTS {
        let opened = http.listen(&headers, resume.last_id.as_deref()).await;
        if let Some(open) = open.take() {
            // The connection may not wait any longer.
            let is_there = matches!(&opened, Ok(answer) if matches!(answer.body, ClientResponseBody::Events(_)));
            let _ = open.send(is_there);
        }
        match opened {
            Ok(ClientResponse {
                body: ClientResponseBody::Events(events),
                ..
            }) => {
                was_there = true;
                let mut reader = EventReader { events, resume };
                while let Some(read) = reader.next().await {
                    let Ok(bytes) = read else {
                        sink.observer.dropped(DropReason::TooLong);
                        continue;
                    };
                    let message = match parse(&bytes, sink.handler.as_deref()) {
                        Incoming::Notification(notification) => {
                            sink.observer.notification(&notification);
                            Unsolicited::Notification(notification)
                        }
                        Incoming::Request(request) => {
                            let request = HttpReplyPath::set(&http, &headers, request);
                            if let Some(handler) = &sink.handler {
                                handler.request(request);
                                continue;
                            }
                            Unsolicited::Request(request)
                        }
                        Incoming::Handled => continue,
                        Incoming::Response(..) => {
                            sink.observer.dropped(DropReason::LateAnswer);
                            continue;
                        }
                        Incoming::Invalid(why) => {
                            sink.observer.dropped(why);
                            continue;
                        }
                    };
                    if sink.unsolicited.send(message).await.is_err() {
                        return;
                    }
                }
                resume = reader.resume;
            }
            // 405 means that the server offers no such stream.
            Ok(answer) => {
                let status = answer.status;
                let is_another = status == 405 || rejects_revision(&answer);
                if was_there && (is_another || session_unknown(&answer)) {
                    is_gone.store(true, Ordering::Relaxed);
                }
                return tracing::debug!(status, "server offers no SSE stream");
            }
            Err(error) => tracing::debug!(%error, "failed to open the SSE stream"),
        }
        resume.attempt += 1;
        tokio::time::sleep(resume.pause()).await;
    }
    tracing::warn!("SSE stream lost; retries exhausted");
    // Listeners need a new session.
    is_gone.store(true, Ordering::Relaxed);
}

/// Pause before a broken stream is resumed, unless the server sends `retry`.
pub(super) const DEFAULT_PAUSE: Duration = Duration::from_millis(500);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A message that exceeds this number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong(pub(super) usize);

/// State for resuming a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    pub(super) last_id: Option<String>,
    retry: Option<Duration>,
    pub(super) attempt: u32,
}

/// An open stream.
pub(super) struct EventReader {
    pub(super) events: Box<EventStream>,
    pub(super) resume: Resume,
}

impl Resume {
    /// Returns the pause before the next attempt: `retry`, doubled with every failure in a row.
    pub(super) fn pause(&self) -> Duration {
        let first = self.retry.unwrap_or(DEFAULT_PAUSE);
        let factor = 1 << self.attempt.saturating_sub(1).min(5);
        (first * factor).min(MAX_PAUSE)
    }
}

impl EventReader {
    /// Returns the next message, or none at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        while let Some(event) = self.events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(TransportError::TooLarge { limit }) => return Some(Err(TooLong(limit))),
                Err(error) => {
                    tracing::debug!(%error, "invalid SSE event dropped");
                    continue;
                }
            };
            if let Some(id) = event.id {
                self.resume.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                self.resume.retry = Some(Duration::from_millis(retry).min(MAX_PAUSE));
            }
            let is_message = matches!(event.name.as_deref(), None | Some("message"));
            if is_message && !event.data.is_empty() {
                self.resume.attempt = 0;
                return Some(Ok(Bytes::from(event.data)));
            }
        }
        None
    }
}
