//! In-flight request to an upstream server, and its response.

pub(crate) mod cache_scope;
pub(crate) mod flows;
pub(crate) mod rounds;
pub(crate) mod server_change;
pub(crate) mod trace;

use crate::sync::lock;
use crate::tasks::same_era;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytestring::ByteString;
use mcpact::server::backend::{BackendRequest, ResponseMode};
use mcpact_engine::server::Scope;
use mcpact_spec::{Capability, Era, ErrorCode, LogLevel, Method, Revision};
use mcpact_translate::cursor::{self, CursorOwner};
use mcpact_translate::plan::{request_params, with_progress_token, with_reported_token};
use mcpact_translate::progress::Progress;
use mcpact_translate::shape::{ShapeError, error, result};
use mcpact_translate::tasks::with_task_support;
use mcpact_transport::budget::MemoryExhausted;
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{JsonKind, Object};
use mcpact_wire::scan::ScanError;

use crate::connection::UpstreamConnection;
use crate::connection::pool::{Lease, QuestionPermit};
use crate::downstream::sink::ClientSink;
use crate::error::{ServeError, UpstreamErrorKind, wire_error};
use crate::exchange::server_change::disagreed;
use crate::retry::{Attempt, Cause, Retry, ServerDoubt};
use crate::subscriptions::log_levels::{self, LogLevelGuard};
use crate::supervisor::CallGuard;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, Delivery, RawRequest, RawResult,
    ServerNotification, ServerResponse,
};

/// Request of a client that waits for the response, and the sink for its notifications.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) job: BackendRequest,
    pub(crate) sink: ClientSink,
}

/// Declaration of task support that a modern server gets for a legacy client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclaredTasks {
    /// The capabilities as the client declared them.
    AsDeclared,
    /// The client's capabilities plus task support: the gateway follows tasks for the client.
    WithTasks,
}

/// In-flight request between a client and a server, possibly of different revisions.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) inbound: Inbound,
    pub(crate) binding: Arc<ServerBinding>,
    pub(crate) connection: Arc<UpstreamConnection>,
    /// Permit for the slot to use, if calls that may cause questions run one at a time.
    pub(crate) turn: Option<QuestionPermit>,
    /// Permission to make a call on the connection, while one is in flight.
    pub(crate) guard: Option<CallGuard>,
    pub(crate) progress: Progress,
    /// Log level of the request at a legacy server, set once the request was sent.
    pub(crate) log_level: Option<LogLevelGuard>,
    pub(crate) declared_tasks: DeclaredTasks,
    /// True once the request was sent to the server.
    pub(crate) is_sent: Arc<AtomicBool>,
}

impl Inbound {
    pub(crate) fn revision(&self) -> Revision {
        self.job.pact.revision()
    }

    /// Forwards a notification about this request if the client wants it.
    pub(crate) async fn notify(&self, note: &ServerNotification, progress: &mut Progress) {
        let params = &note.params;
        let params = match note.method {
            Method::Progress => self.reported(params, progress),
            Method::LoggingMessage => Some(params.to_string()),
            _ => None,
        };
        let Some(params) = params else {
            return;
        };
        let scope = Scope::Request(self.job.id.clone());
        self.sink.notify(&scope, note.method, &params).await;
    }

    /// Translates a progress notification: client's own token, increasing values, client's revision.
    fn reported(&self, params: &str, progress: &mut Progress) -> Option<String> {
        let token = self.job.progress_token.as_deref()?;
        let reported = progress.report(params, self.revision()).ok()??;
        with_reported_token(&reported, token).ok()
    }
}

impl Exchange {
    pub(crate) fn new(
        inbound: Inbound,
        binding: Arc<ServerBinding>,
        connection: Arc<UpstreamConnection>,
    ) -> Self {
        Self {
            inbound,
            binding,
            connection,
            turn: None,
            guard: None,
            progress: Progress::default(),
            log_level: None,
            declared_tasks: DeclaredTasks::AsDeclared,
            is_sent: Arc::default(),
        }
    }

    pub(crate) fn downstream(&self) -> Revision {
        self.inbound.revision()
    }

    pub(crate) fn upstream(&self) -> Revision {
        self.connection.revision()
    }

    /// Returns the client's parameters, translated to the server's revision.
    pub(crate) fn params(&self) -> Result<ByteString, ServeError> {
        let job = &self.inbound.job;
        let raw = &job.params;
        // Same revision on both sides: no translation needed.
        if self.downstream() == self.upstream() {
            return Ok(ByteString::clone(raw));
        }
        let params = request_params(job.method, raw, self.downstream(), self.upstream())
            .map_err(|fault| self.malformed(&fault))?;
        Ok(match (self.cursor_owner(), params) {
            (Some(owner), params) => {
                let params = cursor::request_params(&params, owner, self.downstream())?;
                params.into_owned().into()
            }
            (None, Cow::Borrowed(_)) => ByteString::clone(raw),
            (None, Cow::Owned(params)) => params.into(),
        })
    }

    /// Returns the owner of the pagination cursors of a list method, if the two eras differ about it.
    fn cursor_owner(&self) -> Option<CursorOwner<'_>> {
        if !self.inbound.job.method?.is_paginated() {
            return None;
        }
        match (self.downstream().era(), self.upstream().era()) {
            (Era::Modern, Era::Legacy) => Some(CursorOwner::Session(&self.connection.name)),
            (Era::Legacy, Era::Modern) => Some(CursorOwner::Server),
            _ => None,
        }
    }

    pub(crate) fn malformed(&self, fault: &ShapeError) -> ServeError {
        let why = format!("Invalid params: {fault}");
        refuse(ErrorCode::InvalidParams, why, self.downstream())
    }

    /// Sends the request with these parameters. If the server refused it unread, it is resent once on a new
    /// connection. A request that may have run is never resent.
    pub(crate) async fn send(&mut self, params: &str) -> Result<Call, ServeError> {
        self.send_until(params, std::future::pending()).await
    }

    /// Like [`send`](Self::send); completion of `seen` proves delivery before the server responds.
    pub(crate) async fn send_until(
        &mut self,
        params: &str,
        seen: impl Future<Output = ()>,
    ) -> Result<Call, ServeError> {
        if self.guard.is_none() {
            self.acquire().await?;
        }
        let mut call = self.send_once(params).await?;
        let delivery = tokio::select! {
            delivery = call.refused() => delivery,
            () = seen => Delivery::Unknown,
        };
        // Here and not in the pipeline's loop: in a later input round the client must not be asked again.
        let attempt = Attempt::new(Cause::ConnectionStale, delivery);
        if attempt.decide() == Retry::FreshConnection {
            let method = self.inbound.job.method;
            self.binding.check_state_on(&self.connection, method)?;
            self.guard = None;
            let before = self.upstream();
            self.acquire().await?;
            if self.upstream() != before {
                return Err(self.changed());
            }
            call = self.send_once(params).await?;
        }
        self.connection.stateful_use.note(self.inbound.job.method);
        Ok(call)
    }

    /// Acquires a connection with capacity for a call.
    pub(crate) async fn acquire(&mut self) -> Result<(), ServeError> {
        same_era::check_same_instance(self)?;
        // Subscriptions and the log level are set on the connection that delivers the client's notifications.
        let is_for_client = matches!(
            self.inbound.job.method,
            Some(
                Method::ResourcesSubscribe | Method::ResourcesUnsubscribe | Method::LoggingSetLevel
            )
        );
        let lease = match &self.turn {
            Some(turn) => turn.slot.acquire(&self.binding.user()).await,
            None if is_for_client => self.binding.slot.acquire(&self.binding.user()).await,
            None => self.binding.acquire().await,
        };
        let lease = lease.map_err(|error| match self.is_sent.load(Ordering::Relaxed) {
            true => error.for_sent_call(),
            false => error,
        });
        let Lease { connection, guard } = lease?;
        self.connection = connection;
        self.guard = Some(guard);
        Ok(())
    }

    async fn send_once(&mut self, params: &str) -> Result<Call, ServeError> {
        let job = &self.inbound.job;
        if job.method != Some(Method::LoggingSetLevel) {
            lock(&self.connection.users).add(&self.binding.user());
        }
        let upstream = &self.connection.upstream;
        let number = upstream.next_id();
        if let Some(level) = job.log_level
            && self.upstream().era() == Era::Legacy
        {
            let request = u64::try_from(number).unwrap_or_default();
            // Boxed: this is rare, and would otherwise enlarge the future of every call.
            let raising = Box::pin(log_levels::raise(&self.connection, request, level));
            self.log_level = Some(raising.await);
        }
        let mut params = Cow::Borrowed(params);
        // With one stream per call and no state between calls, tokens of different clients cannot collide.
        let keeps_token = upstream.has_own_streams() && self.upstream().era() == Era::Modern;
        if job.progress_token.is_some() && !keeps_token {
            let ours = with_progress_token(&params, &number.to_string());
            params = ours.map_err(|fault| self.malformed(&fault))?.into();
        }
        let params = self.stamped(&params)?;
        let request = RawRequest {
            method: job.method,
            name: &job.name,
            params: Some(&params),
            trace: job.trace.as_deref(),
        };
        self.is_sent.store(true, Ordering::Relaxed);
        Ok(upstream.call(number, request, &self.connection.book).await)
    }

    /// Returns the parameters with the metadata that this server needs for this client.
    pub(crate) fn stamped<'p>(&self, params: &'p str) -> Result<Cow<'p, str>, ServeError> {
        let mode = self.inbound.job.response_mode;
        let stamped = stamped(
            &self.binding,
            mode,
            self.declared_tasks,
            self.upstream(),
            params,
        );
        let stamped = stamped.map_err(|fault| self.malformed(&fault.into()))?;
        Ok(stamped.map_or(Cow::Borrowed(params), Cow::Owned))
    }

    /// Returns true if the call may become a task that the gateway follows and the server has not been informed of
    /// that.
    pub(crate) fn may_take_tasks(&self) -> bool {
        let stamp = self.binding.stamp.as_ref();
        self.declared_tasks == DeclaredTasks::AsDeclared
            && self.inbound.job.method == Some(Method::ToolsCall)
            && stamp.is_some_and(|stamp| stamp.with_tasks.is_some())
    }

    /// Sends a separate request to the server on behalf of this client.
    pub(crate) async fn request_separately(
        &self,
        method: Method,
        params: &str,
    ) -> Result<RawResult, ServeError> {
        let params = self.stamped(params)?;
        match self.connection.request(method, &params).await {
            Ok(ServerResponse::Result(raw)) => Ok(raw),
            Ok(ServerResponse::Error(raw)) => Err(self.error(&raw)),
            Err(loss) => Err(self.lost(&loss)),
        }
    }

    /// Waits for the response and forwards all notifications that precede it.
    pub(crate) async fn reply(&mut self, call: &mut Call) -> Result<ServerResponse, ServeError> {
        loop {
            match call.next().await {
                CallEvent::Notification(note) => {
                    self.inbound.notify(&note, &mut self.progress).await
                }
                CallEvent::Response(reply) => {
                    self.note_answer();
                    return Ok(reply);
                }
                CallEvent::Failed(loss) => return Err(self.lost(&loss)),
                CallEvent::Request(ask) => {
                    // A modern server sends no requests, and the callers of this function expect none.
                    tracing::warn!(method = ?ask.method, "request of the server dropped: not allowed during this call");
                }
            }
        }
    }

    /// Records that the call waits for the input of its client, or no longer does.
    pub(crate) fn set_suspended(&mut self, is_suspended: bool) {
        if let Some(turn) = &self.turn {
            turn.set_suspended(is_suspended);
        }
        if let Some(guard) = &mut self.guard {
            guard.set_suspended(is_suspended);
        }
    }

    /// Error for a request that was not sent because the server's revision changed.
    pub(crate) fn changed(&self) -> ServeError {
        let error = self.binding.lost_call(UpstreamErrorKind::RevisionChanged);
        ServeError::from(error).with_doubt(Some(ServerDoubt::NotSent))
    }

    /// Error for a call that failed on its connection.
    pub(crate) fn lost(&self, loss: &CallFailure) -> ServeError {
        let doubt = server_change::doubt(loss, self.upstream());
        self.failed(loss).with_doubt(doubt)
    }

    fn failed(&self, loss: &CallFailure) -> ServeError {
        let kind = match loss {
            CallFailure::RevisionRefused => disagreed(self.upstream()),
            CallFailure::SessionLost => UpstreamErrorKind::SessionLost,
            CallFailure::ConnectionLost(_) if self.connection.is_ended() => {
                UpstreamErrorKind::Stopped
            }
            CallFailure::ConnectionLost(why) => {
                self.binding.loss_error(&self.connection, why.clone())
            }
            CallFailure::ProtocolViolation(why) => {
                UpstreamErrorKind::ProtocolViolation(why.clone())
            }
            CallFailure::NotSent(why) => UpstreamErrorKind::NotSent(why.clone()),
            CallFailure::Unreachable(error) => UpstreamErrorKind::Transport(Arc::clone(error)),
            CallFailure::LoopDetected => UpstreamErrorKind::Loop,
            CallFailure::Ambiguous(AmbiguousRefusal {
                error: Some(raw), ..
            }) => {
                self.note_answer();
                return self.error(raw);
            }
            CallFailure::Ambiguous(AmbiguousRefusal { status, .. })
            | CallFailure::HttpStatus(status) => UpstreamErrorKind::HttpStatus {
                status: *status,
                has_credentials: self.binding.slot.has_credentials(),
            },
            CallFailure::ResponseTooLarge(limit) => {
                let kind = UpstreamErrorKind::ResponseTooLarge { limit: *limit };
                return self.binding.error(kind).into();
            }
            CallFailure::MemoryExhausted => {
                let kind = UpstreamErrorKind::MemoryExhausted(MemoryExhausted);
                return self.binding.error(kind).into();
            }
        };
        self.binding.lost_call(kind).into()
    }

    /// Records a subscription or log level that a legacy server accepted, to restore it in a later session.
    pub(crate) fn remember(&self, reply: &ServerResponse) {
        if let (ServerResponse::Result(_), Some(method)) = (reply, self.inbound.job.method) {
            let Inbound { job, sink } = &self.inbound;
            let subscribers = &self.connection.subscribers;
            subscribers.record(sink, method, &job.params);
        }
    }

    /// Records that the server has responded, which proves that it is alive.
    fn note_answer(&self) {
        let is_list = self.inbound.job.method.is_some_and(Method::is_paginated);
        match &self.guard {
            Some(guard) if is_list => guard.answered(),
            Some(guard) => guard.served(),
            None => {}
        }
    }

    /// Translates the response to the client's revision.
    pub(crate) fn finished(&self, reply: &ServerResponse) -> Result<RawResult, ServeError> {
        self.note_answer();
        match reply {
            ServerResponse::Result(raw) => {
                if self.inbound.job.method == Some(Method::ToolsList) {
                    self.connection.learn_tools(raw);
                }
                self.result(raw)
            }
            ServerResponse::Error(raw) => Err(self.error(raw)),
        }
    }

    pub(crate) fn result(&self, raw: &RawResult) -> Result<RawResult, ServeError> {
        if !raw.starts_with('{') {
            // Every revision requires an object.
            let (name, kind) = (&self.inbound.job.name, JsonKind::of(raw));
            let why = format!("the result of `{name}` must be an object, got `{kind}`");
            let kind = UpstreamErrorKind::ProtocolViolation(why);
            return Err(self.binding.error(kind).into());
        }
        match self.inbound.job.method {
            Some(method) if self.downstream() != self.upstream() => {
                let translated = self.translated_result(method, raw);
                let translated = translated.map_err(|fault| self.unfit("result", fault))?;
                Ok(raw.translated(translated))
            }
            _ => Ok(raw.clone()),
        }
    }

    fn translated_result(&self, method: Method, raw: &str) -> Result<ByteString, ShapeError> {
        let (down, up) = (self.downstream(), self.upstream());
        let mut shaped = result(method, raw, up, down, Some(&self.connection.server_info))?;
        // The gateway hosts tasks for this client, so every tool can run as a task.
        if method == Method::ToolsList
            && up.era() == Era::Modern
            && (self.inbound.job.pact).declares(Capability::ServerTasksToolsCall)
        {
            shaped = with_task_support(&shaped)?.into_owned().into();
        }
        let shaped = match self.cursor_owner() {
            Some(owner) => cursor::result(&shaped, owner)?.into_owned(),
            None => shaped.into_owned(),
        };
        Ok(shaped.into())
    }

    /// Error for a message that cannot be translated to the client's revision.
    pub(crate) fn unfit(&self, what: &'static str, fault: ShapeError) -> ServeError {
        let to = self.downstream();
        let kind = UpstreamErrorKind::Untranslatable { what, to, fault };
        self.binding.error(kind).into()
    }

    pub(crate) fn error(&self, raw: &str) -> ServeError {
        let (down, up) = (self.downstream(), self.upstream());
        let job = &self.inbound.job;
        let shaped = error(job.method, raw, &job.params, up, down);
        let shaped = shaped.unwrap_or(raw.into());
        let body = ErrorBody::parse(&shaped).unwrap_or(ErrorBody {
            code: ErrorCode::InternalError.code(),
            message: "The server returned an invalid error".into(),
            data: None,
        });
        let data = body.data.map(str::to_owned);
        let error = wire_error(body.code, body.message.into_owned(), data, down);
        ServeError::response(error)
    }
}

/// Adds the metadata of a legacy client that a modern server needs. Returns `None` if the client sends it itself.
pub(crate) fn stamped(
    binding: &ServerBinding,
    mode: ResponseMode,
    tasks: DeclaredTasks,
    upstream: Revision,
    params: &str,
) -> Result<Option<String>, ScanError> {
    let Some(stamp) = &binding.stamp else {
        return Ok(None);
    };
    let [with_stream, without_stream] = match (tasks, &stamp.with_tasks) {
        (DeclaredTasks::WithTasks, Some(with_tasks)) => with_tasks,
        _ => &stamp.capabilities,
    };
    let capabilities = match mode {
        ResponseMode::Stream => with_stream,
        ResponseMode::Single => without_stream,
    };
    let stamp = Stamp {
        version: upstream.as_str(),
        capabilities,
        client_info: Some(&stamp.info),
        log_level: binding.level().map(LogLevel::as_str),
    };
    stamp.apply(Some(params)).map(Some)
}

/// Returns the log level that a legacy client requested.
pub(crate) fn level_of(job: &BackendRequest) -> Result<LogLevel, ServeError> {
    let params = Object::parse(&job.params).unwrap_or_default();
    let level = params.get_str("level").unwrap_or_default();
    LogLevel::parse(&level).ok_or_else(|| {
        let why = format!("`{level}` is not a log level");
        refuse(ErrorCode::InvalidParams, why, job.pact.revision())
    })
}

/// Refusal for a client of this revision.
pub(crate) fn refusal(
    code: i64,
    message: String,
    data: Option<String>,
    to: Revision,
) -> ServeError {
    wire_error(code, message, data, to).into()
}

/// Refusal without data, for a client of this revision.
pub(crate) fn refuse(code: ErrorCode, message: impl Into<String>, to: Revision) -> ServeError {
    refusal(code.code(), message.into(), None, to)
}
