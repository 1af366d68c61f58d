//! One request on its way to the server, and what comes back for it.

use std::sync::Arc;

use mcpact::server::backend::{Job, Reach};
use mcpact_bridge::plan::{params_up, with_progress_token, with_reported_token};
use mcpact_bridge::progress::Progress;
use mcpact_bridge::shape::{ShapeError, lower_error, lower_result, raise_error, raise_result};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_spec::{Era, ErrorCode, LogLevel, Method, Revision, Site};
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};
use mcpact_wire::scan::ScanError;

use super::caller::Caller;
use super::ear::Ear;
use super::lane::Lane;
use crate::upstream::{Call, Event, Loss, Note, Ordered, Reply, text};

/// Whoever waits for an answer, and how it is told what.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) job: Job,
    pub(super) ear: Ear,
}

/// A request between two revisions.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) waiter: Waiter,
    pub(super) caller: Arc<Caller>,
    pub(super) lane: Arc<Lane>,
    pub(super) progress: Progress,
}

impl Waiter {
    pub(super) fn revision(&self) -> Revision {
        self.job.pact.revision()
    }

    /// Passes on what the server tells about this request, if its client wants to hear it.
    pub(super) async fn tell(&self, note: &Note, progress: &mut Progress) {
        let params = text(&note.params);
        let params = match note.method {
            Method::Progress => match self.reported(params, progress) {
                Some(params) => params,
                None => return,
            },
            Method::LoggingMessage => params.to_owned(),
            _ => return,
        };
        let scope = Scope::Request(self.job.id.clone());
        self.ear.tell(scope, note.method, &params).await;
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
    pub(super) fn params(&self) -> Result<String, WireError> {
        let job = &self.waiter.job;
        let raw = text(&job.params);
        params_up(job.method, raw, self.downstream(), self.upstream())
            .map(std::borrow::Cow::into_owned)
            .map_err(|fault| self.malformed(&fault))
    }

    pub(super) fn malformed(&self, fault: &ShapeError) -> WireError {
        wire_error(
            ErrorCode::InvalidParams.code(),
            format!("Invalid params: {fault}"),
            None,
            self.downstream(),
        )
    }

    /// Sends the request with these parameters. One that the server refused unseen is sent once more,
    /// on a new connection; one that it may have run is not.
    pub(super) async fn send(&mut self, params: &str) -> Result<Call, WireError> {
        let mut call = self.send_once(params).await?;
        if call.was_unseen().await {
            self.lane = self.caller.lane().await.map_err(|error| error.on_wire())?;
            call = self.send_once(params).await?;
        }
        Ok(call)
    }

    async fn send_once(&self, params: &str) -> Result<Call, WireError> {
        let job = &self.waiter.job;
        let upstream = &self.lane.upstream;
        let number = upstream.next_id();
        let mut params = std::borrow::Cow::Borrowed(params);
        if job.progress_token.is_some() && !self.keeps_token() {
            let ours = with_progress_token(&params, &number.to_string());
            params = ours.map_err(|fault| self.malformed(&fault))?.into();
        }
        let stamped = stamped(&self.caller, job.reach, self.upstream(), &params);
        if let Some(stamped) = stamped.map_err(|fault| self.malformed(&fault.into()))? {
            params = stamped.into();
        }
        let order = Ordered {
            method: job.method,
            name: &job.name,
            params: &params,
        };
        Ok(upstream.call(number, order, &self.lane.book).await)
    }

    /// Where every call has a stream of its own and the server keeps nothing between calls, nobody
    /// can mistake one client's token for another's.
    fn keeps_token(&self) -> bool {
        self.lane.upstream.has_own_streams() && self.upstream().era() == Era::Modern
    }

    /// Waits for the answer and passes on everything before it; `ask` deals with questions.
    pub(super) async fn reply(&mut self, call: &mut Call) -> Result<Reply, WireError> {
        loop {
            match call.next().await {
                Event::Note(note) => self.waiter.tell(&note, &mut self.progress).await,
                Event::Done(reply) => return Ok(reply),
                Event::Lost(loss) => return Err(self.lost(&loss)),
                Event::Ask(ask) => {
                    // A modern server asks nothing; whoever calls here expects nothing else.
                    tracing::warn!(method = ?ask.method, "a question that has no place here");
                }
            }
        }
    }

    pub(super) fn lost(&self, loss: &Loss) -> WireError {
        let (reason, why) = match loss {
            Loss::Session => (
                "upstream_session",
                String::from("the server forgot the session"),
            ),
            Loss::Connection(why) | Loss::Unsent(why) => ("upstream_gone", why.clone()),
            Loss::Status(status) => (
                "upstream_status",
                format!("the server answered with status {status} and no message"),
            ),
        };
        let data = ObjectWriter::new().text("reason", reason).finish();
        let code = ErrorCode::InternalError.code();
        wire_error(code, why, Some(data), self.downstream())
    }

    /// Notes what a legacy server took from a legacy client, for a session after this one.
    pub(super) fn remember(&self, reply: &Reply) {
        if let (Reply::Result(_), Some(method)) = (reply, self.waiter.job.method) {
            let params = text(&self.waiter.job.params);
            self.lane.audience.standing().granted(method, params);
        }
    }

    /// The answer in the client's words.
    pub(super) fn finished(&self, reply: &Reply) -> Result<String, WireError> {
        match reply {
            Reply::Result(raw) => {
                let raw = text(raw);
                if self.waiter.job.method == Some(Method::ToolsList) {
                    self.lane.book.learn(raw);
                }
                self.result(raw)
            }
            Reply::Error(raw) => Err(self.error(text(raw))),
        }
    }

    fn result(&self, raw: &str) -> Result<String, WireError> {
        let (down, up) = (self.downstream(), self.upstream());
        let Some(method) = self.waiter.job.method.filter(|_| down != up) else {
            return Ok(raw.to_owned());
        };
        let shaped = match down.era() {
            Era::Legacy => lower_result(method, raw, down),
            Era::Modern => {
                let info = self.lane.upstream.introduction.server_info.encode(down);
                raise_result(method, raw, down, Some(&info))
            }
        };
        shaped.map(std::borrow::Cow::into_owned).map_err(|fault| {
            let text = format!("The server's result cannot be passed on: {fault}");
            wire_error(ErrorCode::InternalError.code(), text, None, down)
        })
    }

    pub(super) fn error(&self, raw: &str) -> WireError {
        let (down, up) = (self.downstream(), self.upstream());
        let shaped = match (down.era(), up.era()) {
            (Era::Modern, Era::Legacy) => raise_error(raw, down),
            (Era::Modern, Era::Modern) => Ok(raw.into()),
            (Era::Legacy, _) if down == up => Ok(raw.into()),
            (Era::Legacy, _) => {
                let method = self.waiter.job.method.unwrap_or(Method::Ping);
                let uri = Object::parse(text(&self.waiter.job.params)).unwrap_or_default();
                lower_error(method, raw, uri.get_str("uri").as_deref(), down)
            }
        };
        let shaped = shaped.unwrap_or(raw.into());
        match ErrorBody::parse(&shaped) {
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
        }
    }
}

/// The parameters with what a modern server is told about a legacy client; none where the client
/// says it itself.
pub(super) fn stamped(
    caller: &Caller,
    reach: Reach,
    upstream: Revision,
    params: &str,
) -> Result<Option<String>, ScanError> {
    let Some(stamp) = &caller.stamp else {
        return Ok(None);
    };
    let capabilities = match reach {
        Reach::Stream => &stamp.capabilities,
        // Whatever the client could be asked, there is no way to ask it.
        Reach::Answer => "{}",
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
