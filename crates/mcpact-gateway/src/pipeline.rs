//! Processing order of a request.

use crate::exchange::cache_scope;
use crate::exchange::rounds;
use crate::handover;
use crate::lists::server_list;
use crate::subscriptions::legacy;
use crate::subscriptions::listen;
use crate::suspended;
use crate::suspended::modern;
use crate::sync::lock;
use crate::tasks::hosted;
use crate::tasks::mapped;
use crate::tasks::same_era;
use crate::upstream::pending;
use crate::upstream::rebind;
use crate::upstream::tool_filter;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytestring::ByteString;
use futures_util::future::BoxFuture;
use mcpact::server::Settings;
use mcpact::server::backend::{
    Backend, BackendRequest, ClientHello, ClientIdentity, ClientSetup, Outbox, Session,
};
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::{Scope, ServerTerms};
use mcpact_spec::{Era, ErrorCode, LogLevel, Method, Side};
use mcpact_translate::input::AnsweredResult;
use mcpact_translate::plan::{Machine, Plan, plan, with_capabilities};
use mcpact_translate::progress::Progress;
use mcpact_wire::raw::Object;
use tracing::Instrument;

use crate::downstream::sink::ClientSink;
use crate::downstream::{ClientKind, ClientState};
use crate::drain::draining_error;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::DeclaredTasks;
use crate::exchange::Exchange;
use crate::exchange::Inbound;
use crate::exchange::refusal;
use crate::exchange::refusal::RefusalRecord;
use crate::exchange::trace::ExchangeTrace;
use crate::handover::Handover;
use crate::handover::MovedBinding;
use crate::handover::Unserved;
use crate::retry::{Attempt, Retry, RetryPolicy};
use crate::subscriptions::legacy::is_subscription;
use crate::subscriptions::legacy_on_modern::EmulatedSubscriptions;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::ServerResponse;

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
        match pending::accept_pending(self, &hello, identity) {
            Some(welcome) => Ok(welcome),
            None => match self.admit(hello, identity).await {
                Err(error) if error.is_retired() => {
                    let onward = Box::pin(handover::welcome_onward(self, hello, identity)).await;
                    onward.unwrap_or(Err(error))
                }
                welcome => welcome,
            }
            .map_err(ServeError::into_wire),
        }
    }

    /// Entry point of every admitted request.
    async fn serve(
        self: Arc<Self>,
        job: BackendRequest,
        session: Arc<Session<ClientState>>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        let _pass = self.settings.drain_gate.admit(job.method)?;
        let filtered_method = self.settings.filters.result_method(&job);
        let job = self.settings.filters.filter_request(job).await?;
        let (method, client) = (job.method, job.pact.revision());
        tool_filter::check_served(&self, method, &job.params, client)
            .map_err(ServeError::into_wire)?;
        let sink = ClientSink::new(session, outbox);
        let again = (job.clone(), sink.clone());
        let raw = match self.attend(job, sink).await {
            Ok(raw) => raw,
            Err(Unserved::Failed(error)) => return Err(error.into_wire()),
            Err(Unserved::MoveToSuccessor) => {
                let (job, sink) = again;
                let onward = Box::pin(handover::attend_onward(&self, job, sink)).await;
                onward.map_err(ServeError::into_wire)?
            }
        };
        let filters = &self.settings.filters;
        filters
            .filter_result(filtered_method.as_deref(), client, raw)
            .await
    }

    fn opened(&self, session: &Arc<Session<ClientState>>, outbox: Outbox) {
        let sink = ClientSink::new(Arc::clone(session), outbox);
        self.direct_clients.add(&sink, Scope::Connection);
        if let Some(binding) = session.state().and_then(ClientState::bound) {
            self.register_session(binding, &sink);
        } else if let Some(pending) = session.state().and_then(ClientState::pending) {
            pending.set_sink(sink.downgrade());
        }
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

impl UpstreamServer {
    /// Serves a request of an accepted client.
    async fn attend(
        self: &Arc<Self>,
        job: BackendRequest,
        sink: ClientSink,
    ) -> Result<ByteString, Unserved> {
        let goes_on = || Handover {
            has_successor: handover::is_succeeded(self),
            moves: 0,
        };
        // The state is set when the client is accepted.
        let binding = match sink.state().map(|state| state.0.clone()) {
            Some(ClientKind::Bound(binding)) => binding,
            Some(ClientKind::Pending(pending)) => {
                if job.method == Some(Method::LoggingSetLevel) {
                    level_of(&job)?;
                    pending.save_level(&job);
                    if !pending.binding.initialized() {
                        return Ok(ByteString::from_static("{}"));
                    }
                }
                let profile = Box::pin(pending.binding_to(self)).await;
                profile.map_err(|error| Unserved::of(error, goes_on))?
            }
            Some(ClientKind::Moved(place)) => {
                let MovedBinding { server, binding } = &*place;
                let attended = server.attend_for(job, Arc::clone(binding), sink, goes_on);
                return Box::pin(attended).await;
            }
            Some(ClientKind::Aggregate(_)) | None => {
                let error = ErrorCode::InternalError.code();
                let why = String::from("this session has no server");
                return Err(refusal(error, why, None, job.pact.revision()).into());
            }
        };
        self.attend_for(job, binding, sink, goes_on).await
    }

    /// Serves a request with the client's binding to this server.
    pub(crate) async fn attend_for(
        self: &Arc<Self>,
        job: BackendRequest,
        binding: Arc<ServerBinding>,
        sink: ClientSink,
        goes_on: impl FnOnce() -> Handover,
    ) -> Result<ByteString, Unserved> {
        let (method, declared) = (job.method, job.pact.effective());
        if method == Some(Method::SubscriptionsListen) {
            self.direct_clients
                .add(&sink, Scope::Request(job.id.clone()));
        }
        let raw = self.carry_unless(job, binding, sink, goes_on).await?;
        Ok(tool_filter::served_only(self, method, declared, raw))
    }

    /// Serves one request of a client, without moving it to a successor.
    pub(crate) async fn carry(
        self: &Arc<Self>,
        job: BackendRequest,
        binding: Arc<ServerBinding>,
        sink: ClientSink,
    ) -> Result<ByteString, ServeError> {
        match self
            .carry_unless(job, binding, sink, || Handover::NONE)
            .await
        {
            Ok(raw) => Ok(raw),
            Err(Unserved::Failed(error)) => Err(error),
            Err(Unserved::MoveToSuccessor) => {
                Err(self.shared.error(UpstreamErrorKind::Retired).into())
            }
        }
    }

    /// Serves one request. An unsent request of a replaced server is not counted here but at the successor.
    pub(crate) async fn carry_unless(
        self: &Arc<Self>,
        job: BackendRequest,
        binding: Arc<ServerBinding>,
        sink: ClientSink,
        goes_on: impl FnOnce() -> Handover,
    ) -> Result<ByteString, Unserved> {
        tool_filter::check_able(self, &job)?;
        let (method, client) = (job.method, job.pact.revision());
        let trace = ExchangeTrace::begin(&self.shared, &job);
        let served = self
            .bring_once_more(job, binding, sink)
            .instrument(trace.span())
            .await;
        match served.map_err(|error| Unserved::of(error, goes_on)) {
            Ok(raw) => {
                trace.end(Ok(()));
                Ok(cache_scope::in_private(self, method, client, raw))
            }
            Err(Unserved::MoveToSuccessor) => {
                trace.goes_on();
                Err(Unserved::MoveToSuccessor)
            }
            Err(Unserved::Failed(error)) => {
                trace.end(Err(&error));
                Err(Unserved::Failed(error))
            }
        }
    }

    /// Resends a request that the server refused unread because it has changed. Renegotiates first: an unchanged
    /// server may have processed the request, or refuses it permanently.
    async fn bring_once_more(
        self: &Arc<Self>,
        mut job: BackendRequest,
        mut binding: Arc<ServerBinding>,
        mut sink: ClientSink,
    ) -> Result<ByteString, ServeError> {
        // A replaced local process means a new connection, which is detected before anything is sent.
        let policy = match server_list::is_remote(self) {
            true => RetryPolicy::REMOTE,
            false => RetryPolicy::LOCAL,
        };
        let mut retries = 0;
        loop {
            let may_retry = retries < policy.renegotiations;
            let again = may_retry.then(|| (job.clone(), Arc::clone(&binding), sink.clone()));
            let refusals = Arc::<RefusalRecord>::default();
            let served = self.bring(job, binding, sink, Arc::clone(&refusals)).await;
            let (Err(_), Some((refused, by)), Some(again)) = (&served, refusals.take(), again)
            else {
                return served;
            };
            let attempt = Attempt {
                retries,
                ..refused.attempt()
            };
            let decision = policy.decide(attempt);
            if decision != Retry::IfServerChanged || !refusal::is_another(refused, &by).await {
                return served;
            }
            (job, binding, sink) = again;
            retries += 1;
        }
    }

    async fn bring(
        self: &Arc<Self>,
        job: BackendRequest,
        binding: Arc<ServerBinding>,
        sink: ClientSink,
        refusals: Arc<RefusalRecord>,
    ) -> Result<ByteString, ServeError> {
        if job.method == Some(Method::LoggingSetLevel) && binding.open_connection().is_none() {
            let level = level_of(&job)?;
            binding.save_level(level, &sink, &job);
            return Ok(ByteString::from_static("{}"));
        }
        // A hosted task is answered without the server.
        if hosted::is_hosted(self, &job, &sink) {
            return Box::pin(hosted::serve_hosted(self, &Inbound { job, sink })).await;
        }
        // Report lost server state before the request has any effect.
        binding.check_kept(job.method)?;
        // Use an open connection or create a new one.
        let (binding, connection) = rebind::current(self, binding).await?;
        let exchange = Exchange {
            inbound: Inbound { job, sink },
            binding,
            connection,
            turn: None,
            guard: None,
            progress: Progress::default(),
            hearing: None,
            told: DeclaredTasks::AsDeclared,
            is_given: Arc::default(),
            refusals,
        };
        // Translation tables decide how the request is handled.
        let (down, up) = (exchange.downstream(), exchange.upstream());
        let (binding, is_sent) = (
            Arc::clone(&exchange.binding),
            Arc::clone(&exchange.is_given),
        );
        let plan = plan(exchange.inbound.job.method, down, up);
        self.shared.metrics.translated(down, up, plan);
        let serving = match plan {
            Plan::Pass | Plan::NewerServer | Plan::OlderServer => self.cross(exchange),
            Plan::Emulate(Machine::TasksExtension) => {
                Box::pin(mapped::serve_mapped(self, exchange))
            }
            Plan::Emulate(machine) => return Box::pin(self.emulate(machine, exchange)).await,
        };
        let limit = self.shared.run().call_timeout;
        let served = tokio::time::timeout(limit, serving).await;
        served.unwrap_or_else(|_| {
            let trouble = match is_sent.load(Ordering::Relaxed) {
                true => UpstreamErrorKind::CallTimeout { limit },
                false => UpstreamErrorKind::TimeoutBeforeSend { limit },
            };
            Err(binding.lost_call(trouble).into())
        })
    }

    /// Registers a legacy client's session for notifications that belong to no request.
    pub(crate) fn register_session(&self, binding: &ServerBinding, sink: &ClientSink) {
        if let Some(rebind) = binding.rebind() {
            rebind.client.set_sink(sink.downgrade());
        }
        let of_lane = binding
            .open_connection()
            .map(|connection| connection.revision().era());
        // The server may have shut down as idle since the client was accepted.
        match (
            of_lane.or(binding.rebind().map(|rebind| rebind.era)),
            server_list::profile(self),
        ) {
            (Some(Era::Legacy), _) => binding.subscribers().belong_to(sink),
            (Some(Era::Modern), Some(profile)) => {
                let server = &profile.introduction.capabilities;
                binding.set_emulated(EmulatedSubscriptions::new(server, sink, self.clock));
            }
            (Some(Era::Modern), None) | (None, _) => {}
        }
    }

    /// Selects the flow of a request. Each flow is boxed: an unboxed future is moved on every hand-off and has the
    /// size of the largest flow.
    fn cross(
        self: &Arc<Self>,
        exchange: Exchange,
    ) -> BoxFuture<'_, Result<ByteString, ServeError>> {
        let job = &exchange.inbound.job;
        if let Some(wish) = hosted::requested_task(&exchange) {
            return Box::pin(ready(hosted::host(self, exchange, &wish)));
        }
        let may_ask = job.method.is_some_and(Method::may_ask_for_input);
        match (exchange.downstream().era(), exchange.upstream().era()) {
            (Era::Legacy, Era::Modern) if may_ask => Box::pin(rounds::in_rounds(self, exchange)),
            (Era::Modern, Era::Legacy) if may_ask => Box::pin(suspended::serve(self, exchange)),
            (Era::Legacy, Era::Legacy) if is_subscription(job.method) => {
                Box::pin(legacy::subscribing_along(self, exchange))
            }
            (Era::Legacy, Era::Legacy) => Box::pin(rounds::asking_along(self, exchange)),
            (Era::Modern, Era::Legacy) => Box::pin(suspended::serve_without_questions(exchange)),
            (Era::Legacy | Era::Modern, Era::Modern) => Box::pin(self.plainly(exchange)),
        }
    }

    /// Sends a request and returns its response. Configured default answers may add input rounds in between.
    async fn plainly(&self, mut exchange: Exchange) -> Result<ByteString, ServeError> {
        let mut params = match same_era::select_instance(&mut exchange).await? {
            Some(params) => self.introduced(&exchange, params.into())?,
            None => self.introduced(&exchange, exchange.params()?)?,
        };
        let _awake = modern::answered_question(self, &exchange);
        for _ in 0..=self.settings.rounds.rounds {
            let mut call = exchange.send(&params).await?;
            let reply = exchange.reply(&mut call).await?;
            match self.settled(&exchange, &params, &reply) {
                AnsweredResult::Pass => {
                    let finished = exchange.finished(&reply)?;
                    modern::note_question(self, &exchange, &finished);
                    return Ok(same_era::record_tasks(&exchange, finished));
                }
                AnsweredResult::Ask(raw) | AnsweredResult::Answer(raw) => {
                    modern::note_question(self, &exchange, &raw);
                    return Ok(raw.into());
                }
                AnsweredResult::Fail(error) => return Err(error.into()),
                AnsweredResult::Again(next) => params = next.into(),
            }
        }
        let why = String::from("Too many input rounds: the server keeps asking");
        let code = ErrorCode::InternalError.code();
        Err(refusal(code, why, None, exchange.downstream()))
    }

    /// Returns the client's parameters. For a modern client, capabilities that default answers cover are added to its
    /// own.
    fn introduced(
        &self,
        exchange: &Exchange,
        params: ByteString,
    ) -> Result<ByteString, ServeError> {
        let client = exchange.inbound.job.pact.party(Side::Client);
        let introduced = match exchange.downstream().era() {
            Era::Legacy => None,
            Era::Modern => self
                .settings
                .default_answers
                .declared_for(&client.capabilities),
        };
        match introduced {
            Some(told) => with_capabilities(&params, told.raw())
                .map(Into::into)
                .map_err(|fault| exchange.malformed(&fault)),
            None => Ok(params),
        }
    }

    /// Applies the configured default answers to the result of a modern server, for a modern client.
    fn settled(&self, exchange: &Exchange, params: &str, reply: &ServerResponse) -> AnsweredResult {
        let job = &exchange.inbound.job;
        let default_answers = &self.settings.default_answers;
        match (reply, job.method) {
            (ServerResponse::Result(raw), Some(method))
                if !default_answers.is_empty() && method.may_ask_for_input() =>
            {
                default_answers.apply(&job.pact, method, params, raw)
            }
            _ => AnsweredResult::Pass,
        }
    }

    async fn emulate(
        &self,
        machine: Machine,
        exchange: Exchange,
    ) -> Result<ByteString, ServeError> {
        let job = &exchange.inbound.job;
        match machine {
            Machine::SetLevel => {
                exchange.binding.set_level(level_of(job)?);
                Ok(ByteString::from_static("{}"))
            }
            Machine::Ping => Ok(ByteString::from_static("{}")),
            Machine::Listen => listen::serve_stream(self, exchange).await,
            Machine::Subscribe | Machine::Unsubscribe => {
                let emulated = exchange.binding.emulated().cloned();
                match emulated {
                    Some(emulated) => emulated.wish(&exchange).await,
                    None => Err(refused(&exchange)),
                }
            }
            // A request for the result waits as long as the task is retained.
            Machine::TasksCore => hosted::serve_hosted(self, &exchange.inbound).await,
            _ => Err(refused(&exchange)),
        }
    }
}

/// Returns the log level that a legacy client requested.
pub(crate) fn level_of(job: &BackendRequest) -> Result<LogLevel, ServeError> {
    let params = Object::parse(&job.params).unwrap_or_default();
    let level = params.get_str("level").unwrap_or_default();
    LogLevel::parse(&level).ok_or_else(|| {
        let why = format!("`{level}` is not a log level");
        let code = ErrorCode::InvalidParams.code();
        refusal(code, why, None, job.pact.revision())
    })
}

/// Error for a method without a counterpart at the server.
fn refused(exchange: &Exchange) -> ServeError {
    refusal(
        ErrorCode::MethodNotFound.code(),
        format!(
            "`{}` has no counterpart at a server of {}",
            exchange.inbound.job.name,
            exchange.upstream()
        ),
        None,
        exchange.downstream(),
    )
}
