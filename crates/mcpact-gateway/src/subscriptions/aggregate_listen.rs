//! Change streams (`subscriptions/listen`) of modern clients at an aggregator.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewrite::{Subject, edit};
use crate::aggregate::rewriter::{Rewriter, with_each_uri};
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::{ClientSink, MessageRewriter, WeakClientSink};
use crate::error::ServeError;
use crate::handover::subscriptions;
use crate::pipeline;
use crate::subscriptions::list_changes::{self, ListListener};
use crate::subscriptions::listen::final_result;
use crate::subscriptions::reopen::{ReopenDelay, listen_params, possible_changes};
use crate::subscriptions::watched_uris::{SubscribedUri, public_uri};
use crate::sync::lock;
use crate::tasks::aggregate_tasks;
use crate::upstream::saved_client::without_progress;

/// Maximum wait for the acknowledgements of the servers.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// Resources and tasks of one server that a client listens to.
#[derive(Clone, Debug, Default)]
struct ListenTargets {
    uris: Vec<SubscribedUri>,
    tasks: Vec<SubscribedUri>,
}

impl ListenTargets {
    /// Returns the filter for the server.
    fn inner(&self) -> ListenFilter {
        let distinct = |all: &[SubscribedUri]| {
            let inner: BTreeSet<&Box<str>> = all.iter().map(|target| &target.inner).collect();
            inner.into_iter().cloned().collect()
        };
        ListenFilter {
            uris: distinct(&self.uris),
            tasks: distinct(&self.tasks),
            ..ListenFilter::default()
        }
    }

    /// Returns a filter of the server as the client knows it.
    fn outer(&self, accepted: &ListenFilter) -> ListenFilter {
        let outer = |targets: &[SubscribedUri], accepted: &[Box<str>]| {
            let targets = targets.iter();
            let accepted = targets.filter(|target| accepted.contains(&target.inner));
            accepted.map(|target| target.outer.clone()).collect()
        };
        ListenFilter {
            uris: outer(&self.uris, &accepted.uris),
            tasks: outer(&self.tasks, &accepted.tasks),
            ..ListenFilter::default()
        }
    }
}

/// Receiver of the first acknowledgement of a server, until that arrives.
type FirstAcknowledgement = Arc<Mutex<Option<mpsc::UnboundedSender<ListenFilter>>>>;

/// Rewriter of the stream of one server.
#[derive(Debug)]
struct ListenRewriter {
    rewriter: Rewriter,
    targets: ListenTargets,
    first: FirstAcknowledgement,
    /// Stream of the client.
    sink: WeakClientSink,
    scope: Scope,
}

impl ListenRewriter {
    /// Processes an acknowledgement. The first one becomes part of that of the client; after a later one the client is
    /// notified of everything that may have changed.
    fn acknowledged(&self, accepted: &ListenFilter) {
        let accepted = self.targets.outer(accepted);
        if let Some(first) = lock(&self.first).take() {
            // The client may have been sent its acknowledgement without this server.
            let _ = first.send(accepted);
        } else if let Some(sink) = self.sink.upgrade() {
            for (method, params) in possible_changes(&accepted) {
                sink.try_notify(&self.scope, method, &params);
            }
        }
    }
}

impl MessageRewriter for ListenRewriter {
    fn notifications<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        if method == Method::SubscriptionsAcknowledged {
            self.acknowledged(&ListenFilter::parse(Some(params)).unwrap_or_default());
            return SmallVec::new();
        }
        if method == Method::ResourcesUpdated {
            let targets = self.targets.uris.iter();
            let updates = with_each_uri(params, |uri| {
                targets
                    .filter_map(|target| public_uri(&target.outer, &target.inner, uri))
                    .collect()
            });
            if !updates.is_empty() {
                return updates;
            }
        }
        self.rewriter.notifications(method, params)
    }

    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str> {
        self.rewriter.question(method, params)
    }
}

/// Stream of one server, as part of the stream of a client.
struct ServerStream<'a> {
    aggregator: &'a Arc<Aggregator>,
    job: &'a BackendRequest,
    client: &'a Arc<DownstreamClient>,
    sink: &'a ClientSink,
    entry: Arc<ServerEntry>,
    targets: ListenTargets,
    first: FirstAcknowledgement,
}

/// Serves `subscriptions/listen` until the client disconnects or the aggregator ends.
pub(crate) async fn listen(
    aggregator: &Arc<Aggregator>,
    job: BackendRequest,
    client: &Arc<DownstreamClient>,
    sink: ClientSink,
) -> Result<RawResult, ServeError> {
    let wanted = ListenFilter::parse(Some(&job.params)).unwrap_or_default();
    let mut filter = wanted.granted(&job.pact);
    let servers = targets(aggregator, client, &filter, &job).await;
    let (first, mut acknowledged) = mpsc::unbounded_channel();
    let mut streams: FuturesUnordered<_> = servers
        .into_values()
        .map(|(entry, targets)| {
            let stream = ServerStream {
                aggregator,
                job: &job,
                client,
                sink: &sink,
                entry,
                targets,
                first: Arc::new(Mutex::new(Some(first.clone()))),
            };
            stream.run()
        })
        .collect();
    drop(first);
    let accepted = first_acknowledgements(&mut streams, &mut acknowledged).await;
    drop(acknowledged);
    filter.uris.retain(|uri| accepted.uris.contains(uri));
    filter.tasks.retain(|task| accepted.tasks.contains(task));
    let listener = ListListener {
        client: Arc::clone(client),
        sink: sink.clone(),
        id: job.id.clone(),
        filter: filter.clone(),
    };
    let _listening = list_changes::listen_to_lists(aggregator, listener);
    let scope = Scope::Request(job.id.clone());
    let method = Method::SubscriptionsAcknowledged;
    sink.notify(&scope, method, &listen_params(&filter)).await;
    let streaming = async {
        // The stream of the client outlives those of the servers.
        while streams.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = streaming => {}
        () = aggregator.changes.closed() => {}
    }
    Ok(final_result(job.id.raw()).into())
}

/// Returns the resources and tasks of a filter by number of the server. Those of no server, or of several, are left out.
async fn targets(
    aggregator: &Arc<Aggregator>,
    client: &Arc<DownstreamClient>,
    filter: &ListenFilter,
    job: &BackendRequest,
) -> BTreeMap<u64, (Arc<ServerEntry>, ListenTargets)> {
    let revision = job.pact.revision();
    let mut servers = BTreeMap::new();
    let new = |entry| (entry, ListenTargets::default());
    for outer in &filter.uris {
        let uri = Subject::Uri((&**outer).into());
        if let Some(Ok((entry, inner))) = aggregator.find(client, &uri, revision).await {
            let outer = outer.clone();
            let server = servers.entry(entry.number).or_insert_with(|| new(entry));
            server.1.uris.push(SubscribedUri { outer, inner });
        }
    }
    for outer in &filter.tasks {
        if let Ok((entry, inner)) = aggregate_tasks::by_task(aggregator, outer, revision) {
            let outer = outer.clone();
            let server = servers.entry(entry.number).or_insert_with(|| new(entry));
            server.1.tasks.push(SubscribedUri { outer, inner });
        }
    }
    servers
}

impl ServerStream<'_> {
    /// Keeps the stream open while the client listens: the server may end it, stop, restart or be replaced.
    async fn run(mut self) {
        let mut delay = ReopenDelay::new();
        loop {
            delay.reopen();
            let (aggregator, entry) = (self.aggregator, Arc::clone(&self.entry));
            tokio::select! {
                _ = self.stream() => {}
                () = subscriptions::departed(aggregator, &entry) => {}
            }
            let is_present = subscriptions::numbered(aggregator, entry.number).is_some();
            let has_server = is_present || subscriptions::named(aggregator, &entry.name).is_some();
            // The client does not expect changes of a server that never acknowledged, unless that was just replaced.
            let is_acknowledged = lock(&self.first).is_none();
            if !is_acknowledged && (is_present || !has_server) {
                return;
            }
            if is_present {
                tokio::select! {
                    () = tokio::time::sleep(delay.next()) => {}
                    () = subscriptions::departed(aggregator, &entry) => {}
                }
            } else {
                delay.reset();
            }
            self.entry = subscriptions::arrived(aggregator, &entry.name).await;
        }
    }

    /// Streams until the server ends the stream, or it is lost.
    async fn stream(&self) -> Result<RawResult, ServeError> {
        let binding = self.client.binding_for(self.aggregator, &self.entry);
        let binding = binding.await?;
        let filter = self.targets.inner();
        let params = edit(&self.job.params, "notifications", |_| Some(filter.encode()))
            .unwrap_or_else(|| listen_params(&filter));
        let job = BackendRequest {
            params: params.into(),
            ..without_progress(self.job)
        };
        let rewriter = ListenRewriter {
            rewriter: Rewriter::new(self.aggregator, &self.entry, &self.client.watched),
            targets: self.targets.clone(),
            first: Arc::clone(&self.first),
            sink: self.sink.downgrade(),
            scope: Scope::Request(self.job.id.clone()),
        };
        let sink = self.sink.clone().with_rewriter(Arc::new(rewriter));
        pipeline::forward_to(&self.entry.server, binding, job, sink).await
    }
}

/// Waits for the first acknowledgement of each server; returns those that arrived in time.
async fn first_acknowledgements<F: Future>(
    streams: &mut FuturesUnordered<F>,
    acknowledged: &mut mpsc::UnboundedReceiver<ListenFilter>,
) -> ListenFilter {
    let mut accepted = ListenFilter::default();
    let mut open = streams.len();
    let timeout = tokio::time::sleep(ACKNOWLEDGEMENT);
    tokio::pin!(timeout);
    while open > 0 {
        tokio::select! {
            () = &mut timeout => break,
            Some(first) = acknowledged.recv() => {
                accepted.uris.extend(first.uris);
                accepted.tasks.extend(first.tasks);
            }
            Some(_) = streams.next() => {}
        }
        open -= 1;
    }
    accepted
}
