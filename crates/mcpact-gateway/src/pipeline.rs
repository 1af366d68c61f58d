//! Order of the steps of a request, from admission to response.
//!
//! Every request of every client passes [`serve`] and, if it needs a server, [`forward`] and [`attempt`]. [`Front`] is
//! where one server at its own endpoint and many servers as one differ.

use std::borrow::Cow;
use std::sync::Arc;

use bytestring::ByteString;
use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::refusal::WireError;
use mcpact_spec::Method;
use mcpact_translate::input;
use mcpact_translate::plan::plan;
use tracing::Instrument;

use crate::downstream::sink::ClientSink;
use crate::drain::DrainGate;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::trace::ExchangeTrace;
use crate::exchange::{Exchange, Inbound, cache_scope, flows, level_of, server_change};
use crate::filters::Filters;
use crate::meaning;
use crate::result_limit::KeptResults;
use crate::retry::{Retries, Retry};
use crate::tasks::hosted;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::{rebind, tool_filter};

/// Endpoint that clients use: one server, or many servers as one.
pub(crate) trait Front: Router {
    fn drain_gate(&self) -> &DrainGate;

    fn filters(&self) -> &Filters;

    fn kept_results(&self) -> &KeptResults;

    /// Returns true if the content of the request decides where it goes.
    fn routes_by_content(&self) -> bool;

    /// Returns the request that the tools of the endpoint turn this one into.
    fn unwrapped(&self, request: BackendRequest) -> BackendRequest {
        request
    }

    /// Answers a request that needs no particular server.
    fn answer(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> impl Future<Output = Option<Result<RawResult, ServeError>>> + Send;
}

/// Choice of the server for a request.
pub(crate) trait Router: Send + Sync {
    /// Selected server, and what the response needs from the request.
    type Route: Send + Sync;

    /// Selects a server. `moves` is the number of selected servers that were replaced meanwhile.
    fn route(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
        moves: usize,
    ) -> impl Future<Output = Result<Routed<Self::Route>, ServeError>> + Send;

    /// Returns the client's binding to the selected server, and the request in the server's names.
    fn bind(
        &self,
        route: &mut Self::Route,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> impl Future<Output = Result<BoundRequest, ServeError>> + Send;

    /// Returns true if another server has replaced the selected one.
    fn has_successor(&self, route: &Self::Route) -> bool;

    /// Converts the outcome of an attempt to the client's names.
    fn finish(
        &self,
        route: Self::Route,
        outcome: Result<RawResult, ServeError>,
    ) -> impl Future<Output = Result<RawResult, ServeError>> + Send;
}

/// Result of routing.
pub(crate) enum Routed<R> {
    To(R),
    /// Answer for a server that was removed from the config.
    Answered(RawResult),
}

/// Request bound to one server.
pub(crate) struct BoundRequest {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) binding: Arc<ServerBinding>,
    pub(crate) inbound: Inbound,
}

/// Serves one request of a client.
pub(crate) async fn serve<F: Front>(
    front: &F,
    request: BackendRequest,
    sink: ClientSink,
) -> Result<ByteString, WireError> {
    // First, so that a draining gateway waits for exactly the requests that it still serves.
    let _in_flight = front.drain_gate().admit(request.method)?;
    let filters = front.filters();
    // Before anything reads the parameters, because the server may read other ones.
    if front.routes_by_content() || filters.wants_request(&request.name) {
        meaning::check_request(filters.metrics(), &request)?;
    }
    // Before everything else, because whatever holds for a direct call holds for one by `call_tool`.
    let request = front.unwrapped(request);
    // Before any decision, because a filter may change what the request asks for.
    let filtered_method = filters.result_method(&request);
    let request = filters.filter_request(request).await?;
    // After the filters, which may add a parameter; before routing, because what the endpoint declared decides.
    let request = without_undeclared(request);
    let revision = request.pact.revision();
    // Before routing, because these requests concern no server or all of them.
    let kept = front.kept_results();
    let outcome = match kept.read(&request, &sink) {
        Some(text) => Ok(Served::by_gateway(text.into())),
        None => match front.answer(&request, &sink).await {
            Some(answer) => answer.map(Served::by_gateway),
            None => forward(front, &request, &sink).await,
        },
    };
    // Errors stay typed up to here: retries and metrics decide by kind.
    let Served { raw, server } = outcome.map_err(ServeError::into_wire)?;
    let mut raw = raw.into_text();
    // On the whole result, so that a kept text has nothing that a filter removes.
    if let Some(method) = filtered_method.as_deref() {
        let judged = meaning::judged_result(filters.metrics(), request.method, raw);
        raw = judged.map_err(|found| match &server {
            Some(server) => server
                .shared
                .error(UpstreamErrorKind::AmbiguousResult(found))
                .on_wire(),
            None => meaning::refused_result(&found, revision),
        })?;
        raw = filters.filter_result(method, revision, raw).await?;
    }
    let limit = server.map_or(0, |server| server.shared.run().max_result_bytes);
    kept.limited(limit, &request, &sink, raw)
}

/// Result of a request.
pub(crate) struct Served {
    raw: RawResult,
    /// Server that sent it.
    server: Option<Arc<UpstreamServer>>,
}

impl Served {
    const fn by_gateway(raw: RawResult) -> Self {
        Self { raw, server: None }
    }
}

/// Drops `task` from a call if this endpoint did not declare tasks: such a call is an ordinary one.
///
/// `2025-11-25 basic/utilities/tasks#task-support-and-handling`
fn without_undeclared(mut request: BackendRequest) -> BackendRequest {
    let params = &request.params;
    let method = request.method.filter(|_| !params.is_plain_call());
    let rest = method.and_then(|method| {
        let params = Cow::Borrowed(&***params);
        match input::without_undeclared(&request.pact, method, params) {
            Ok(Cow::Owned(rest)) => Some(rest),
            Ok(Cow::Borrowed(_)) | Err(_) => None,
        }
    });
    if let Some(rest) = rest {
        request.params = rest.into();
    }
    request
}

/// Forwards a request to its server. This is the only loop that tries another server, or the same one after a new
/// negotiation.
pub(crate) async fn forward<R: Router>(
    router: &R,
    request: &BackendRequest,
    sink: &ClientSink,
) -> Result<Served, ServeError> {
    let mut retries = Retries::default();
    loop {
        // Inside the loop, because the name may belong to another server after a reload.
        let mut route = match router.route(request, sink, retries.moves).await? {
            Routed::To(route) => route,
            Routed::Answered(raw) => return Ok(Served::by_gateway(raw)),
        };
        // After routing, because this may start the server.
        let bound = router.bind(&mut route, request, sink).await;
        let mut server = None;
        let has_successor = || router.has_successor(&route);
        let (outcome, is_retried) = match bound {
            Ok(bound) => {
                server = Some(Arc::clone(&bound.server));
                traced(bound, &mut retries, has_successor).await?
            }
            Err(error) => {
                let is_retried = retries.decide(error.attempt(has_successor)) == Retry::Successor;
                (Err(error), is_retried)
            }
        };
        // Before a retry as well, because the attempt may have registered a subscription.
        let outcome = router.finish(route, outcome).await;
        if !is_retried {
            return outcome.map(|raw| Served { raw, server });
        }
    }
}

/// Runs one attempt with its metrics and log entries. Returns `true` if the request is to be tried again.
async fn traced(
    bound: BoundRequest,
    retries: &mut Retries,
    has_successor: impl Fn() -> bool,
) -> Result<(Result<RawResult, ServeError>, bool), ServeError> {
    let (server, binding) = (Arc::clone(&bound.server), Arc::clone(&bound.binding));
    // Before the attempt is counted, because the server does not get the request.
    tool_filter::check_able(&server, &bound.inbound.job)?;
    // Around the attempt, so that waiting for a free connection counts as well.
    let trace = ExchangeTrace::begin(&server.shared, &bound.inbound.job);
    let outcome = attempt(bound).instrument(trace.span()).await;
    let is_retried = match &outcome {
        Ok(_) => false,
        Err(error) => match retries.decide(error.attempt(has_successor)) {
            Retry::Successor => true,
            Retry::IfServerChanged => server_change::is_changed(error.doubt(), &binding).await,
            Retry::FreshConnection | Retry::No => false,
        },
    };
    // A retried attempt is counted where it succeeds.
    match is_retried {
        true => trace.discard(),
        false => trace.end(outcome.as_ref().map(drop)),
    }
    Ok((outcome, is_retried))
}

/// Runs one attempt at one server.
async fn attempt(bound: BoundRequest) -> Result<RawResult, ServeError> {
    let BoundRequest {
        server,
        binding,
        inbound,
    } = bound;
    let (method, revision) = (inbound.job.method, inbound.revision());
    // Before a connection is acquired: a log level must not start an idle server.
    if method == Some(Method::LoggingSetLevel) && binding.open_connection().is_none() {
        let level = level_of(&inbound.job)?;
        binding.save_level(level, &inbound.sink, &inbound.job);
        return Ok("{}".into());
    }
    // Before a connection is acquired: the gateway answers for the tasks that it hosts.
    if hosted::is_hosted(&server, &inbound.job, &inbound.sink) {
        return Box::pin(hosted::serve_hosted(&server, &inbound)).await;
    }
    // Before the request has any effect: the client must learn first that its state is lost.
    binding.check_state(method)?;
    // Before translation, because the revision of the connection decides the translation.
    let (binding, connection) = rebind::current(&server, binding).await?;
    let exchange = Exchange::new(inbound, binding, connection);
    let plan = plan(method, exchange.downstream(), exchange.upstream());
    server
        .shared
        .metrics
        .translated(revision, exchange.upstream(), plan);
    // Lease, translate, send, wait, translate back. The flows differ in who may ask whom meanwhile.
    let raw = flows::run(&server, plan, exchange).await?;
    // On the translated result, because only modern results have a cache scope.
    Ok(cache_scope::in_private(&server, method, revision, raw))
}

/// Sends a request on behalf of a client to a server that it is bound to.
pub(crate) async fn forward_to(
    server: &Arc<UpstreamServer>,
    binding: Arc<ServerBinding>,
    request: BackendRequest,
    sink: ClientSink,
) -> Result<RawResult, ServeError> {
    let known = Known { server, binding };
    let served = forward(&known, &request, &sink).await?;
    Ok(served.raw)
}

/// Server and binding that need no choice.
struct Known<'a> {
    server: &'a Arc<UpstreamServer>,
    binding: Arc<ServerBinding>,
}

impl Router for Known<'_> {
    type Route = ();

    async fn route(
        &self,
        _: &BackendRequest,
        _: &ClientSink,
        _: usize,
    ) -> Result<Routed<()>, ServeError> {
        Ok(Routed::To(()))
    }

    async fn bind(
        &self,
        (): &mut (),
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> Result<BoundRequest, ServeError> {
        Ok(BoundRequest {
            server: Arc::clone(self.server),
            binding: Arc::clone(&self.binding),
            inbound: Inbound {
                job: request.clone(),
                sink: sink.clone(),
            },
        })
    }

    fn has_successor(&self, (): &()) -> bool {
        false
    }

    async fn finish(
        &self,
        (): (),
        outcome: Result<RawResult, ServeError>,
    ) -> Result<RawResult, ServeError> {
        outcome
    }
}
