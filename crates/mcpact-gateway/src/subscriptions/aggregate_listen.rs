//! A modern client that listens to several servers at once.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_wire::raw::ObjectWriter;
use smallvec::SmallVec;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewrite::{Subject, edit};
use crate::aggregate::rewriter::{Rewriter, under_each};
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::{ClientSink, MessageRewriter};
use crate::error::ServeError;
use crate::handover::subscriptions;
use crate::handover::subscriptions::PAUSES;
use crate::pipeline;
use crate::subscriptions::list_changes;
use crate::subscriptions::listen::{final_result, uri_params};
use crate::subscriptions::watched_uris::SubscribedUri;
use crate::tasks::aggregate_tasks;
use crate::upstream::saved_client::without_progress;

/// How long servers may take to agree to be listened to.
const AGREEMENT: Duration = Duration::from_secs(2);

/// A part of a stream: what the server agrees to goes to the aggregator, and the rest to the client.
#[derive(Debug)]
struct ListenRewriter {
    part: Rewriter,
    wanted: ListenTargets,
    agreed: mpsc::UnboundedSender<Agreed>,
}

/// What servers have agreed to, as the client knows it.
#[derive(Debug, Default)]
struct Agreed {
    uris: Vec<Box<str>>,
    tasks: Vec<Box<str>>,
}

impl MessageRewriter for ListenRewriter {
    fn notifications<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]> {
        if method == Method::SubscriptionsAcknowledged {
            let filter = ListenFilter::parse(Some(params)).unwrap_or_default();
            let agreed = |wanted: &[SubscribedUri], to: &[Box<str>]| {
                let agreed = wanted.iter().filter(|shared| to.contains(&shared.inner));
                agreed.map(|shared| shared.outer.clone()).collect()
            };
            // Whoever listened may have gone.
            let _ = self.agreed.send(Agreed {
                uris: agreed(&self.wanted.uris, &filter.uris),
                tasks: agreed(&self.wanted.tasks, &filter.tasks),
            });
            return SmallVec::new();
        }
        if method == Method::ResourcesUpdated {
            let told = under_each(params, |uri| self.updated(uri));
            if !told.is_empty() {
                return told;
            }
        }
        self.part.notifications(method, params)
    }

    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str> {
        self.part.question(method, params)
    }
}

impl ListenRewriter {
    /// The addresses of a resource that has changed, as the client asked for it.
    fn updated(&self, uri: &str) -> BTreeSet<String> {
        let wanted = self.wanted.uris.iter();
        wanted.filter_map(|shared| shared.told(uri)).collect()
    }
}

/// What is made of the agreement of one server, each time that it is listened to.
struct Agreement<'a> {
    /// Where the first one is waited for.
    first: Option<mpsc::UnboundedSender<Agreed>>,
    sink: &'a ClientSink,
    job: &'a BackendRequest,
}

impl Agreement<'_> {
    fn is_reached(&self) -> bool {
        self.first.is_none()
    }

    /// The first is part of what the client is told at the beginning; later on, what may have changed while nobody
    /// listened is told as soon as somebody does.
    fn reach(&mut self, agreed: Agreed) {
        if let Some(first) = self.first.take() {
            // A stream that has been acknowledged without this one goes on without it.
            let _ = first.send(agreed);
            return;
        }
        for uri in &agreed.uris {
            let scope = Scope::Request(self.job.id.clone());
            let method = Method::ResourcesUpdated;
            self.sink.try_notify(&scope, method, &uri_params(uri));
        }
    }
}

/// The things of one server that a client wants to hear of.
struct ServerTargets {
    entry: Arc<ServerEntry>,
    wanted: ListenTargets,
}

/// Addresses and tasks.
#[derive(Clone, Debug, Default)]
struct ListenTargets {
    uris: Vec<SubscribedUri>,
    tasks: Vec<SubscribedUri>,
}

/// Serves `subscriptions/listen` until the client goes away or the aggregator ends.
pub(crate) async fn listen(
    aggregator: &Arc<Aggregator>,
    job: BackendRequest,
    guest: &Arc<DownstreamClient>,
    sink: ClientSink,
) -> Result<ByteString, ServeError> {
    let params = &job.params;
    let wanted = ListenFilter::parse(Some(params)).unwrap_or_default();
    let mut filter = wanted.granted(&job.pact);
    let client = job.pact.revision();
    let mut shares = Vec::new();
    // What nobody has, and what several have, is left out of the agreement.
    for outer in &filter.uris {
        let uri = Subject::Uri((&**outer).into());
        if let Some(Ok((entry, inner))) = aggregator.find(guest, &uri, client).await {
            let outer = outer.clone();
            let shared = SubscribedUri { outer, inner };
            share_of(&mut shares, entry).uris.push(shared);
        }
    }
    for outer in &filter.tasks {
        if let Ok((entry, inner)) = aggregate_tasks::by_task(aggregator, outer, client) {
            let outer = outer.clone();
            let shared = SubscribedUri { outer, inner };
            share_of(&mut shares, entry).tasks.push(shared);
        }
    }
    let (agreed, mut agreements) = mpsc::unbounded_channel();
    let mut streams: FuturesUnordered<_> = shares
        .into_iter()
        .map(|share| stream(aggregator, &job, guest, &sink, share, agreed.clone()))
        .collect();
    drop(agreed);
    let accepted = self::agreements(&mut streams, &mut agreements).await;
    drop(agreements);
    filter.uris.retain(|uri| accepted.uris.contains(uri));
    filter.tasks.retain(|task| accepted.tasks.contains(task));
    let listening = list_changes::listen_to_lists(
        aggregator,
        guest,
        sink.clone(),
        job.id.clone(),
        filter.clone(),
    );
    let granted = ObjectWriter::new().raw("notifications", &filter.encode());
    let scope = Scope::Request(job.id.clone());
    let method = Method::SubscriptionsAcknowledged;
    sink.notify(&scope, method, &granted.finish()).await;
    let streaming = async {
        // One server that ends its part does not end the whole.
        while streams.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = streaming => {}
        () = aggregator.changes.closed() => {}
    }
    drop(listening);
    Ok(final_result(job.id.raw()).into())
}

/// ListenStreams to one server for as long as the client does: it may end its part, go, come back and be replaced.
async fn stream(
    aggregator: &Arc<Aggregator>,
    job: &BackendRequest,
    guest: &Arc<DownstreamClient>,
    sink: &ClientSink,
    mut share: ServerTargets,
    first: mpsc::UnboundedSender<Agreed>,
) {
    let mut agreement = Agreement {
        first: Some(first),
        sink,
        job,
    };
    let mut failures = 0_u32;
    loop {
        let (entry, since) = (Arc::clone(&share.entry), Instant::now());
        let (agreed, mut agreements) = mpsc::unbounded_channel();
        let streaming = stream_of(aggregator, job, guest, sink, &share, agreed);
        let hearing = async {
            while let Some(agreed) = agreements.recv().await {
                agreement.reach(agreed);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = streaming => {}
            () = hearing => {}
            () = subscriptions::departed(aggregator, &entry) => {}
        }
        // What it said last may not have been heard.
        if let Ok(agreed) = agreements.try_recv() {
            agreement.reach(agreed);
        }
        let is_there = subscriptions::numbered(aggregator, entry.number).is_some();
        // Nobody was promised anything of a server that has not agreed.
        if !agreement.is_reached()
            && (is_there || subscriptions::named(aggregator, &entry.name).is_none())
        {
            return;
        }
        if !is_there || since.elapsed() > PAUSES.longest {
            failures = 0;
        }
        if is_there {
            let pause = tokio::time::sleep(PAUSES.pause(failures));
            failures = failures.saturating_add(1);
            tokio::select! {
                () = pause => {}
                () = subscriptions::departed(aggregator, &entry) => {}
            }
        }
        share.entry = subscriptions::arrived(aggregator, &entry.name).await;
    }
}

async fn stream_of(
    aggregator: &Arc<Aggregator>,
    job: &BackendRequest,
    guest: &Arc<DownstreamClient>,
    sink: &ClientSink,
    share: &ServerTargets,
    agreed: mpsc::UnboundedSender<Agreed>,
) -> Result<ByteString, ServeError> {
    let binding = guest.binding_for(aggregator, &share.entry).await?;
    let filter = ListenFilter {
        uris: inner(&share.wanted.uris),
        tasks: inner(&share.wanted.tasks),
        ..ListenFilter::default()
    };
    let params = with_notifications(&job.params, &filter.encode());
    let job = BackendRequest {
        params: params.into(),
        ..without_progress(job)
    };
    let view = ListenRewriter {
        part: Rewriter::new(aggregator, &share.entry, &guest.watched),
        wanted: share.wanted.clone(),
        agreed,
    };
    let sink = sink.clone().with_rewriter(Arc::new(view));
    pipeline::forward_to(&share.entry.server, binding, job, sink).await
}

/// What the servers have agreed to after a while.
async fn agreements<F: Future>(
    streams: &mut FuturesUnordered<F>,
    agreements: &mut mpsc::UnboundedReceiver<Agreed>,
) -> Agreed {
    let mut accepted = Agreed::default();
    let mut open = streams.len();
    let late = tokio::time::sleep(AGREEMENT);
    tokio::pin!(late);
    while open > 0 {
        tokio::select! {
            () = &mut late => break,
            Some(agreed) = agreements.recv() => {
                accepted.uris.extend(agreed.uris);
                accepted.tasks.extend(agreed.tasks);
            }
            Some(_) = streams.next() => {}
        }
        open -= 1;
    }
    accepted
}

/// What is wanted of a server.
fn share_of(shares: &mut Vec<ServerTargets>, entry: Arc<ServerEntry>) -> &mut ListenTargets {
    let known = shares
        .iter()
        .position(|share| Arc::ptr_eq(&share.entry, &entry));
    let at = known.unwrap_or_else(|| {
        shares.push(ServerTargets {
            entry,
            wanted: ListenTargets::default(),
        });
        shares.len() - 1
    });
    &mut shares[at].wanted
}

/// As the server knows them, each once.
fn inner(all: &[SubscribedUri]) -> Vec<Box<str>> {
    let inner: BTreeSet<&Box<str>> = all.iter().map(|shared| &shared.inner).collect();
    inner.into_iter().cloned().collect()
}

/// The parameters of a listen request that asks for something else.
fn with_notifications(params: &str, filter: &str) -> String {
    edit(params, "notifications", |_| Some(filter.to_owned()))
        .unwrap_or_else(|| ObjectWriter::new().raw("notifications", filter).finish())
}
