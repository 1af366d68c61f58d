//! SSE stream of a legacy session, for messages that belong to no call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody, HttpClient};
use tokio::sync::mpsc;

use super::refusal::{rejects_revision, session_unknown};
use super::resumable::{EventReader, Resume};
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
