//! Servers removed from the configuration, and client requests for work still running there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_spec::Method;
use mcpact_transport::stdio::child::Masks;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::rewrite::{Subject, subject, with_subject};
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::sealed_state::{self, ItemNames};
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::task_ids::split_id;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};
use crate::exchange::Inbound;
use crate::suspended::resume;
use crate::sync::lock;
use crate::tasks::hosted;

/// Maximum number of removed servers to remember.
const MOST: usize = 64;

/// Removed servers by name, the latest first; their calls may still run.
#[derive(Debug, Default)]
pub(crate) struct RemovedServers(Mutex<VecDeque<(Box<str>, Weak<ServerEntry>)>>);

impl RemovedServers {
    /// Records the servers that a new configuration removed.
    pub(crate) fn note(&self, before: &ServerSet, after: &ServerSet) {
        let is_in = |server_set: &ServerSet, name: &str| {
            let mut entries = server_set.entries.iter();
            entries.any(|entry| *entry.name == *name)
        };
        let mut removed = lock(&self.0);
        removed.retain(|(name, _)| !is_in(after, name));
        for entry in &before.entries {
            if !is_in(after, &entry.name) {
                removed.push_front((entry.name.clone(), Arc::downgrade(entry)));
            }
        }
        removed.truncate(MOST);
    }

    /// Returns a removed server. The inner option is `None` if its calls have ended, too.
    fn find(&self, name: &str) -> Option<Option<Arc<ServerEntry>>> {
        let removed = lock(&self.0);
        let (_, entry) = removed.iter().find(|(removed, _)| **removed == *name)?;
        Some(entry.upgrade())
    }
}

/// Serves a request that refers to a removed server; `None` if it does not. Hosted tasks are answered by the
/// gateway. A suspended call receives the client's answers while it runs. All other work is reported as lost.
pub(crate) async fn ask_departed(
    aggregator: &Arc<Aggregator>,
    job: &BackendRequest,
    method: Method,
    guest: &DownstreamClient,
    sink: &ClientSink,
) -> Option<Result<RawResult, ServeError>> {
    let carried = sealed_state::carried_in(aggregator, guest.principal(), &job.params);
    let (server, sent) = match (&carried, subject(method, &job.params)) {
        (Some(carried), _) => {
            let sent = carried.given_to_server(method, &job.params);
            (carried.server.clone(), sent)
        }
        (None, Subject::Task(task)) => {
            let (server, inner) = split_id(&task)?;
            (server.to_owned(), with_subject(method, &job.params, inner))
        }
        (None, _) => return None,
    };
    let entry = aggregator.removed.find(&server)?;
    if let (Some(entry), Some(sent)) = (entry, sent) {
        let view = Rewriter::new(aggregator, &entry, &guest.watched);
        let sink = sink.clone().with_rewriter(Arc::new(view.clone()));
        let job = BackendRequest {
            params: sent.into(),
            ..job.clone()
        };
        let inbound = Inbound { job, sink };
        let response = match &carried {
            Some(_) => resume::resume_only(&entry.server, inbound).await,
            None if hosted::is_hosted(&entry.server, &inbound.job, &inbound.sink) => {
                Some(hosted::serve_hosted(&entry.server, &inbound).await)
            }
            None => None,
        };
        if let Some(response) = response {
            let called = || carried.map(|carried| carried.called).unwrap_or_default();
            let sealed =
                |raw| sealed_state::sealed(aggregator, &entry, guest.principal(), called, raw);
            let shown = response.map(|raw| view.result(method, sealed(raw), ItemNames::default));
            return Some(shown.map_err(|error| error.map_wire(|error| view.error(error, None))));
        }
    }
    let lost = UpstreamError {
        target: format!("`{server}`"),
        kind: UpstreamErrorKind::Stopped,
        masks: Masks::default(),
    };
    Some(Err(lost.into()))
}
