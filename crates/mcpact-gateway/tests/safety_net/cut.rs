//! A backend that drops the futures of its requests at a chosen poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytestring::ByteString;
use futures_util::future::BoxFuture;
use mcpact::server::Settings;
use mcpact::server::backend::{
    Backend, BackendRequest, ClientHello, ClientIdentity, ClientSetup, Outbox, Session,
};
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Method;

/// Message of the error that a client gets for a request that was dropped.
pub(crate) const DROPPED: &str = "dropped by the test";

/// Moment at which a request is dropped. Polls count from 0 over all requests that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Instead of a poll: after the wake-up, before its cause is handled.
    Instead(usize),
    /// Right after a poll that was not ready.
    After(usize),
}

/// Id of the requests that may be dropped.
pub(crate) const VICTIM: &str = "victim";

/// Backend that drops a request with the id [`VICTIM`] at a moment.
#[derive(Debug)]
pub(crate) struct Cutting<B> {
    inner: Arc<B>,
    moment: Moment,
    polls: AtomicUsize,
    is_cut: AtomicBool,
}

impl<B> Cutting<B> {
    pub(crate) fn new(inner: Arc<B>, moment: Moment) -> Arc<Self> {
        Arc::new(Self {
            inner,
            moment,
            polls: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        })
    }

    /// Returns `true` once a request was dropped.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    fn cut<T>(&self) -> Poll<Result<T, WireError>> {
        self.is_cut.store(true, Ordering::Relaxed);
        Poll::Ready(Err(WireError {
            code: -32603,
            message: DROPPED.to_owned(),
            data: None,
            http_status: 200,
        }))
    }

    /// Polls a request, or drops it.
    fn poll<T>(
        &self,
        serving: &mut Option<BoxFuture<'_, Result<T, WireError>>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, WireError>> {
        let poll = self.polls.fetch_add(1, Ordering::Relaxed);
        if self.moment == Moment::Instead(poll) {
            *serving = None;
            return self.cut();
        }
        let polled = serving
            .as_mut()
            .map(|serving| serving.as_mut().poll(context));
        match polled {
            Some(Poll::Ready(served)) => Poll::Ready(served),
            Some(Poll::Pending) if self.moment == Moment::After(poll) => {
                *serving = None;
                self.cut()
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }
}

impl<B: Backend> Backend for Cutting<B> {
    type State = B::State;

    fn settings(&self) -> &Settings {
        self.inner.settings()
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        self.inner.terms()
    }

    async fn accept_client(
        &self,
        opening: ClientHello<'_>,
        visitor: &ClientIdentity,
    ) -> Result<ClientSetup<B::State>, WireError> {
        self.inner.accept_client(opening, visitor).await
    }

    async fn serve(
        self: Arc<Self>,
        job: BackendRequest,
        session: Arc<Session<B::State>>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        let is_chosen = job.id.raw().trim_matches('"') == VICTIM;
        let serving = Arc::clone(&self.inner).serve(job, session, outbox);
        if !is_chosen {
            return serving.await;
        }
        let mut serving: Option<BoxFuture<'_, _>> = Some(Box::pin(serving));
        std::future::poll_fn(|context| self.poll(&mut serving, context)).await
    }

    fn opened(&self, session: &Arc<Session<B::State>>, outbox: Outbox) {
        self.inner.opened(session, outbox);
    }

    fn observe(&self, session: &Arc<Session<B::State>>, method: Method, params: Option<&str>) {
        self.inner.observe(session, method, params);
    }

    fn input_closed(&self, visitor: &ClientIdentity) {
        self.inner.input_closed(visitor);
    }

    fn disconnected(&self, visitor: &ClientIdentity) {
        self.inner.disconnected(visitor);
    }

    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        self.inner.mirrored_params(tool)
    }

    fn stop(&self) {
        self.inner.stop();
    }
}
