//! Stateless requests: disconnecting cancels them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use mcpact_engine::classify::{HeaderField, TransportFacts, param_headers};
use mcpact_engine::refusal::{Refusal, WireError};
use mcpact_spec::Method;
use mcpact_transport::http::server::{HttpRequest, HttpResponse, KEEP_ALIVE};
use mcpact_transport::within::within;
use mcpact_wire::batch::Frame;
use mcpact_wire::id::Id;
use mcpact_wire::raw::Object;

use super::header_fields::header_field;
use super::legacy::response_mode;
use super::{BACKLOG, CachedTerms, HttpEndpoint};
use crate::lock;
use crate::server::backend;
use crate::server::backend::{Backend, BackendRequest, ClientSetup, ResponseMode};
use crate::server::client_identity::ClientIdentity;
use crate::server::outbox::{Outbox, OutboxReceiver, Outgoing};
use crate::server::session::{Session, SessionEffect};
use crate::server::sse_replay_log::sse_event;

/// Flag that cuts off running requests. It wakes no task: it is set when the server stops, which polls every
/// connection.
#[derive(Clone, Debug, Default)]
pub(super) struct CutOffFlag(Arc<AtomicBool>);

impl CutOffFlag {
    /// Cuts off all requests.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Resolves when requests are cut off.
    pub(super) async fn wait(&self) {
        std::future::poll_fn(|_| {
            if self.0.load(Ordering::Acquire) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Running request, owned by its response: dropping the response cancels it.
struct RunningRequest<S> {
    session: Arc<Session<S>>,
    id: Id,
    future: Option<BoxFuture<'static, Result<ByteString, WireError>>>,
    outgoing: OutboxReceiver,
    /// Keeps the queue open, so that the end of the last other outbox wakes nothing.
    _outbox: Outbox,
    ready: Option<String>,
    last: Option<(String, u16)>,
    cut_off_flag: CutOffFlag,
}

/// Admitted request.
struct AdmittedRequest<S> {
    session: Arc<Session<S>>,
    request: BackendRequest,
    /// Message to be sent first.
    first: Option<String>,
}

impl<B: Backend> HttpEndpoint<B> {
    pub(super) async fn modern(
        &self,
        http_request: &HttpRequest,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        identity: ClientIdentity,
    ) -> HttpResponse {
        let setup = match self.accept_client(&frame, &identity).await {
            Ok(setup) => setup,
            Err(response) => return response,
        };
        match self.admit(http_request, body, frame, facts, setup, &identity) {
            Ok(admitted) => self.run(http_request, admitted).await,
            Err(response) => response,
        }
    }

    /// Admits a request, or returns the response. Separate from the async part, which would keep room for all these
    /// locals while the request runs.
    fn admit(
        &self,
        http_request: &HttpRequest,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        setup: ClientSetup<B::State>,
        identity: &ClientIdentity,
    ) -> Result<AdmittedRequest<B::State>, HttpResponse> {
        let terms = Arc::clone(&setup.terms);
        let cached = self.cached_pact(&terms);
        let session = Arc::new(Session::with_cached_pact(
            setup,
            cached,
            identity,
            self.backend.settings(),
        ));
        let mut first = None;
        let effects = session.frame(body, frame, facts);
        *lock(&self.pact_cache) = session
            .machine()
            .cached_pact()
            .map(|agreed| CachedTerms { terms, agreed });
        for effect in effects {
            match effect {
                SessionEffect::Reply { text, status, .. } => {
                    return Err(HttpResponse::json(status, text));
                }
                SessionEffect::Negotiated(negotiation) => {
                    self.negotiation_log.record("http", &negotiation)
                }
                SessionEffect::Write(text) => first = Some(text),
                SessionEffect::Serve(request) => {
                    self.check_mirrored_params(http_request, &request)?;
                    let request = request.traced(http_request);
                    return Ok(AdmittedRequest {
                        session,
                        request,
                        first,
                    });
                }
                _ => {}
            }
        }
        Err(HttpResponse::empty(202))
    }

    /// Checks that mirrored tool parameters match their headers.
    fn check_mirrored_params(
        &self,
        http_request: &HttpRequest,
        request: &BackendRequest,
    ) -> Result<(), HttpResponse> {
        if request.method != Some(Method::ToolsCall) {
            return Ok(());
        }
        let name = request.params.name().unwrap_or_default();
        let annotations = self.backend.mirrored_params(&name).unwrap_or_default();
        if annotations.is_empty() {
            return Ok(());
        }
        let params: &str = &request.params;
        let params = Object::parse(params).unwrap_or_default();
        let header = |name: &str| -> HeaderField<'_> { header_field(http_request, name) };
        param_headers::check(&annotations, params.get("arguments"), header).map_err(|error| {
            let (id, revision) = (request.id.as_ref(), request.pact.revision());
            self.refusal_response(&Refusal::from(error), request.method, Some(id), revision)
        })
    }

    /// Responds with JSON if the response comes first and soon, with a stream otherwise.
    async fn run(
        &self,
        http_request: &HttpRequest,
        AdmittedRequest {
            session,
            request,
            first,
        }: AdmittedRequest<B::State>,
    ) -> HttpResponse {
        let (outbox, outgoing) = Outbox::new(BACKLOG);
        let id = request.id.clone();
        let backend = Arc::clone(&self.backend);
        let serving = backend::serve(backend, request, Arc::clone(&session), outbox.clone());
        let mut running = RunningRequest {
            session,
            id,
            future: Some(serving.boxed()),
            outgoing,
            _outbox: outbox,
            ready: first,
            last: None,
            cut_off_flag: self.cut_off_flag.clone(),
        };
        while running.ready.is_none() {
            match within(KEEP_ALIVE, running.step()).await {
                Some(Some(Output::Message(text))) => running.ready = Some(text),
                Some(Some(Output::Response(text, status))) => {
                    return HttpResponse::json(status, text);
                }
                Some(None) => return HttpResponse::empty(202),
                // Intermediaries may close a silent connection.
                None if response_mode(http_request) == ResponseMode::Stream => break,
                None => {}
            }
        }
        HttpResponse::events(unfold(running, |mut running| async move {
            if let Some(text) = running.ready.take() {
                return Some((sse_event(None, &text, None), running));
            }
            match running.step().await? {
                Output::Message(text) | Output::Response(text, _) => {
                    Some((sse_event(None, &text, None), running))
                }
            }
        }))
    }
}

/// Output of a running request.
enum Output {
    Message(String),
    Response(String, u16),
}

impl<S> RunningRequest<S> {
    /// Returns the next message, or the response after all messages.
    async fn step(&mut self) -> Option<Output> {
        loop {
            if let Some(text) = self.message() {
                return Some(Output::Message(text));
            }
            if let Some((text, status)) = self.last.take() {
                return Some(Output::Response(text, status));
            }
            let future = self.future.as_mut()?;
            tokio::select! {
                biased;
                outcome = future => return self.end(outcome),
                // A backend may drop its outbox before it responds.
                Some(item) = self.outgoing.recv() => match item {
                    Outgoing::Message(text) => return Some(Output::Message(text)),
                    Outgoing::Response(..) | Outgoing::Disconnect(_) => {}
                },
                () = self.cut_off_flag.wait() => return self.end(Err(backend::cut_off_error())),
            }
        }
    }

    /// Stores the response, which follows the queued messages.
    fn end(&mut self, outcome: Result<ByteString, WireError>) -> Option<Output> {
        self.future = None;
        let last = self.session.respond(self.id.clone(), outcome);
        match self.message() {
            Some(text) => {
                self.last = last;
                Some(Output::Message(text))
            }
            None => last.map(|(text, status)| Output::Response(text, status)),
        }
    }

    fn message(&mut self) -> Option<String> {
        while let Some(item) = self.outgoing.try_recv() {
            if let Outgoing::Message(text) = item {
                return Some(text);
            }
        }
        None
    }
}
