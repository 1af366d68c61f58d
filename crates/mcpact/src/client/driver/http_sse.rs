//! HTTP+SSE, the transport of 2024-11-05.

use std::time::Duration;

use bytes::Bytes;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::HttpClient;
use mcpact_transport::http_sse::client::{SseConnection, SseSender};
use tokio::sync::mpsc;

use super::heed;
use crate::client::client_error::ClientError;
use crate::client::core::{Core, Deeds, Next};

/// Timeout for the start of the stream.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum number of messages queued for posting.
const QUEUE: usize = 1024;

pub(super) async fn run(mut core: Core, http: &HttpClient) {
    match SseConnection::open(http, PATIENCE).await {
        Ok(connection) => converse(&mut core, connection).await,
        Err(source) => {
            let target = core.shared.target.clone();
            core.fail(ClientError::Unreachable {
                target,
                stderr: String::new(),
                source,
            });
        }
    }
    core.finish();
}

async fn converse(core: &mut Core, connection: SseConnection) {
    let SseConnection { mut events, sender } = connection;
    let (queue, queued) = mpsc::channel(QUEUE);
    let (failed, mut failure) = mpsc::channel(1);
    let poster = tokio::spawn(post_in_order(sender, queued, failed)).abort_handle();
    let mut deeds = core.connected();
    loop {
        if deeds.concluded.is_some() {
            deeds.add(core.open());
        }
        let next = deeds.next;
        let is_full = deeds
            .writes
            .into_iter()
            .any(|text| queue.try_send(text).is_err());
        if is_full || next != Next::GoOn {
            break;
        }
        deeds = tokio::select! {
            woken = core.woken() => heed(core, woken),
            Some(error) = failure.recv() => {
                tracing::warn!(%error, "cannot post a message");
                break;
            }
            event = events.next() => match event {
                Some(Ok(event)) if matches!(event.name.as_deref(), None | Some("message")) => {
                    core.receive(event.data.as_bytes(), None)
                }
                Some(Ok(_)) => Deeds::default(),
                Some(Err(error)) => {
                    tracing::debug!(%error, "event lost");
                    Deeds::default()
                }
                None => break,
            },
        };
    }
    poster.abort();
    let _ = core.closed();
}

/// Posts messages one after the other, in the order in which they were written.
async fn post_in_order(
    sender: SseSender,
    mut queued: mpsc::Receiver<String>,
    failed: mpsc::Sender<TransportError>,
) {
    while let Some(text) = queued.recv().await {
        let error = match sender.post(Bytes::from(text)).await {
            Ok(answer) if answer.status < 300 => continue,
            Ok(answer) => TransportError::Http(format!("status {}", answer.status)),
            Err(error) => error,
        };
        // The driver may have ended.
        let _ = failed.send(error).await;
        return;
    }
}
