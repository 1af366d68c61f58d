//! The order in which things happen to a request.

use crate::aggregate::sealed_state;
use crate::handover::removed;
use crate::handover::subscriptions;
use crate::lists::merge;
use crate::subscriptions::aggregate_listen;
use crate::tasks::aggregate_tasks;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use bytestring::ByteString;
use mcpact::server::Settings;
use mcpact::server::backend::{
    Backend, BackendRequest, ClientHello, ClientIdentity, ClientSetup, HttpListener, Outbox,
    Session, SessionEnd, serve_link,
};
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{ErrorCode, Method};
use mcpact_transport::link::Link;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::{Subject, subject};
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::sealed_state::ItemNames;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::ClientState;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::drain::draining_error;
use crate::error::{ServeError, wire_error};
use crate::handover::Handover;
use crate::handover::Unserved;
use crate::pipeline::level_of;
use crate::subscriptions::watched_uris::SubscriptionChange;
use crate::sync::lock;
use crate::upstream::pending::again;

impl Backend for Aggregator {
    type State = ClientState;

    fn settings(&self) -> &Settings {
        &self.settings.front
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        &self.bare
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

    /// Everything that was admitted passes here.
    async fn serve(
        self: Arc<Self>,
        job: BackendRequest,
        session: Arc<Session<ClientState>>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        let client = job.pact.revision();
        // The session has had its client since it was accepted.
        let (Some(guest), Some(method)) = (
            session.state().and_then(ClientState::aggregate).cloned(),
            job.method,
        ) else {
            let why = format!("no server here has `{}`", job.name);
            return Err(wire_error(
                ErrorCode::MethodNotFound.code(),
                why,
                None,
                client,
            ));
        };
        let _pass = self.settings.drain_gate.admit(job.method)?;
        let filtered_method = self.settings.filters.result_method(&job);
        let job = self.settings.filters.filter_request(job).await?;
        let sink = ClientSink::new(session, outbox);
        let answered = self.answer(job, method, &guest, sink).await;
        let raw = answered.map_err(ServeError::into_wire)?;
        let filters = &self.settings.filters;
        filters
            .filter_result(filtered_method.as_deref(), client, raw)
            .await
    }

    fn opened(&self, session: &Arc<Session<ClientState>>, outbox: Outbox) {
        if let Some(guest) = session.state().and_then(ClientState::aggregate) {
            let sink = ClientSink::new(Arc::clone(session), outbox).downgrade();
            guest.settle(sink.clone());
            self.changes.add_legacy(sink);
        }
    }

    fn observe(&self, session: &Arc<Session<ClientState>>, method: Method, params: Option<&str>) {
        if let Some(guest) = session.state().and_then(ClientState::aggregate) {
            guest.observe(method, params);
        }
    }

    fn input_closed(&self, identity: &ClientIdentity) {
        for entry in &self.server_set().entries {
            entry.server.dismiss(identity);
        }
    }

    fn disconnected(&self, identity: &ClientIdentity) {
        let guests = lock(&self.visitors).without(identity);
        drop(guests);
        for entry in &self.server_set().entries {
            entry.server.leave(identity);
        }
    }

    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        let kind = ListKind::Tools;
        // What one client alone is shown is in no common list.
        let listed = self.listed(kind, tool);
        let (entry, name) = listed.or_else(|| self.guessed(kind, tool))?;
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
    /// Serves one client on a carrier of lines, until it goes away.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve(self: Arc<Self>, link: Link) -> Result<(), mcpact::error::Error> {
        let ending = SessionEnd::after(self.settings.front.limits.drain);
        self.serve_until(link, ending).await
    }

    /// As [`serve`](Self::serve), with an ending of its own.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve_until(
        self: Arc<Self>,
        link: Link,
        ending: SessionEnd,
    ) -> Result<(), mcpact::error::Error> {
        serve_link(self, link, ending).await
    }

    /// ListenStreams on HTTP; the aggregator runs once [`HttpListener::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen_at(
        self: Arc<Self>,
        address: SocketAddr,
    ) -> Result<HttpListener<Self>, mcpact::error::Error> {
        HttpListener::bind(self, address).await
    }

    async fn answer(
        self: &Arc<Self>,
        job: BackendRequest,
        method: Method,
        guest: &Arc<DownstreamClient>,
        sink: ClientSink,
    ) -> Result<ByteString, ServeError> {
        // What all servers have in common is answered here.
        if let Some(kind) = ListKind::of(method) {
            let client = job.pact.revision();
            return merge::page(self, guest, kind, &job.params, client).await;
        }
        match method {
            Method::Ping => Ok(ByteString::from_static("{}")),
            Method::LoggingSetLevel => self.set_level(&job, guest, &sink).await,
            Method::SubscriptionsListen => aggregate_listen::listen(self, job, guest, sink).await,
            Method::TasksList => aggregate_tasks::list_tasks(self, &job, guest, &sink).await,
            // What no server is to be told ends here.
            Method::ResourcesUnsubscribe if self.forgets(guest, &job.params) => {
                Ok(ByteString::from_static("{}"))
            }
            // Everything else is about something that one server has.
            _ => self.forward(job, method, guest, sink).await,
        }
    }

    /// Forwards a request to its server, or to the successor of a replaced server that has not received it.
    async fn forward(
        self: &Arc<Self>,
        mut job: BackendRequest,
        method: Method,
        guest: &Arc<DownstreamClient>,
        mut sink: ClientSink,
    ) -> Result<ByteString, ServeError> {
        let client = job.pact.revision();
        let mut moves = 0;
        loop {
            // Which server, and what it calls the thing.
            let routed = self.route(guest, method, &job.params, client).await;
            let routed = match routed {
                Ok(routed) => routed,
                Err(error) => {
                    let departed = removed::ask_departed(self, &job, method, guest, &sink).await;
                    return departed.unwrap_or_else(|| {
                        self.settings.metrics.unrouted(method);
                        Err(error)
                    });
                }
            };
            let entry = Arc::clone(&routed.0);
            let again = (job.clone(), sink.clone());
            let goes_on = || Handover {
                has_successor: subscriptions::is_succeeded(self, &entry),
                moves,
            };
            match self
                .forward_to(routed, job, method, guest, sink, goes_on)
                .await
            {
                Ok(raw) => return Ok(raw),
                Err(Unserved::Failed(error)) => return Err(error),
                Err(Unserved::MoveToSuccessor) => (job, sink) = again,
            }
            moves += 1;
        }
    }

    async fn forward_to(
        self: &Arc<Self>,
        (entry, params): (Arc<ServerEntry>, Option<String>),
        mut job: BackendRequest,
        method: Method,
        guest: &Arc<DownstreamClient>,
        sink: ClientSink,
        goes_on: impl Fn() -> Handover,
    ) -> Result<ByteString, Unserved> {
        let client = job.pact.revision();
        let given = job.params.clone();
        if let Some(params) = params {
            job.params = params.into();
        }
        aggregate_tasks::check_task(&entry, method, &job.params, client)?;
        // What the client carries for a server is that server's.
        let opened = sealed_state::unsealed(self, &entry, guest.principal(), &job.params)?;
        if let Cow::Owned(params) = opened {
            job.params = params.into();
        }
        // The binding of the client at this server; an idle server is started here.
        let binding = guest.part(self, &entry).await;
        let binding = binding.map_err(|error| Unserved::of(error.at(&entry.name), &goes_on))?;
        let sent = job.params.clone();
        // The server translates; the view shows its addresses as clients know them.
        let view = Rewriter::new(self, &entry, &guest.watched);
        let sink = sink.seeing(Arc::new(view.clone()));
        let carried = match method {
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                let watching =
                    SubscriptionChange::begin(method, guest, &entry, &given, &job.params);
                if method == Method::ResourcesSubscribe {
                    guest.subscribes(&job);
                }
                let carried = entry.server.carry_unless(job, binding, sink, goes_on).await;
                watching.end(carried.is_ok());
                // The server may have been removed before the subscription was recorded.
                if subscriptions::numbered(self, entry.number).is_none() {
                    subscriptions::follow_for(self, guest);
                }
                carried
            }
            _ => entry.server.carry_unless(job, binding, sink, goes_on).await,
        };
        match carried {
            Ok(raw) => {
                let called = || ItemNames::by(method, &given, &sent);
                let sealed = sealed_state::sealed(self, &entry, guest.principal(), called, raw);
                Ok(view.result(method, sealed))
            }
            Err(Unserved::MoveToSuccessor) => Err(Unserved::MoveToSuccessor),
            Err(Unserved::Failed(error)) => {
                let uri = match subject(method, &given) {
                    Subject::Uri(uri) => Some(uri),
                    Subject::Tool(_) | Subject::Prompt(_) | Subject::Task(_) | Subject::Nothing => {
                        None
                    }
                };
                let error = error.map_wire(|error| view.error(error, uri.as_deref()));
                if error.code() == ErrorCode::InvalidParams.code()
                    && let Some(kind) = named_kind(method, &given)
                {
                    let names = ItemNames::by(method, &given, &sent);
                    let is_there = self.check_listed(guest, &entry, kind, &names, client);
                    is_there.await?;
                }
                Err(Unserved::Failed(error))
            }
        }
    }

    /// Whether a client ends a subscription that waits for its server, or is one of several to the same thing, and is
    /// over with it.
    fn forgets(&self, guest: &DownstreamClient, params: &str) -> bool {
        let Subject::Uri(uri) = subject(Method::ResourcesUnsubscribe, params) else {
            return false;
        };
        let is_there = |number| subscriptions::numbered(self, number).is_some();
        guest.watched.forget(&uri, is_there)
    }

    /// Sets the log level of a legacy client at the servers it is connected to; other servers get it on connection.
    async fn set_level(
        self: &Arc<Self>,
        job: &BackendRequest,
        guest: &Arc<DownstreamClient>,
        sink: &ClientSink,
    ) -> Result<ByteString, ServeError> {
        level_of(job)?;
        guest.want_logs(again(job));
        let profile = guest.profile();
        for entry in &self.server_set().entries {
            if profile.contains(&entry.number)
                && let Ok(binding) = guest.part(self, entry).await
            {
                // A server that keeps no log has nothing to leave out.
                let _ = entry.server.carry(again(job), binding, sink.clone()).await;
            }
        }
        Ok(ByteString::from_static("{}"))
    }
}

/// Returns the list of the tool or prompt that a request names.
fn named_kind(method: Method, params: &str) -> Option<ListKind> {
    match subject(method, params) {
        Subject::Tool(_) => Some(ListKind::Tools),
        Subject::Prompt(_) => Some(ListKind::Prompts),
        Subject::Uri(_) | Subject::Task(_) | Subject::Nothing => None,
    }
}
