//! Tools for testing cancellation: one to be cancelled, and one that reports whether the server noticed.
//!
//! A client cannot observe the effect of its own cancellation; the second tool makes it visible.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::{Context, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Duration of the call without cancellation.
const LONGEST: Duration = Duration::from_secs(60);
/// Time the second tool waits for a cancellation in transit.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of recorded cancellations.
const KEPT: usize = 64;

#[derive(Debug, Deserialize, JsonSchema)]
struct Call {
    /// A name for the call, chosen by the client.
    key: String,
}

/// Keys of cancelled calls, newest last.
#[derive(Clone, Debug)]
struct Cancelled(Arc<watch::Sender<VecDeque<String>>>);

impl Cancelled {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(VecDeque::new())))
    }

    fn note(&self, key: String) {
        self.0.send_modify(|kept| {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(key);
        });
    }

    async fn has(&self, key: &str) -> bool {
        let mut kept = self.0.subscribe();
        let noted = kept.wait_for(|kept| kept.iter().any(|noted| noted == key));
        matches!(timeout(PATIENCE, noted).await, Ok(Ok(_)))
    }
}

/// A running call. If it is dropped before it is done, it was cancelled.
struct Work {
    key: Option<String>,
    cancelled: Cancelled,
}

impl Work {
    fn done(mut self) {
        self.key = None;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.cancelled.note(key);
        }
    }
}

pub(crate) fn register(server: Server) -> Server {
    let cancelled = Cancelled::new();
    let seen = cancelled.clone();
    server
        .tool(
            "test_cancellation",
            "Tells that it began, then works until it is cancelled",
            move |call: Call, context: Context| {
                let work = Work {
                    key: Some(call.key),
                    cancelled: cancelled.clone(),
                };
                async move {
                    context.progress(0.0, None, Some("begun")).await?;
                    sleep(LONGEST).await;
                    work.done();
                    Ok("Not cancelled.")
                }
            },
        )
        .tool(
            "test_cancellation_seen",
            "Tells whether a call was cancelled",
            move |call: Call, _| {
                let seen = seen.clone();
                async move {
                    if seen.has(&call.key).await {
                        return Ok(format!("{} was cancelled.", call.key));
                    }
                    Err(HandlerError::failed(format!(
                        "{} was not cancelled.",
                        call.key
                    )))
                }
            },
        )
}
