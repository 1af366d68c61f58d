//! Connection over Streamable HTTP: every call is its own POST, driven by the caller.

mod refusal;
mod session_stream;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use mcpact_engine::pact::Pact;
use mcpact_spec::{Era, Method, Revision};
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody, HttpClient};
use mcpact_wire::id::Id;
use tokio::task::{AbortHandle, JoinHandle};

use self::refusal::{may_reject_revision, raw_error, rejects_revision, session_unknown};
use self::session_stream::{
    DEFAULT_PAUSE, EventReader, LostMessage, Read, Resume, UnsolicitedSink, listen,
};
use super::inbox::{
    AmbiguousRefusal, CallEvent, CallFailure, Incoming, ServerResponse, UnsolicitedSender, batch,
    parse,
};
use super::server_request::{OpenRequest, ReplyPath, RequestLimit, ServerRequest};
use super::{
    CallObserver, DeliveryFailure, DropReason, Hooks, HttpFailure, HttpRefusal, MessageHandler,
    RawRequest, ToolHeaders, cancellation, headers,
};
use crate::error::with_causes;
use crate::lock;

/// Status of a request that would come back to its sender.
const LOOP_DETECTED: u16 = 508;

/// Timeout of the DELETE that ends a session.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of attempts in a row to resume a stream without an event.
const MAX_ATTEMPTS: u32 = 6;

/// Session with a legacy server, or URL of a modern one.
#[derive(Debug)]
pub(super) struct HttpConnection {
    http: HttpClient,
    revision: Revision,
    /// Headers of all messages, except for modern requests.
    headers: Arc<HeaderMap>,
    is_gone: Arc<AtomicBool>,
    stream: Option<AbortHandle>,
    can_push: bool,
    observer: Arc<dyn CallObserver>,
    handler: Option<Arc<dyn MessageHandler>>,
    requests: RequestLimit,
    /// Dropped on close.
    hooks: Mutex<Option<Arc<dyn Hooks>>>,
}

impl HttpConnection {
    pub(super) fn modern(http: HttpClient, pact: &Arc<Pact>, hooks: Arc<dyn Hooks>) -> Self {
        let revision = pact.revision();
        Self {
            http,
            revision,
            headers: Arc::new(headers::of_session(revision, None)),
            is_gone: Arc::default(),
            stream: None,
            can_push: false,
            observer: hooks.observer(),
            handler: hooks.message_handler(pact),
            requests: RequestLimit::default(),
            hooks: Mutex::new(Some(hooks)),
        }
    }

    /// Creates a legacy session. Its SSE stream is opened at once, because the server may send requests there.
    pub(super) async fn legacy(
        http: HttpClient,
        pact: &Arc<Pact>,
        headers: HeaderMap,
        unsolicited: UnsolicitedSender,
        hooks: Arc<dyn Hooks>,
    ) -> Self {
        let mut connection = Self::modern(http.clone(), pact, hooks);
        let sink = UnsolicitedSink {
            unsolicited,
            handler: connection.handler.clone(),
            observer: Arc::clone(&connection.observer),
            requests: connection.requests.clone(),
        };
        connection.headers = Arc::new(headers);
        let (open, opened) = tokio::sync::oneshot::channel();
        let (headers, is_gone) = (&connection.headers, &connection.is_gone);
        let listening = listen(http, Arc::clone(headers), sink, open, Arc::clone(is_gone));
        connection.stream = Some(tokio::spawn(listening).abort_handle());
        // A slow refusal of the stream does not delay the connection.
        let opened = tokio::time::timeout(DEFAULT_PAUSE, opened).await;
        connection.can_push = !matches!(opened, Ok(Ok(false)));
        connection
    }

    /// Returns true if the server keeps no session.
    pub(super) fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Returns true if the session has an SSE stream.
    pub(super) const fn can_push(&self) -> bool {
        self.can_push
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(super) fn call(
        &self,
        id: &Id,
        request: RawRequest<'_>,
        text: String,
        tool_headers: &ToolHeaders,
    ) -> HttpCall {
        let headers = match self.revision.era() {
            Era::Modern => Arc::new(headers::modern(request, self.revision, tool_headers)),
            Era::Legacy => match request.trace {
                Some(trace) => Arc::new(headers::traced((*self.headers).clone(), trace)),
                None => Arc::clone(&self.headers),
            },
        };
        let http = self.http.clone();
        let posted = Arc::clone(&headers);
        // A redirect does not show that the server did nothing.
        let has_effect = matches!(request.method, None | Some(Method::ToolsCall));
        let posting = async move {
            let message = Bytes::from(text);
            match has_effect {
                true => http.post_once(&posted, message).await,
                false => http.post(&posted, message).await,
            }
        };
        let posting = posting.boxed();
        HttpCall {
            http: self.http.clone(),
            era: self.revision.era(),
            headers,
            id: id.clone(),
            is_gone: Arc::clone(&self.is_gone),
            observer: Arc::clone(&self.observer),
            handler: self.handler.clone(),
            requests: self.requests.clone(),
            failure: None,
            batch: VecDeque::new(),
            ready: VecDeque::new(),
            state: State::Posting(posting),
        }
    }

    /// Posts a message without a response.
    pub(super) async fn post(&self, text: String) {
        post(&self.http, &self.headers, text).await;
    }

    /// Closes the connection and ends the session.
    pub(super) fn close(&self) {
        if let Some(stream) = &self.stream {
            stream.abort();
        }
        let was_gone = self.is_gone.swap(true, Ordering::Relaxed);
        let hooks = lock(&self.hooks).take();
        if !self.headers.contains_key(headers::SESSION_ID) || was_gone {
            return;
        }
        let (http, headers) = (self.http.clone(), self.headers.clone());
        // The server may refuse the DELETE or not answer it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(SESSION_END_TIMEOUT, http.delete(&headers)).await;
                drop(hooks);
            });
        }
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        self.close();
    }
}

/// One POST and its response.
pub(super) struct HttpCall {
    http: HttpClient,
    era: Era,
    headers: Arc<HeaderMap>,
    id: Id,
    is_gone: Arc<AtomicBool>,
    observer: Arc<dyn CallObserver>,
    handler: Option<Arc<dyn MessageHandler>>,
    requests: RequestLimit,
    failure: Option<Box<HttpFailure>>,
    /// Rest of a batch.
    batch: VecDeque<Bytes>,
    /// Events that precede the response, and the response.
    ready: VecDeque<CallEvent>,
    state: State,
}

enum State {
    Posting(BoxFuture<'static, Result<ClientResponse, TransportError>>),
    EventReader(EventReader),
    /// The response is a batch.
    Batch,
    /// Waits, then resumes a broken stream.
    Resuming(
        BoxFuture<'static, Result<ClientResponse, TransportError>>,
        Resume,
    ),
    Over,
}

impl std::fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpCall")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl HttpCall {
    /// Returns true if the call belongs to a session.
    pub(super) fn has_session(&self) -> bool {
        self.headers.contains_key(headers::SESSION_ID)
    }

    pub(super) fn take_failure(&mut self) -> Option<HttpFailure> {
        self.failure.take().map(|failure| *failure)
    }

    /// Prevents the cancellation of the request.
    pub(super) fn forget(&mut self) {
        self.state = State::Over;
    }

    pub(super) async fn next(&mut self) -> CallEvent {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            while let Some(bytes) = self.batch.pop_front() {
                if let Some(event) = self.received(&bytes) {
                    return event;
                }
            }
            match &mut self.state {
                State::Posting(posting) => {
                    let answer = posting.await;
                    if let Some(event) = self.answered(answer) {
                        return event;
                    }
                }
                State::EventReader(reading) => match reading.next().await {
                    Some(Read::Released(notification)) => {
                        self.observer.notification(&notification);
                        return CallEvent::Notification(notification);
                    }
                    Some(Read::Message(bytes)) => match batch(&bytes) {
                        Some(all) => self.batch.extend(all),
                        None => {
                            if let Some(event) = self.received(&bytes) {
                                return event;
                            }
                        }
                    },
                    // Only a response can be this long, and no other will come.
                    Some(Read::Lost(lost)) => {
                        self.state = State::Over;
                        return self.lost_response(lost);
                    }
                    None => {
                        let resume = reading.resume.clone();
                        if let Some(event) = self.broken(resume) {
                            return event;
                        }
                    }
                },
                State::Resuming(opening, resume) => {
                    let opened = opening.await;
                    let resume = resume.clone();
                    if let Some(event) = self.resumed(opened, resume) {
                        return event;
                    }
                }
                State::Batch => {
                    self.state = State::Over;
                    let why = String::from("the batch contains no response to the request");
                    return CallEvent::Failed(CallFailure::ProtocolViolation(why));
                }
                State::Over => return std::future::pending().await,
            }
        }
    }

    fn lost_response(&self, lost: LostMessage) -> CallEvent {
        self.observer.dropped(lost.reason());
        CallEvent::Failed(lost.failure())
    }

    fn over(&mut self, event: CallEvent) -> Option<CallEvent> {
        self.state = State::Over;
        if let CallEvent::Response(_)
        | CallEvent::Failed(CallFailure::Ambiguous(AmbiguousRefusal {
            error: Some(_), ..
        })) = event
        {
            self.observer.delivered();
        }
        Some(event)
    }

    /// Ends the call and the connection: the next call negotiates again.
    fn stale(&mut self, failure: CallFailure) -> Option<CallEvent> {
        self.is_gone.store(true, Ordering::Relaxed);
        self.over(CallEvent::Failed(failure))
    }

    fn answered(&mut self, answer: Result<ClientResponse, TransportError>) -> Option<CallEvent> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                if let Some(lost) = LostMessage::of(&error) {
                    let lost = self.lost_response(lost);
                    return self.over(lost);
                }
                let why = with_causes(&error);
                let failure = match error {
                    TransportError::Unreadable(_) => DeliveryFailure::InvalidResponse,
                    _ => DeliveryFailure::Unreachable,
                };
                self.observer.undelivered(failure, &why);
                let loss = match error.is_unconnected() {
                    true => CallFailure::Unreachable(Arc::new(error)),
                    false => {
                        self.failure = Some(Box::new(HttpFailure::Transport(error)));
                        CallFailure::ConnectionLost(why.into())
                    }
                };
                return self.over(CallEvent::Failed(loss));
            }
        };
        let is_revision_refused = rejects_revision(&answer);
        if answer.status >= 300 {
            let mut refusal = HttpRefusal::of(&answer);
            if is_revision_refused {
                refusal.error = raw_error(&answer);
            }
            self.failure = Some(Box::new(HttpFailure::Refused(refusal)));
        }
        if answer.status == LOOP_DETECTED {
            return self.stale(CallFailure::LoopDetected);
        }
        if self.has_session() && session_unknown(&answer) {
            return self.stale(CallFailure::SessionLost);
        }
        if is_revision_refused {
            return self.stale(CallFailure::RevisionRefused);
        }
        if let Some(refusal) = may_reject_revision(self.era, &answer) {
            return self.stale(CallFailure::Ambiguous(refusal));
        }
        match answer.body {
            ClientResponseBody::Events(events) => {
                let reader = EventReader::new(events, Resume::default(), 1);
                self.state = State::EventReader(reader);
                None
            }
            ClientResponseBody::Json(bytes) => match batch(&bytes) {
                Some(all) => {
                    self.batch.extend(all);
                    self.state = State::Batch;
                    None
                }
                None => self.answered_json(&bytes, answer.status),
            },
            ClientResponseBody::Empty | ClientResponseBody::Other(_) => {
                self.over(CallEvent::Failed(CallFailure::HttpStatus(answer.status)))
            }
        }
    }

    fn answered_json(&mut self, bytes: &Bytes, status: u16) -> Option<CallEvent> {
        match parse(bytes, None) {
            Incoming::Response(id, reply) if self.matches(id.as_ref(), &reply, status) => {
                self.over(CallEvent::Response(reply))
            }
            Incoming::Response(..) => {
                self.observer.dropped(DropReason::WrongId);
                let why = String::from("the response has the id of another request");
                self.over(CallEvent::Failed(CallFailure::ProtocolViolation(why)))
            }
            Incoming::Notification(_)
            | Incoming::Request(_)
            | Incoming::Handled
            | Incoming::Invalid(_) => self.over(CallEvent::Failed(CallFailure::HttpStatus(status))),
        }
    }

    /// Returns true if a response belongs to this call. An error that refuses the whole HTTP request may have no id, or an
    /// arbitrary one.
    fn matches(&self, id: Option<&Id>, reply: &ServerResponse, status: u16) -> bool {
        let may_lack_id =
            matches!(reply, ServerResponse::Error(_)) && (status >= 400 || id.is_none());
        may_lack_id || id == Some(&self.id)
    }

    fn received(&mut self, bytes: &Bytes) -> Option<CallEvent> {
        match parse(bytes, self.handler.as_deref()) {
            Incoming::Response(Some(id), reply) if id == self.id => {
                self.release_held();
                let response = self.over(CallEvent::Response(reply));
                self.ready.extend(response);
                self.ready.pop_front()
            }
            Incoming::Response(..) => {
                self.count();
                self.observer.dropped(DropReason::LateAnswer);
                None
            }
            Incoming::Invalid(why) => {
                self.count();
                self.observer.dropped(why);
                None
            }
            Incoming::Notification(notification) => {
                let notification = match &mut self.state {
                    State::EventReader(reader) => reader.admit(notification, &*self.observer)?,
                    _ => notification,
                };
                self.observer.notification(&notification);
                Some(CallEvent::Notification(notification))
            }
            Incoming::Request(request) => {
                if self.handler.is_none() {
                    self.count();
                }
                let Some(request) = self.with_reply_path(request) else {
                    self.observer.dropped(DropReason::TooManyRequests);
                    return None;
                };
                match &self.handler {
                    Some(handler) => {
                        handler.request(request);
                        None
                    }
                    None => Some(CallEvent::Request(request)),
                }
            }
            Incoming::Handled => None,
        }
    }

    /// Counts a message of the stream that is no response.
    fn count(&mut self) {
        if let State::EventReader(reader) = &mut self.state {
            reader.count();
        }
    }

    /// Delivers the notifications that wait for the rate, before the response.
    fn release_held(&mut self) {
        let State::EventReader(reader) = &mut self.state else {
            return;
        };
        while let Some(notification) = reader.take_held() {
            self.observer.notification(&notification);
            self.ready.push_back(CallEvent::Notification(notification));
        }
    }

    /// Sets the reply path of a legacy server's request, unless too many are open. Modern servers send none.
    fn with_reply_path(&self, request: ServerRequest) -> Option<ServerRequest> {
        match self.era {
            Era::Modern => Some(request),
            Era::Legacy => HttpReplyPath::set(&self.http, &self.headers, &self.requests, request),
        }
    }

    /// Handles a stream that ended before the response.
    ///
    /// `2025-11-25 basic/transports#resumability`: a legacy stream with event ids can be resumed.
    fn broken(&mut self, mut resume: Resume) -> Option<CallEvent> {
        resume.attempt += 1;
        let (Some(last_id), Era::Legacy, 1..=MAX_ATTEMPTS) =
            (resume.last_id.clone(), self.era, resume.attempt)
        else {
            let why = String::from(TRUNCATED);
            return self.over(CallEvent::Failed(CallFailure::ConnectionLost(why.into())));
        };
        let pause = resume.pause();
        let (http, headers) = (self.http.clone(), Arc::clone(&self.headers));
        let opening = async move {
            tokio::time::sleep(pause).await;
            http.listen(&headers, Some(&last_id)).await
        };
        self.state = State::Resuming(opening.boxed(), resume);
        None
    }

    fn resumed(
        &mut self,
        opened: Result<ClientResponse, TransportError>,
        resume: Resume,
    ) -> Option<CallEvent> {
        match opened {
            Ok(ClientResponse {
                body: ClientResponseBody::Events(events),
                ..
            }) => {
                self.state = State::EventReader(EventReader::new(events, resume, 1));
                None
            }
            Ok(answer) => {
                self.failure = Some(Box::new(HttpFailure::Refused(HttpRefusal::of(&answer))));
                let why = format!(
                    "{TRUNCATED}, and could not be resumed (HTTP {})",
                    answer.status
                );
                self.over(CallEvent::Failed(CallFailure::ConnectionLost(why.into())))
            }
            Err(error) => {
                tracing::debug!(%error, "failed to resume the SSE stream");
                self.broken(resume)
            }
        }
    }
}

impl Drop for HttpCall {
    /// Cancels the request. A modern server sees the stream close; a legacy one gets a notification.
    fn drop(&mut self) {
        if matches!(self.state, State::Over) || self.era == Era::Modern {
            return;
        }
        let text = cancellation(&self.id);
        let (http, headers) = (self.http.clone(), std::mem::take(&mut self.headers));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The server may have finished already.
                let _ = http.post(&headers, Bytes::from(text)).await;
            });
        }
    }
}

/// Cause of a call with an incomplete response stream.
const TRUNCATED: &str = "the response stream ended without a result";

/// Path of a reply in a legacy session.
#[derive(Debug)]
pub(super) struct HttpReplyPath {
    http: HttpClient,
    headers: Arc<HeaderMap>,
    open: OpenRequest,
}

impl HttpReplyPath {
    /// Sets the reply path of a request to this session, unless too many requests are open.
    fn set(
        http: &HttpClient,
        headers: &Arc<HeaderMap>,
        requests: &RequestLimit,
        request: ServerRequest,
    ) -> Option<ServerRequest> {
        let open = requests.admit(&request)?;
        Some(request.reply_to(ReplyPath::Http(Self {
            http: http.clone(),
            headers: Arc::clone(headers),
            open,
        })))
    }

    /// Posts the reply in the background. Returns none outside a runtime.
    pub(super) fn post(self, text: String) -> Option<JoinHandle<()>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let Self {
            http,
            headers,
            open,
        } = self;
        Some(runtime.spawn(async move {
            post(&http, &headers, text).await;
            drop(open);
        }))
    }
}

/// Posts a message without a response.
async fn post(http: &HttpClient, headers: &HeaderMap, text: String) {
    match http.post(headers, Bytes::from(text)).await {
        Ok(answer) if answer.status < 300 => {}
        Ok(answer) => tracing::warn!(status = answer.status, "message rejected by the server"),
        Err(error) => tracing::warn!(%error, "failed to send message"),
    }
}
