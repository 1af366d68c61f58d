//! Requests and notifications to the server: checked against the pact, sent, and awaited.
//!
//! Questions in a result are answered, and the request is sent again (`2026-07-28 basic/patterns/mrtr`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use mcpact_engine::gate::may_send;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Kind, Method, Side};
use mcpact_transport::budget::MemoryExhausted;
use mcpact_transport::error::TransportError;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::Client;
use super::calls::CallOptions;
use super::changes::{ChangeQueue, uri_params};
use super::client_error::{ClientError, RpcError};
use super::pending::{Pending, PendingEnd, ProgressCallback};
use super::session::Session;
use crate::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, HttpFailure, RawRequest, ServerResponse,
};
use crate::model::{ElicitAction, ElicitRequest, ElicitResult, UrlRequest};
use crate::validation::ValidationError;

/// Maximum number of URLs that a user visits for one call.
const MAX_URLS: usize = 8;

/// Initial delay before a call without questions is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// A request to be sent.
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<&'a str>,
    pub(super) timeout: RequestTimeout,
    pub(super) progress: Option<ProgressCallback>,
    pub(super) changes: Option<Arc<ChangeQueue>>,
}

impl<'a> Outgoing<'a> {
    pub(super) const fn new(
        method: &'a str,
        params: Option<&'a str>,
        timeout: RequestTimeout,
    ) -> Self {
        Self {
            method,
            params,
            timeout,
            progress: None,
            changes: None,
        }
    }
}

impl Client {
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Option<String>,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let timeout = options.request_timeout(self.shared.limits.timeout);
        let outgoing = Outgoing {
            progress: options.progress.clone(),
            ..Outgoing::new(method, params.as_deref(), timeout)
        };
        tokio::select! {
            biased;
            answer = self.send(outgoing) => answer,
            () = options.cancelled() => Err(ClientError::Cancelled),
        }
    }

    /// Sends a request and answers the questions in its results until one is complete. A result without `resultType`
    /// counts as complete.
    pub(super) async fn ask_with_answers(
        &self,
        method: Method,
        params: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let mut next = params.clone();
        for round in 0..=self.shared.limits.rounds {
            let raw = self.ask_after_visits(method, next, options).await?;
            let body = Object::parse(&raw).unwrap_or_default();
            let kind = body.get_str("resultType");
            if kind.as_deref() != Some("input_required") || self.pact().era() == Era::Legacy {
                return Ok(raw);
            }
            let state = body.get_present("requestState");
            let responses = match body.get_present("inputRequests") {
                Some(questions) => Some(self.answer_all(questions).await?),
                None => None,
            };
            match (&responses, state) {
                (None, None) => {
                    return Err(ClientError::ProtocolViolation(
                        "a result requests input without `inputRequests` and `requestState`",
                    ));
                }
                (None, Some(_)) => pause(round).await,
                (Some(_), _) => {}
            }
            next = with_answers(&params, responses.as_deref(), state);
        }
        Err(ClientError::Limit {
            limit: self.shared.limits.rounds,
            what: "rounds of questions",
        })
    }

    /// Sends a request, and again after the user visited the URLs that a legacy server requires: the server has not
    /// run the request then. A second refusal is returned.
    ///
    /// `2025-11-25 client/elicitation#url-elicitation-required-error`
    async fn ask_after_visits(
        &self,
        method: Method,
        params: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let first = self
            .ask(method.as_str(), Some(params.clone()), options)
            .await;
        let Err(ClientError::Rpc(error)) = &first else {
            return first;
        };
        let urls = error.pending_urls();
        let may_visit = self.pact().era() == Era::Legacy && (1..=MAX_URLS).contains(&urls.len());
        if may_visit && self.visit_urls(urls).await? {
            return self.ask(method.as_str(), Some(params), options).await;
        }
        first
    }

    /// Lets the user visit the URLs in order; returns whether all were visited.
    async fn visit_urls(&self, urls: Vec<UrlRequest>) -> Result<bool, ClientError> {
        let method = Method::ElicitationCreate.as_str();
        for url in urls {
            let params = serde_json::to_string(&ElicitRequest::Url(url)).unwrap_or_default();
            let Some(visiting) = self.shared.handlers.answer(method, Some(&params)) else {
                return Ok(false);
            };
            let answer = visiting.await.map_err(|source| ClientError::Handler {
                method: method.to_owned(),
                source,
            })?;
            let answer: Result<ElicitResult, _> = serde_json::from_str(&answer);
            if !answer.is_ok_and(|answer| answer.action == ElicitAction::Accept) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Answers all questions, by key.
    pub(super) async fn answer_all(&self, questions: &str) -> Result<String, ClientError> {
        let questions = Object::parse(questions)
            .map_err(|_| ClientError::ProtocolViolation("`inputRequests` is not an object"))?;
        let answering = questions.iter().map(|(key, raw)| async move {
            let answer = self.answer_one(raw).await?;
            Ok::<_, ClientError>((key.to_owned(), answer))
        });
        let answers = try_join_all(answering).await?;
        let answers = answers.iter().map(|(key, raw)| (&**key, &**raw));
        Ok(ObjectWriter::new().members(answers).finish())
    }

    async fn answer_one(&self, question: &str) -> Result<String, ClientError> {
        let question = Object::parse(question)
            .map_err(|_| ClientError::ProtocolViolation("an input request is not an object"))?;
        let method = question.get_str("method").unwrap_or_default().into_owned();
        let handler = self
            .shared
            .handlers
            .answer(&method, question.get_present("params"));
        match handler {
            None => Err(ClientError::NoHandler { method }),
            Some(answering) => answering
                .await
                .map_err(|source| ClientError::Handler { method, source }),
        }
    }

    /// Sends a request with the default options.
    pub(super) async fn ask_plainly(
        &self,
        method: Method,
        params: Option<String>,
    ) -> Result<String, ClientError> {
        self.ask(method.as_str(), params, &CallOptions::new()).await
    }

    /// Sends a request in the background and ignores the response.
    pub(super) fn send_detached(&self, method: Method, params: String) {
        let this = self.clone();
        // Without a runtime the connection is gone, too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { this.ask_plainly(method, Some(params)).await });
        }
    }

    pub(super) async fn send_notification(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), ClientError> {
        let (session, _) = self.sessions.ready().await?;
        let pact = &session.connection.pact;
        let policy = &self.shared.terms.policy;
        may_send(
            pact,
            policy,
            Side::Client,
            Kind::Notification,
            method,
            params,
        )?;
        self.validate(pact, "the notification", method, params)?;
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        session.connection.notify(method, params).await;
        Ok(())
    }

    /// Sends a request and waits for its result. Dropping the future cancels the request.
    ///
    /// `2025-11-25 basic/transports#session-management`: a request that was refused because the server does not know
    /// the session was not served. It is resent once, in a new session.
    pub(super) async fn send(&self, outgoing: Outgoing<'_>) -> Result<String, ClientError> {
        let (session, is_new) = self.sessions.ready().await?;
        self.restore(is_new);
        if let Some(result) = self.attempt(&session, &outgoing).await? {
            return Ok(result);
        }
        let (session, is_new) = self.sessions.reopen(&session).await?;
        self.restore(is_new);
        let result = self.attempt(&session, &outgoing).await?;
        result.ok_or(ClientError::SessionLost)
    }

    /// Restores the subscriptions and the log level in a new session.
    fn restore(&self, is_new: bool) {
        if !is_new {
            return;
        }
        for uri in self.shared.subscribed() {
            self.send_detached(Method::ResourcesSubscribe, uri_params(&uri));
        }
        if let Some(level) = self.shared.log_level() {
            let params = ObjectWriter::new().text("level", level.as_str()).finish();
            self.send_detached(Method::LoggingSetLevel, params);
        }
    }

    /// Sends a request in a session. Returns none if the server does not know the session.
    async fn attempt(
        &self,
        session: &Session,
        outgoing: &Outgoing<'_>,
    ) -> Result<Option<String>, ClientError> {
        let (shared, connection) = (&self.shared, &session.connection);
        let (pact, method) = (&connection.pact, outgoing.method);
        let id = shared.next_id();
        let params = self.params(pact, id, outgoing)?;
        let params = params.as_deref();
        self.validate(pact, "the request", method, params)?;
        let pending = Pending::new(
            outgoing.timeout,
            progress_token(params),
            outgoing.progress.clone(),
            outgoing.changes.clone(),
        );
        let limit = shared.terms.in_flight_limit;
        let guard = shared.pending.add(id, pending, limit)?;
        let mut ended = pin!(guard.pending.ended());
        let request = RawRequest {
            method: Method::parse(method),
            name: method,
            params,
            trace: None,
        };
        let mut call = tokio::select! {
            biased;
            call = connection.call(id, request, &shared.tool_headers) => call,
            end = &mut ended => return Err(end_error(end, method)),
        };
        loop {
            let event = tokio::select! {
                biased;
                event = call.next() => event,
                end = &mut ended => {
                    if end == PendingEnd::ByServer {
                        call.forget();
                    }
                    return Err(end_error(end, method));
                }
            };
            match event {
                // The handler of the session takes these.
                CallEvent::Notification(_) | CallEvent::Request(_) => {}
                CallEvent::Response(response) => {
                    let result = received(response, &mut call)?;
                    self.validate_result(pact, method, &result)?;
                    return Ok(Some(result));
                }
                CallEvent::Failed(CallFailure::SessionLost) => return Ok(None),
                CallEvent::Failed(failure) => {
                    return Err(self.failed(session, failure, call.take_http_failure()));
                }
            }
        }
    }

    /// Returns the parameters with the client's `_meta` members, if the pact allows the request.
    fn params(
        &self,
        pact: &Pact,
        id: i64,
        outgoing: &Outgoing<'_>,
    ) -> Result<Option<String>, ClientError> {
        let terms = &self.shared.terms;
        let (method, params) = (outgoing.method, outgoing.params);
        may_send(
            pact,
            &terms.policy,
            Side::Client,
            Kind::Request,
            method,
            params,
        )?;
        let is_modern = pact.era() == Era::Modern;
        let token = outgoing.progress.is_some().then(|| id.to_string());
        let level = self.shared.log_level().filter(|_| is_modern);
        let level = level.map(|level| format!("\"{}\"", level.as_str()));
        let added = [(meta::PROGRESS_TOKEN, token), (meta::LOG_LEVEL, level)];
        let params = match added.iter().any(|(_, value)| value.is_some()) {
            true => Some(with_meta(params, &added)),
            false => params.map(str::to_owned),
        };
        Ok(match is_modern {
            true => Some(terms.stamp(pact.revision(), params.as_deref())?),
            false => params,
        })
    }

    /// Validates an outgoing message against the official schema.
    fn validate(
        &self,
        pact: &Pact,
        what: &'static str,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), ClientError> {
        let validation = &self.shared.validation;
        validation
            .params("client", pact.revision(), method, params)
            .map_err(violation(what, method))
    }

    /// Validates a result of the server against the official schema.
    fn validate_result(&self, pact: &Pact, method: &str, raw: &str) -> Result<(), ClientError> {
        let validation = &self.shared.validation;
        validation
            .result("server", pact.revision(), method, raw)
            .map_err(violation("the answer to", method))
    }

    fn failed(
        &self,
        session: &Session,
        failure: CallFailure,
        details: Option<HttpFailure>,
    ) -> ClientError {
        let unreachable = |source| ClientError::unreachable(&self.shared.target, source);
        match (failure, details) {
            (CallFailure::ResponseTooLarge(limit), _) => {
                ClientError::Transport(TransportError::TooLarge { limit })
            }
            (CallFailure::MemoryExhausted, _) => {
                ClientError::Transport(TransportError::Memory(MemoryExhausted))
            }
            (CallFailure::Unreachable(error), _) => {
                let error = Arc::try_unwrap(error);
                unreachable(error.unwrap_or_else(|error| TransportError::Http(error.to_string())))
            }
            (
                CallFailure::Ambiguous(AmbiguousRefusal {
                    error: Some(raw), ..
                }),
                _,
            ) => RpcError::parse(&raw).into(),
            (_, Some(HttpFailure::Transport(error))) => unreachable(error),
            (_, Some(HttpFailure::Refused(refusal))) => ClientError::refused(refusal),
            (CallFailure::HttpStatus(status), None) => ClientError::Http {
                status,
                retry_after: None,
            },
            (CallFailure::ProtocolViolation(_), None) => {
                ClientError::ProtocolViolation("an answer does not belong to its request")
            }
            _ if session.connection.has_own_streams() => {
                ClientError::ProtocolViolation("an answer ended without a result")
            }
            _ if session.connection.is_gone() => ClientError::Closed,
            _ => ClientError::ProtocolViolation("an answer cannot be read"),
        }
    }
}

fn violation(what: &'static str, method: &str) -> impl FnOnce(ValidationError) -> ClientError {
    let method = method.to_owned();
    move |source| ClientError::SchemaViolation {
        what,
        method,
        source,
    }
}

fn end_error(end: PendingEnd, method: &str) -> ClientError {
    match end {
        PendingEnd::TimedOut => ClientError::Timeout {
            method: method.to_owned(),
        },
        PendingEnd::ByServer => ClientError::Closed,
        PendingEnd::Closing => ClientError::Cancelled,
    }
}

/// Returns the result of a response. Statuses about credentials take precedence over its error.
fn received(response: ServerResponse, call: &mut Call) -> Result<String, ClientError> {
    match response {
        ServerResponse::Result(raw) => Ok(raw.into_text().into()),
        ServerResponse::Error(raw) => match call.take_http_failure() {
            Some(HttpFailure::Refused(refusal)) if matches!(refusal.status, 401 | 403) => {
                Err(ClientError::refused(refusal))
            }
            _ => Err(RpcError::parse(&raw).into()),
        },
    }
}

/// Returns the raw progress token of a request.
fn progress_token(params: Option<&str>) -> Option<String> {
    let raw = params.filter(|raw| raw.contains(meta::PROGRESS_TOKEN))?;
    let inner = Object::parse(Object::parse(raw).ok()?.get("_meta")?).ok()?;
    inner.get(meta::PROGRESS_TOKEN).map(str::to_owned)
}

/// Adds members to `_meta` of the parameters, which are an object.
fn with_meta(params: Option<&str>, added: &[(&str, Option<String>)]) -> String {
    let body = Object::parse(params.unwrap_or("{}")).unwrap_or_default();
    let existing = Object::parse(body.get("_meta").unwrap_or("{}")).unwrap_or_default();
    let is_replaced = |key: &str| {
        let mut added = added.iter();
        added.any(|(name, value)| *name == key && value.is_some())
    };
    let mut inner = existing.keep(|key| !is_replaced(key));
    for (key, value) in added {
        inner = inner.maybe_raw(key, value.as_deref());
    }
    body.keep(|key| key != "_meta")
        .raw("_meta", &inner.finish())
        .finish()
}

async fn pause(round: usize) {
    let factor = 1 << u32::try_from(round).unwrap_or(u32::MAX).min(5);
    tokio::time::sleep(PAUSE * factor).await;
}

/// Adds the answers and, unchanged, the state to the parameters.
fn with_answers(params: &str, responses: Option<&str>, state: Option<&str>) -> String {
    let body = Object::parse(params).unwrap_or_default();
    body.keep(|key| !matches!(key, "inputResponses" | "requestState"))
        .maybe_raw("inputResponses", responses)
        .maybe_raw("requestState", state)
        .finish()
}
