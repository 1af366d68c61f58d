//! One server at its own endpoint: accepts clients, and routes every request to the server or to its successor.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact::connection::RawResult;
use mcpact::server::Settings;
use mcpact::server::backend::{
    Backend, BackendRequest, ClientHello, ClientIdentity, ClientSetup, Outbox, Principal, Session,
};
use mcpact_engine::capability::CapabilityBits;
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::{Scope, ServerTerms};
use mcpact_spec::{Capability, Era, ErrorCode, Method};

use crate::aggregate::list_kind::ListKind;
use crate::downstream::sink::ClientSink;
use crate::downstream::{ClientKind, ClientState};
use crate::drain::{DrainGate, draining_error};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::{Inbound, level_of, refuse};
use crate::filters::Filters;
use crate::handover;
use crate::meaning;
use crate::pipeline::{self, BoundRequest, Front, Routed, Router};
use crate::result_limit::KeptResults;
use crate::subscriptions::legacy_on_modern::EmulatedSubscriptions;
use crate::suspended::bound_state;
use crate::sync::lock;
use crate::upstream::binding::ServerBinding;
use crate::upstream::{UpstreamServer, saved_client, tool_filter};

impl Backend for UpstreamServer {
    type State = ClientState;

    fn settings(&self) -> &Settings {
        &self.settings.front
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        &self.terms
    }

    async fn accept_client(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, WireError> {
        if self.settings.drain_gate.is_closed() {
            return Err(draining_error());
        }
        // A server with a known profile is not started before it is needed.
        if let Some(setup) = saved_client::accept_pending(self, &hello, identity) {
            return Ok(setup);
        }
        let mut setup = self.admit(hello, identity).await;
        if setup.as_ref().is_err_and(ServeError::is_retired)
            && let Some(next) = handover::successor(self)
        {
            setup = Box::pin(handover::admit_at(next, hello, identity)).await;
        }
        setup.map_err(ServeError::into_wire)
    }

    async fn serve(
        self: Arc<Self>,
        request: BackendRequest,
        session: Arc<Session<ClientState>>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        pipeline::serve(&self, request, ClientSink::new(session, outbox)).await
    }

    fn opened(&self, session: &Arc<Session<ClientState>>, outbox: Outbox) {
        let sink = ClientSink::new(Arc::clone(session), outbox);
        let mut server = self;
        match session.state().map(|state| &state.0) {
            Some(ClientKind::Bound { binding, successor }) => {
                server = successor.as_deref().unwrap_or(self);
                server.register_session(binding, &sink);
            }
            Some(ClientKind::Pending(pending)) => pending.set_sink(sink.downgrade()),
            _ => {}
        }
        server
            .direct_clients
            .add(sink.downgrade(), Scope::Connection);
    }

    fn observe(&self, session: &Arc<Session<ClientState>>, method: Method, params: Option<&str>) {
        if let Some(binding) = session.state().and_then(ClientState::bound) {
            binding.observe(method, params);
        } else if let Some(pending) = session.state().and_then(ClientState::pending) {
            pending.observe(method, params);
        }
    }

    fn input_closed(&self, identity: &ClientIdentity) {
        self.on_input_closed(identity);
    }

    fn disconnected(&self, identity: &ClientIdentity) {
        self.on_disconnect(identity);
    }

    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        self.shared.book.of(tool)
    }

    fn stop(&self) {
        lock(&self.groups).end_streams();
    }
}

/// Server that a request of a direct client goes to, and what the response depends on.
#[derive(Debug)]
pub(crate) struct SingleRoute {
    server: Arc<UpstreamServer>,
    /// Number of predecessors that were replaced while the request waited.
    moves: usize,
    method: Option<Method>,
    declared: CapabilityBits,
    /// Principal of a client that carries state; anonymous for others.
    carrier: Principal,
}

impl Router for Arc<UpstreamServer> {
    type Route = SingleRoute;

    async fn route(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
        moves: usize,
    ) -> Result<Routed<SingleRoute>, ServeError> {
        let server = match (moves, sink.state().map(|state| &state.0)) {
            (0, Some(ClientKind::Bound { successor, .. })) => {
                Arc::clone(successor.as_ref().unwrap_or(self))
            }
            (0, _) => Self::clone(self),
            _ => handover::successor(self)
                .ok_or_else(|| self.shared.error(UpstreamErrorKind::Retired))?,
        };
        let (method, revision) = (request.method, request.pact.revision());
        // On what the filters made of it, and at the server that is used, which a reload may have changed.
        if tool_filter::judges(&server, method) {
            meaning::check_request(server.settings.filters.metrics(), request)?;
        }
        tool_filter::check_served(&server, method, &request.params, revision)?;
        Ok(Routed::To(SingleRoute {
            server,
            moves,
            method,
            declared: request.pact.effective(),
            carrier: match request.pact.era() {
                Era::Legacy => Principal::ANONYMOUS,
                Era::Modern => sink.identity().principal.clone(),
            },
        }))
    }

    async fn bind(
        &self,
        route: &mut SingleRoute,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> Result<BoundRequest, ServeError> {
        let server = &route.server;
        // The state is set when the client is accepted.
        let binding = match sink.state().map(|state| &state.0) {
            _ if route.moves > 0 => {
                // Boxed, as rare steps are: the future of every call would have room for it.
                Box::pin(handover::binding_at(server, request, sink)).await?
            }
            Some(ClientKind::Bound { binding, .. }) => Arc::clone(binding),
            Some(ClientKind::Pending(pending)) => pending.binding_to(server).await?,
            Some(ClientKind::Aggregate(_)) | None => {
                let why = "this session has no server";
                let revision = request.pact.revision();
                return Err(refuse(ErrorCode::InternalError, why, revision));
            }
        };
        if request.method == Some(Method::SubscriptionsListen) {
            let scope = Scope::Request(request.id.clone());
            server.direct_clients.add(sink.downgrade(), scope);
        }
        let mut job = request.clone();
        if !job.params.is_plain_call()
            && let Some(params) = bound_state::unbound(server, &route.carrier, &job)?
        {
            job.params = params.into();
        }
        let inbound = Inbound {
            job,
            sink: sink.clone(),
        };
        Ok(BoundRequest {
            server: Arc::clone(server),
            binding,
            inbound,
        })
    }

    fn has_successor(&self, route: &SingleRoute) -> bool {
        handover::is_succeeded(&route.server)
    }

    async fn finish(
        &self,
        route: SingleRoute,
        outcome: Result<RawResult, ServeError>,
    ) -> Result<RawResult, ServeError> {
        let (server, method, declared) = (&route.server, route.method, route.declared);
        let raw = bound_state::bound(server, &route.carrier, outcome?);
        tool_filter::served_only(server, method, declared, raw)
    }
}

impl Front for Arc<UpstreamServer> {
    fn drain_gate(&self) -> &DrainGate {
        &self.settings.drain_gate
    }

    fn filters(&self) -> &Filters {
        &self.settings.filters
    }

    fn kept_results(&self) -> &KeptResults {
        &self.settings.kept_results
    }

    fn routes_by_content(&self) -> bool {
        false
    }

    async fn answer(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> Option<Result<RawResult, ServeError>> {
        if let Some(empty) = self.empty_list(request) {
            return Some(Ok(empty));
        }
        let pending = sink.state().and_then(ClientState::pending)?;
        if request.method != Some(Method::LoggingSetLevel) {
            return None;
        }
        // The level of a client that has not met the server yet is stored.
        if let Err(error) = level_of(request) {
            return Some(Err(error));
        }
        pending.save_level(request);
        let is_bound = pending.binding.initialized();
        (!is_bound).then(|| Ok("{}".into()))
    }
}

impl UpstreamServer {
    /// Answers for a server without resources that are declared only for the texts of cut results, which are unlisted.
    fn empty_list(&self, request: &BackendRequest) -> Option<RawResult> {
        let kind = ListKind::of(request.method?)?;
        let is_of_resources = matches!(kind, ListKind::Resources | ListKind::Templates);
        if !is_of_resources || self.shared.run().max_result_bytes == 0 {
            return None;
        }
        let profile = self.shared.info_cache.profile()?;
        let declared = profile.introduction.capabilities.declared();
        let list = format!("\"{}\":[]", kind.member());
        let empty = match request.pact.revision().era() {
            Era::Legacy => format!("{{{list}}}"),
            Era::Modern => format!(
                "{{\"resultType\":\"complete\",{list},\"ttlMs\":0,\"cacheScope\":\"private\"}}"
            ),
        };
        (!declared.has(Capability::Resources)).then(|| empty.into())
    }

    /// Registers a legacy client's session for notifications that belong to no request.
    pub(crate) fn register_session(&self, binding: &ServerBinding, sink: &ClientSink) {
        if let Some(rebind) = binding.rebind() {
            rebind.client.set_sink(sink.downgrade());
        }
        let era = match binding.open_connection() {
            Some(connection) => Some(connection.revision().era()),
            // The server may have shut down as idle since the client was accepted.
            None => binding.rebind().map(|rebind| rebind.era),
        };
        match (era, self.shared.info_cache.profile()) {
            (Some(Era::Legacy), _) => binding.subscribers().add_owner(sink),
            (Some(Era::Modern), Some(profile)) => {
                let server = &profile.introduction.capabilities;
                binding.set_emulated(EmulatedSubscriptions::new(server, sink, self.clock));
            }
            _ => {}
        }
    }
}
