//! A modern client that listens to several servers at once.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::Job;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Method, Revision};
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::mpsc;

use super::Hub;
use super::guest::{Guest, again};
use super::member::Member;
use super::view::PartView;
use crate::aggregate::rewrite::edit;
use crate::bridge::{Ear, View, farewell};
use crate::upstream::text;

/// How long servers may take to agree to be listened to.
const AGREEMENT: Duration = Duration::from_secs(2);

/// A part of a stream: what the server agrees to goes to the hub, and the rest to the client.
#[derive(Debug)]
struct StreamView {
    part: PartView,
    uris: Vec<Shared>,
    agreed: mpsc::UnboundedSender<Vec<Box<str>>>,
}

impl View for StreamView {
    fn note<'a>(&self, method: Method, params: &'a str) -> Option<Cow<'a, str>> {
        if method == Method::SubscriptionsAcknowledged {
            let filter = ListenFilter::parse(Some(params)).unwrap_or_default();
            let is_agreed = |shared: &&Shared| filter.uris.contains(&shared.inner);
            let agreed = self.uris.iter().filter(is_agreed);
            // A stream that has been acknowledged without this one goes on without it.
            let _ = self
                .agreed
                .send(agreed.map(|shared| shared.outer.clone()).collect());
            return None;
        }
        self.part.note(method, params)
    }

    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str> {
        self.part.question(method, params)
    }
}

/// The addresses of one server that a client wants to hear of.
struct Share {
    member: Arc<Member>,
    uris: Vec<Shared>,
}

/// One address.
#[derive(Clone, Debug)]
struct Shared {
    /// As the client knows it.
    outer: Box<str>,
    /// As the server knows it.
    inner: Box<str>,
}

impl Hub {
    /// Serves `subscriptions/listen` until the client goes away or the hub ends.
    pub(super) async fn listen(
        self: &Arc<Self>,
        job: Job,
        guest: &Arc<Guest>,
        ear: Ear,
    ) -> Result<String, WireError> {
        let params = text(&job.params);
        let wanted = ListenFilter::parse(Some(params)).unwrap_or_default();
        let mut filter = wanted.granted(&job.pact);
        let client = job.pact.revision();
        let mut shares = Vec::new();
        for uri in std::mem::take(&mut filter.uris) {
            self.share(guest, uri, client, &mut shares, &mut filter.uris)
                .await;
        }
        let (agreed, mut agreements) = mpsc::unbounded_channel();
        let mut streams: FuturesUnordered<_> = shares
            .into_iter()
            .map(|share| self.stream(&job, guest, &ear, share, agreed.clone()))
            .collect();
        drop(agreed);
        let accepted = self.agreements(&mut streams, &mut agreements).await;
        filter.uris.retain(|uri| accepted.contains(uri));
        let listening = self.listen_to_lists(ear.clone(), job.id.clone(), filter.clone());
        let granted = ObjectWriter::new().raw("notifications", &filter.encode());
        let scope = Scope::Request(job.id.clone());
        let method = Method::SubscriptionsAcknowledged;
        ear.tell(scope, method, &granted.finish()).await;
        let streaming = async {
            // One server that ends its part does not end the whole.
            while streams.next().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = streaming => {}
            () = self.changes.over() => {}
        }
        drop(listening);
        Ok(farewell(job.id.raw()))
    }

    /// Whose an address is; what nobody has is left out of the agreement.
    async fn share(
        self: &Arc<Self>,
        guest: &Arc<Guest>,
        uri: Box<str>,
        client: Revision,
        shares: &mut Vec<Share>,
        kept: &mut Vec<Box<str>>,
    ) {
        let Ok((member, inner)) = self.by_uri(guest, &uri, client).await else {
            return;
        };
        kept.push(uri.clone());
        let shared = Shared { outer: uri, inner };
        let known = shares
            .iter_mut()
            .find(|share| Arc::ptr_eq(&share.member, &member));
        match known {
            Some(share) => share.uris.push(shared),
            None => shares.push(Share {
                member,
                uris: vec![shared],
            }),
        }
    }

    async fn stream(
        self: &Arc<Self>,
        job: &Job,
        guest: &Arc<Guest>,
        ear: &Ear,
        share: Share,
        agreed: mpsc::UnboundedSender<Vec<Box<str>>>,
    ) -> Result<String, WireError> {
        let caller = guest.part(self, &share.member).await?;
        let filter = ListenFilter {
            uris: share.uris.iter().map(|uri| uri.inner.clone()).collect(),
            ..ListenFilter::default()
        };
        let params = with_notifications(text(&job.params), &filter.encode());
        let job = Job {
            params: params.into(),
            ..again(job)
        };
        let view = StreamView {
            part: PartView::new(self, &share.member),
            uris: share.uris,
            agreed,
        };
        let ear = ear.clone().seeing(Arc::new(view));
        share.member.bridge.carry(job, caller, ear).await
    }

    /// What the servers have agreed to after a while.
    async fn agreements<F: Future>(
        &self,
        streams: &mut FuturesUnordered<F>,
        agreements: &mut mpsc::UnboundedReceiver<Vec<Box<str>>>,
    ) -> Vec<Box<str>> {
        let mut accepted = Vec::new();
        let mut open = streams.len();
        let late = tokio::time::sleep(AGREEMENT);
        tokio::pin!(late);
        while open > 0 {
            tokio::select! {
                () = &mut late => break,
                Some(uris) = agreements.recv() => accepted.extend(uris),
                Some(_) = streams.next() => {}
            }
            open -= 1;
        }
        accepted
    }
}

/// The parameters of a listen request that asks for something else.
fn with_notifications(params: &str, filter: &str) -> String {
    edit(params, "notifications", |_| Some(filter.to_owned()))
        .unwrap_or_else(|| ObjectWriter::new().raw("notifications", filter).finish())
}
