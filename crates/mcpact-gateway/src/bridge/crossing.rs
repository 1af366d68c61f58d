//! One request on its way to the server, and what comes back for it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytestring::ByteString;
use mcpact::server::backend::{BackendRequest, ResponseMode};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_spec::{Capability, Era, ErrorCode, LogLevel, Method, Revision, Site};
use mcpact_translate::cursor::{self, CursorOwner};
use mcpact_translate::plan::{request_params, with_progress_token, with_reported_token};
use mcpact_translate::progress::Progress;
use mcpact_translate::shape::{ShapeError, error, result};
use mcpact_translate::tasks::with_task_support;
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::JsonKind;
use mcpact_wire::scan::ScanError;

use super::caller::Caller;
use super::ear::Ear;
use super::lane::Lane;
use super::levels::Hearing;
use super::pool::Turn;
use super::port::Boarded;
use super::refused::{Refusals, Refused, disagreed};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::retry::{Attempt, Cause, Retry, RetryPolicy};
use crate::supervisor::CallGuard;
use mcpact::connection::Delivery;
use mcpact::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, RawRequest, ServerNotification, ServerResponse,
};

/// Whoever waits for an answer, and how it is told what.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) job: BackendRequest,
    pub(crate) ear: Ear,
}

/// What a modern server is told about a legacy client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// What the client declared.
    AsDeclared,
    /// That it follows tasks, too, which the bridge does for it.
    WithTasks,
}

/// A request between two revisions.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) waiter: Waiter,
    pub(super) caller: Arc<Caller>,
    pub(super) lane: Arc<Lane>,
    /// Where it must go, if it takes turns with others.
    pub(super) turn: Option<Turn>,
    /// The right to make a call on the lane, while there is one.
    pub(super) in_use: Option<CallGuard>,
    pub(super) progress: Progress,
    /// Its log level at a legacy server, once it was sent.
    pub(super) hearing: Option<Hearing>,
    pub(super) told: Told,
    /// Whether the server has been given it.
    pub(super) is_given: Arc<AtomicBool>,
    /// Whether it was refused in a way that may be that of another server than was met.
    pub(super) refusals: Arc<Refusals>,
}

impl Waiter {
    pub(super) fn revision(&self) -> Revision {
        self.job.pact.revision()
    }

    /// Passes on what the server tells about this request, if its client wants to hear it.
    pub(super) async fn tell(&self, note: &ServerNotification, progress: &mut Progress) {
        let params = &note.params;
        let params = match note.method {
            Method::Progress => match self.reported(params, progress) {
                Some(params) => params,
                None => return,
            },
            Method::LoggingMessage => params.to_string(),
            _ => return,
        };
        let scope = Scope::Request(self.job.id.clone());
        self.ear.tell(&scope, note.method, &params).await;
    }

    /// Progress under the client's own token, rising, in the client's words.
    fn reported(&self, params: &str, progress: &mut Progress) -> Option<String> {
        let token = self.job.progress_token.as_deref()?;
        let told = progress.report(params, self.revision()).ok()??;
        with_reported_token(&told, token).ok()
    }
}

impl Crossing {
    pub(super) fn downstream(&self) -> Revision {
        self.waiter.revision()
    }

    pub(super) fn upstream(&self) -> Revision {
        self.lane.revision()
    }

    /// The client's parameters as far as they mean something to the server.
    pub(super) fn params(&self) -> Result<ByteString, ServeError> {
        let job = &self.waiter.job;
        let raw = &job.params;
        // Whoever speaks the same revision is understood as it is.
        if self.downstream() == self.upstream() {
            return Ok(ByteString::clone(raw));
        }
        let params = request_params(job.method, raw, self.downstream(), self.upstream())
            .map_err(|fault| self.malformed(&fault))?;
        let params = match self.cursor_keeper() {
            Some(keeper) => {
                cursor::request_params(&params, keeper, self.downstream())?.into_owned()
            }
            None => match params {
                Cow::Borrowed(_) => return Ok(ByteString::clone(raw)),
                Cow::Owned(params) => params,
            },
        };
        Ok(params.into())
    }

    /// Whose cursors a list has, where the two eras differ about that.
    fn cursor_keeper(&self) -> Option<CursorOwner<'_>> {
        self.waiter
            .job
            .method
            .filter(|method| method.is_paginated())?;
        match (self.downstream().era(), self.upstream().era()) {
            (Era::Modern, Era::Legacy) => Some(CursorOwner::Session(&self.lane.name)),
            (Era::Legacy, Era::Modern) => Some(CursorOwner::Server),
            (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => None,
        }
    }

    pub(super) fn malformed(&self, fault: &ShapeError) -> ServeError {
        refusal(
            ErrorCode::InvalidParams.code(),
            format!("Invalid params: {fault}"),
            None,
            self.downstream(),
        )
    }

    /// Sends the request with these parameters. One that the server refused unseen is sent once more,
    /// on a new connection; one that it may have run is not.
    pub(super) async fn send(&mut self, params: &str) -> Result<Call, ServeError> {
        self.send_until(params, std::future::pending()).await
    }

    /// The same; `seen` shows that the server has seen the request before it says so itself.
    pub(super) async fn send_until(
        &mut self,
        params: &str,
        seen: impl Future<Output = ()>,
    ) -> Result<Call, ServeError> {
        if self.in_use.is_none() {
            self.board().await?;
        }
        let mut call = self.send_once(params).await?;
        let delivery = tokio::select! {
            delivery = call.refused() => delivery,
            () = seen => Delivery::Unknown,
        };
        let attempt = Attempt {
            cause: Cause::ConnectionStale,
            delivery,
            // Checked below, because it is reported as its own error.
            state_lost: false,
            has_successor: false,
            retries: 0,
        };
        if RetryPolicy::REMOTE.decide(attempt) == Retry::FreshConnection {
            let method = self.waiter.job.method;
            self.caller.check_kept_on(&self.lane, method)?;
            self.in_use = None;
            let before = self.upstream();
            self.board().await?;
            if self.upstream() != before {
                return Err(self.changed());
            }
            call = self.send_once(params).await?;
        }
        self.lane.keepsake.note(self.waiter.job.method);
        Ok(call)
    }

    /// Gets a connection that has room for a call.
    pub(super) async fn board(&mut self) -> Result<(), ServeError> {
        self.check_place()?;
        let boarded = match (&self.turn, self.waiter.job.method) {
            (Some(turn), _) => self.caller.board_at(&turn.port).await,
            // What a client sets is set where it hears of it.
            (
                None,
                Some(
                    Method::ResourcesSubscribe
                    | Method::ResourcesUnsubscribe
                    | Method::LoggingSetLevel,
                ),
            ) => self.caller.board_at_home().await,
            (None, _) => self.caller.board().await,
        };
        let boarded = boarded.map_err(|error| match self.is_given.load(Ordering::Relaxed) {
            true => error.for_sent_call(),
            false => error,
        });
        let Boarded { lane, in_use } = boarded?;
        self.lane = lane;
        self.in_use = Some(in_use);
        Ok(())
    }

    async fn send_once(&mut self, params: &str) -> Result<Call, ServeError> {
        let job = &self.waiter.job;
        if job.method != Some(Method::LoggingSetLevel) {
            self.lane.patrons.came(&self.caller.user());
        }
        let upstream = &self.lane.upstream;
        let number = upstream.next_id();
        if let Some(level) = job
            .log_level
            .filter(|_| self.upstream().era() == Era::Legacy)
        {
            let request = u64::try_from(number).unwrap_or_default();
            // In a box: what is rare makes every call larger otherwise.
            self.hearing = Some(Box::pin(self.lane.hear(request, level)).await);
        }
        let job = &self.waiter.job;
        let upstream = &self.lane.upstream;
        let mut params = Cow::Borrowed(params);
        if job.progress_token.is_some() && !self.keeps_token() {
            let ours = with_progress_token(&params, &number.to_string());
            params = ours.map_err(|fault| self.malformed(&fault))?.into();
        }
        let params = self.stamped(&params)?;
        let order = RawRequest {
            method: job.method,
            name: &job.name,
            params: Some(&params),
            trace: job.trace.as_deref(),
        };
        self.is_given.store(true, Ordering::Relaxed);
        Ok(upstream.call(number, order, &self.lane.book).await)
    }

    /// The parameters as this server gets them on behalf of this client.
    pub(super) fn stamped<'p>(&self, params: &'p str) -> Result<Cow<'p, str>, ServeError> {
        let reach = self.waiter.job.response_mode;
        let stamped = stamped(&self.caller, reach, self.told, self.upstream(), params);
        let stamped = stamped.map_err(|fault| self.malformed(&fault.into()))?;
        Ok(stamped.map_or(Cow::Borrowed(params), Cow::Owned))
    }

    /// Whether the call may become a task that is followed here, which the server does not know yet.
    pub(super) fn may_take_tasks(&self) -> bool {
        let stamp = self.caller.stamp.as_ref();
        self.told == Told::AsDeclared
            && self.waiter.job.method == Some(Method::ToolsCall)
            && stamp.is_some_and(|stamp| stamp.with_tasks.is_some())
    }

    /// Asks the server something besides, on behalf of this client.
    pub(super) async fn aside(
        &self,
        method: Method,
        params: &str,
    ) -> Result<ByteString, ServeError> {
        let params = self.stamped(params)?;
        match self.lane.request(method, &params).await {
            Ok(ServerResponse::Result(raw)) => Ok(raw),
            Ok(ServerResponse::Error(raw)) => Err(self.error(&raw)),
            Err(loss) => Err(self.lost(&loss)),
        }
    }

    /// Where every call has a stream of its own and the server keeps nothing between calls, nobody
    /// can mistake one client's token for another's.
    fn keeps_token(&self) -> bool {
        self.lane.upstream.has_own_streams() && self.upstream().era() == Era::Modern
    }

    /// Waits for the answer and passes on everything before it; `ask` deals with questions.
    pub(super) async fn reply(&mut self, call: &mut Call) -> Result<ServerResponse, ServeError> {
        loop {
            match call.next().await {
                CallEvent::Notification(note) => self.waiter.tell(&note, &mut self.progress).await,
                CallEvent::Response(reply) => {
                    self.note_answer();
                    return Ok(reply);
                }
                CallEvent::Failed(loss) => return Err(self.lost(&loss)),
                CallEvent::Request(ask) => {
                    // A modern server asks nothing; whoever calls here expects nothing else.
                    tracing::warn!(method = ?ask.method, "a question that has no place here");
                }
            }
        }
    }

    /// What is told of a request that is not sent, because the server speaks another revision than before.
    pub(super) fn changed(&self) -> ServeError {
        self.refusals.note(Refused::Unsent, &self.caller);
        self.caller
            .lost_call(UpstreamErrorKind::RevisionChanged)
            .into()
    }

    pub(super) fn lost(&self, loss: &CallFailure) -> ServeError {
        let refusals = &self.refusals;
        refusals.note_loss(loss, self.upstream(), &self.caller);
        let trouble = match loss {
            CallFailure::RevisionRefused => disagreed(self.upstream()),
            CallFailure::SessionLost => UpstreamErrorKind::SessionLost,
            CallFailure::ConnectionLost(_) if self.lane.is_ended() => UpstreamErrorKind::Stopped,
            CallFailure::ConnectionLost(why) => self.caller.gone(&self.lane, why.clone()),
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
            | CallFailure::HttpStatus(status) => self.status(*status),
            CallFailure::ResponseTooLarge(limit) => {
                let trouble = UpstreamErrorKind::ResponseTooLarge { limit: *limit };
                return self.caller.error(trouble).into();
            }
        };
        self.caller.lost_call(trouble).into()
    }

    fn status(&self, status: u16) -> UpstreamErrorKind {
        UpstreamErrorKind::HttpStatus {
            status,
            has_credentials: self.caller.has_credentials(),
        }
    }

    /// Notes what a legacy server took from a legacy client, for a session after this one.
    pub(super) fn remember(&self, reply: &ServerResponse) {
        if let (ServerResponse::Result(_), Some(method)) = (reply, self.waiter.job.method) {
            let params = &self.waiter.job.params;
            let ear = &self.waiter.ear;
            self.lane.audience.granted(ear, method, params);
        }
    }

    /// The server lives: it has answered.
    fn note_answer(&self) {
        if let Some(in_use) = &self.in_use {
            in_use.answered();
        }
    }

    /// The answer in the client's words.
    pub(super) fn finished(&self, reply: &ServerResponse) -> Result<ByteString, ServeError> {
        self.note_answer();
        match reply {
            ServerResponse::Result(raw) => {
                if self.waiter.job.method == Some(Method::ToolsList) {
                    self.lane.learn_tools(raw);
                }
                self.result(raw)
            }
            ServerResponse::Error(raw) => Err(self.error(raw)),
        }
    }

    pub(super) fn result(&self, raw: &ByteString) -> Result<ByteString, ServeError> {
        if !raw.starts_with('{') {
            return Err(self.no_result(raw));
        }
        let (down, up) = (self.downstream(), self.upstream());
        let Some(method) = self.waiter.job.method.filter(|_| down != up) else {
            return Ok(raw.clone());
        };
        let shaped = result(method, raw, up, down, Some(&self.lane.server_info))
            .and_then(|shaped| self.offering_tasks(shaped));
        let paged = shaped.and_then(|shaped| match self.cursor_keeper() {
            Some(keeper) => cursor::result(&shaped, keeper).map(Cow::into_owned),
            None => Ok(shaped.into_owned()),
        });
        paged
            .map(Into::into)
            .map_err(|fault| self.unfit("result", fault))
    }

    /// What is told of something that the client cannot be told.
    pub(super) fn unfit(&self, what: &'static str, fault: ShapeError) -> ServeError {
        let to = self.downstream();
        let trouble = UpstreamErrorKind::Untranslatable { what, to, fault };
        self.caller.error(trouble).into()
    }

    /// What is told of a result that is none: in every revision it is an object.
    fn no_result(&self, raw: &str) -> ServeError {
        let (name, kind) = (&self.waiter.job.name, JsonKind::of(raw));
        let why = format!("its answer to `{name}` should be `object`, and is `{kind}`");
        self.caller
            .error(UpstreamErrorKind::ProtocolViolation(why))
            .into()
    }

    /// Where tasks are hosted here, every tool runs as one.
    fn offering_tasks<'r>(&self, page: Cow<'r, str>) -> Result<Cow<'r, str>, ShapeError> {
        let job = &self.waiter.job;
        let hosts = job.method == Some(Method::ToolsList)
            && self.upstream().era() == Era::Modern
            && job.pact.declares(Capability::ServerTasksToolsCall);
        if !hosts {
            return Ok(page);
        }
        Ok(Cow::Owned(with_task_support(&page)?.into_owned()))
    }

    pub(super) fn error(&self, raw: &str) -> ServeError {
        let (down, up) = (self.downstream(), self.upstream());
        let job = &self.waiter.job;
        let shaped = error(job.method, raw, &job.params, up, down);
        let shaped = shaped.unwrap_or(raw.into());
        ServeError::Response(match ErrorBody::parse(&shaped) {
            Some(body) => wire_error(
                body.code,
                body.message.into_owned(),
                body.data.map(str::to_owned),
                down,
            ),
            None => wire_error(
                ErrorCode::InternalError.code(),
                String::from("The server's error cannot be read"),
                None,
                down,
            ),
        })
    }
}

/// The parameters with what a modern server is told about a legacy client; none where the client
/// says it itself.
pub(super) fn stamped(
    caller: &Caller,
    reach: ResponseMode,
    told: Told,
    upstream: Revision,
    params: &str,
) -> Result<Option<String>, ScanError> {
    let Some(stamp) = &caller.stamp else {
        return Ok(None);
    };
    let following = stamp.with_tasks.as_ref();
    // Whatever the client could be asked, without a stream there is no way to ask it.
    let capabilities = match (told, reach, following) {
        (Told::WithTasks, ResponseMode::Stream, Some([following, _])) => following,
        (Told::WithTasks, ResponseMode::Single, Some([_, out_of_reach])) => out_of_reach,
        (Told::AsDeclared, ResponseMode::Stream, _)
        | (Told::WithTasks, ResponseMode::Stream, None) => &stamp.capabilities,
        (Told::AsDeclared, ResponseMode::Single, _)
        | (Told::WithTasks, ResponseMode::Single, None) => &stamp.out_of_reach,
    };
    let stamp = Stamp {
        version: upstream.as_str(),
        capabilities,
        client_info: Some(&stamp.info),
        log_level: caller.level().map(LogLevel::as_str),
    };
    stamp.apply(Some(params)).map(Some)
}

/// An error for a client of this revision.
pub(crate) fn refusal(
    code: i64,
    message: String,
    data: Option<String>,
    to: Revision,
) -> ServeError {
    ServeError::Refused(wire_error(code, message, data, to))
}

/// Error in JSON-RPC form, with the HTTP status that its code has for a client of this revision.
pub(crate) fn wire_error(
    code: i64,
    message: String,
    data: Option<String>,
    to: Revision,
) -> WireError {
    WireError {
        code,
        message,
        data,
        http_status: ErrorCode::parse(code)
            .map_or(200, |known| known.http_status(to, Site::Application)),
    }
}
