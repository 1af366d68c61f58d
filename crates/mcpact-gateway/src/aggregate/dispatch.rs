//! Many servers as one: accepts clients, answers what concerns all servers, and routes the rest by name or URI.

use std::net::SocketAddr;
use std::sync::Arc;

use bytestring::ByteString;
use mcpact::connection::RawResult;
use mcpact::server::Settings;
use mcpact::server::backend::{
    Backend, BackendRequest, ClientHello, ClientIdentity, ClientSetup, HttpListener, Outbox,
    RawParams, Session, SessionEnd, serve_link,
};
use mcpact_config::listed;
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_transport::link::Link;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::gateway_tools;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::{Subject, subject};
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::sealed_state::{self, ItemNames};
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::ClientState;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::drain::{DrainGate, draining_error};
use crate::error::ServeError;
use crate::exchange::{Inbound, level_of, refuse};
use crate::filters::Filters;
use crate::handover::{removed, subscriptions};
use crate::lists::merged;
use crate::pipeline::{self, BoundRequest, Front, Routed, Router};
use crate::result_limit::KeptResults;
use crate::subscriptions::aggregate_listen;
use crate::subscriptions::watched_uris::SubscriptionChange;
use crate::sync::lock;
use crate::tasks::aggregate_tasks;
use crate::upstream::saved_client::without_progress;

impl Backend for Aggregator {
    type State = ClientState;

    fn settings(&self) -> &Settings {
        &self.settings.front
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        &self.base_terms
    }

    async fn accept_client(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, WireError> {
        if self.settings.drain_gate.is_closed() {
            return Err(draining_error());
        }
        Ok(self.admit(hello, identity).await)
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
        if let Some(client) = session.state().and_then(ClientState::aggregate) {
            let sink = ClientSink::new(Arc::clone(session), outbox).downgrade();
            client.saved.set_sink(sink.clone());
            self.changes.add_legacy(sink);
        }
    }

    fn observe(&self, session: &Arc<Session<ClientState>>, method: Method, params: Option<&str>) {
        if let Some(client) = session.state().and_then(ClientState::aggregate) {
            client.observe(method, params);
        }
    }

    fn input_closed(&self, identity: &ClientIdentity) {
        for entry in &self.server_set().entries {
            entry.server.on_input_closed(identity);
        }
    }

    fn disconnected(&self, identity: &ClientIdentity) {
        let clients = lock(&self.modern_clients).remove(identity);
        drop(clients);
        for entry in &self.server_set().entries {
            entry.server.on_disconnect(identity);
        }
    }

    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        // Tools that only one client is shown are in no shared list.
        let listed = self.listed(ListKind::Tools, tool);
        let (entry, name) = listed.or_else(|| self.by_prefix(ListKind::Tools, tool))?;
        entry.server.mirrored_params(&name)
    }

    fn stop(&self) {
        self.changes.end();
        for entry in &self.server_set().entries {
            entry.server.stop();
        }
    }
}

impl Aggregator {
    /// Serves one client on a link, until it disconnects.
    ///
    /// # Errors
    /// The link fails.
    pub async fn serve(self: Arc<Self>, link: Link) -> Result<(), mcpact::error::Error> {
        let ending = SessionEnd::after(self.settings.front.limits.drain);
        self.serve_until(link, ending).await
    }

    /// Like [`serve`](Self::serve), with its own end of the session.
    ///
    /// # Errors
    /// The link fails.
    pub async fn serve_until(
        self: Arc<Self>,
        link: Link,
        ending: SessionEnd,
    ) -> Result<(), mcpact::error::Error> {
        serve_link(self, link, ending).await
    }

    /// Binds an HTTP listener; the aggregator runs once [`HttpListener::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen_at(
        self: Arc<Self>,
        address: SocketAddr,
    ) -> Result<HttpListener<Self>, mcpact::error::Error> {
        HttpListener::bind(self, address).await
    }

    /// Ends a subscription without a request to the server: it is one of several to the same resource, or its server was
    /// removed. Returns false if the server must be asked.
    fn forgets(&self, client: &DownstreamClient, params: &str) -> bool {
        let uri = subject(Method::ResourcesUnsubscribe, params).into_name();
        let is_there = |number| subscriptions::numbered(self, number).is_some();
        uri.is_some_and(|uri| client.watched.remove_local(&uri, is_there))
    }

    /// Returns the client, which the session has had since it was accepted, and the method. The server of an unknown method
    /// cannot be known.
    fn known<'a>(
        &self,
        request: &BackendRequest,
        sink: &'a ClientSink,
    ) -> Result<(&'a Arc<DownstreamClient>, Method), ServeError> {
        let client = sink.state().and_then(ClientState::aggregate);
        client.zip(request.method).ok_or_else(|| {
            let server_set = self.server_set();
            let extended = server_set.entries.iter();
            let extended = extended.filter(|entry| entry.has_unknown_extension());
            let names: Vec<_> = extended.map(|entry| &*entry.name).collect();
            let why = format!(
                "no revision defines `{}`; for an extension of one server use `/servers/NAME/mcp`: {}",
                request.name,
                listed("", &names)
            );
            refuse(ErrorCode::MethodNotFound, why, request.pact.revision())
        })
    }

    /// Sets the log level of a legacy client at the servers it is connected to; other servers get it on connection.
    async fn set_level(
        self: &Arc<Self>,
        job: &BackendRequest,
        client: &Arc<DownstreamClient>,
        sink: &ClientSink,
    ) -> Result<RawResult, ServeError> {
        level_of(job)?;
        client.saved.save_level(job);
        for entry in &self.server_set().entries {
            if client.is_bound_to(entry.number)
                && let Ok(binding) = client.binding_for(self, entry).await
            {
                let request = without_progress(job);
                // A server without logging has nothing to set.
                let _ = pipeline::forward_to(&entry.server, binding, request, sink.clone()).await;
            }
        }
        Ok("{}".into())
    }
}

/// Selected server of a request, and the data for rewriting the response.
#[derive(Debug)]
pub(crate) struct AggregateRoute {
    client: Arc<DownstreamClient>,
    entry: Arc<ServerEntry>,
    method: Method,
    revision: Revision,
    /// Parameters with public names, as the client sent them.
    public: RawParams,
    /// Parameters with the names of the server.
    params: RawParams,
    /// Rewrites the response for the client.
    rewriter: Rewriter,
    subscription: Option<SubscriptionChange>,
}

impl Router for Arc<Aggregator> {
    type Route = AggregateRoute;

    async fn route(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
        _: usize,
    ) -> Result<Routed<AggregateRoute>, ServeError> {
        let (client, method) = self.known(request, sink)?;
        let revision = request.pact.revision();
        let public = &request.params;
        let (entry, params) = match self.select(client, method, public, revision).await {
            Ok(selected) => selected,
            Err(error) => {
                let removed = removed::ask_departed(self, request, method, client, sink).await;
                if let Some(outcome) = removed {
                    return outcome.map(Routed::Answered);
                }
                self.settings.metrics.unrouted(method);
                return Err(error);
            }
        };
        let mut params = params.unwrap_or_else(|| public.clone());
        // A plain call has neither a task nor a state.
        if !params.is_plain_call() {
            aggregate_tasks::check_task(&entry, method, &params, revision)?;
            // A sealed state is opened only for the server that created it.
            let opened = sealed_state::unsealed(self, &entry, client.principal(), &params)?;
            params = opened.map_or(params, Into::into);
        }
        Ok(Routed::To(AggregateRoute {
            rewriter: Rewriter::new(self, &entry, &client.watched),
            client: Arc::clone(client),
            entry,
            method,
            revision,
            public: public.clone(),
            params,
            subscription: None,
        }))
    }

    async fn bind(
        &self,
        route: &mut AggregateRoute,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> Result<BoundRequest, ServeError> {
        let (client, entry, method) = (&route.client, &route.entry, route.method);
        let binding = client.binding_for(self, entry).await;
        let binding = binding.map_err(|error| error.at(&entry.name))?;
        let mut request = request.clone();
        request.params = route.params.clone();
        let is_subscribe = method == Method::ResourcesSubscribe;
        if is_subscribe {
            client.save_subscribe_request(&request);
        }
        if is_subscribe || method == Method::ResourcesUnsubscribe {
            let (public, params) = (&route.public, &route.params);
            let change = SubscriptionChange::begin(method, client, entry, public, params);
            route.subscription = Some(change);
        }
        let rewriter = Arc::new(route.rewriter.clone());
        Ok(BoundRequest {
            server: Arc::clone(&route.entry.server),
            binding,
            inbound: Inbound {
                job: request,
                sink: sink.clone().with_rewriter(rewriter),
            },
        })
    }

    fn has_successor(&self, route: &AggregateRoute) -> bool {
        subscriptions::is_succeeded(self, &route.entry)
    }

    async fn finish(
        &self,
        route: AggregateRoute,
        outcome: Result<RawResult, ServeError>,
    ) -> Result<RawResult, ServeError> {
        let (client, entry, method) = (&route.client, &route.entry, route.method);
        if let Some(subscription) = route.subscription {
            subscription.end(outcome.is_ok());
            // The server may have been removed before the subscription was recorded.
            if subscriptions::numbered(self, entry.number).is_none() {
                subscriptions::follow_for(self, client);
            }
        }
        let names = || ItemNames::by(method, &route.public, &route.params);
        let error = match outcome {
            Ok(raw) => {
                let sealed = sealed_state::sealed(self, entry, client.principal(), names, raw);
                return Ok(route.rewriter.result(method, sealed, names));
            }
            Err(error) => error,
        };
        let (uri, kind) = match subject(method, &route.public) {
            Subject::Uri(uri) => (Some(uri), None),
            Subject::Tool(_) => (None, Some(ListKind::Tools)),
            Subject::Prompt(_) => (None, Some(ListKind::Prompts)),
            Subject::Task(_) | Subject::Nothing => (None, None),
        };
        let error = error.map_wire(|error| route.rewriter.error(error, uri.as_deref()));
        // A more helpful error if the server does not have the item.
        if let Some(kind) = kind.filter(|_| error.code() == ErrorCode::InvalidParams.code()) {
            self.check_listed(client, entry, kind, &names(), route.revision)
                .await?;
        }
        Err(error)
    }
}

impl Front for Arc<Aggregator> {
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
        true
    }

    fn unwrapped(&self, request: BackendRequest) -> BackendRequest {
        gateway_tools::unwrapped(&self.settings.tools, request)
    }

    /// Answers requests about all servers, and those that no server needs to see.
    async fn answer(
        &self,
        request: &BackendRequest,
        sink: &ClientSink,
    ) -> Option<Result<RawResult, ServeError>> {
        let (client, method) = match self.known(request, sink) {
            Ok(known) => known,
            Err(error) => return Some(Err(error)),
        };
        if let Some(answer) = gateway_tools::answer(self, client, request).await {
            return Some(answer);
        }
        if let Some(kind) = ListKind::of(method) {
            let revision = request.pact.revision();
            return Some(merged::page(self, client, kind, &request.params, revision).await);
        }
        match method {
            Method::Ping => {}
            Method::LoggingSetLevel => return Some(self.set_level(request, client, sink).await),
            Method::SubscriptionsListen => {
                let (request, sink) = (request.clone(), sink.clone());
                return Some(aggregate_listen::listen(self, request, client, sink).await);
            }
            Method::TasksList => {
                return Some(aggregate_tasks::list_tasks(self, request, client, sink).await);
            }
            Method::ResourcesUnsubscribe if self.forgets(client, &request.params) => {}
            _ => return None,
        }
        Some(Ok("{}".into()))
    }
}
