//! Where a legacy server on HTTP hears what it asked.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_transport::http::client::HttpClient;
use tokio::task::JoinHandle;

use crate::upstream::ask::{self, Ask};

/// The way back to a server that asks.
#[derive(Debug)]
pub(in crate::upstream) struct WayBack {
    pub(super) http: HttpClient,
    pub(super) facts: Arc<HeaderMap>,
}

impl WayBack {
    /// Posts an answer, whoever waits for that; not where nobody could.
    pub(in crate::upstream) fn post(&self, text: String) -> Option<JoinHandle<()>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (http, facts) = (self.http.clone(), Arc::clone(&self.facts));
        Some(runtime.spawn(async move { post(&http, &facts, text).await }))
    }

    /// The question, to be answered there.
    pub(super) fn of(self, ask: Ask) -> Ask {
        ask.due(ask::WayBack::Http(self))
    }
}

/// Posts what has no answer.
pub(super) async fn post(http: &HttpClient, facts: &HeaderMap, text: String) {
    match http.post(facts, Bytes::from(text)).await {
        Ok(answer) if answer.status < 300 => {}
        Ok(answer) => tracing::warn!(status = answer.status, "message rejected by the server"),
        Err(error) => tracing::warn!(%error, "failed to send message"),
    }
}
