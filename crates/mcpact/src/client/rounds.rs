//! Calls with questions in their result: answer and call again.
//!
//! `2026-07-28 basic/patterns/mrtr`

use std::time::Duration;

use futures_util::future::try_join_all;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::Client;
use super::client_error::ClientError;
use super::options::CallOptions;
use crate::model::{ElicitAction, ElicitRequest, ElicitResult, UrlRequest};

/// Maximum number of URLs that a user visits for one call.
const MAX_URLS: usize = 8;

/// Initial delay before a call without questions is repeated.
const PAUSE: Duration = Duration::from_millis(200);

impl Client {
    /// Sends a request and answers the questions in its results until one is complete. A result without `resultType`
    /// counts as complete.
    pub(super) async fn ask_with_answers(
        &self,
        method: Method,
        params: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let mut next = params.clone();
        for round in 0..=self.shared.round_limit {
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
                        "a result asks for input without `inputRequests` and `requestState`",
                    ));
                }
                (None, Some(_)) => pause(round).await,
                (Some(_), _) => {}
            }
            next = with_answers(&params, responses.as_deref(), state);
        }
        Err(ClientError::Limit {
            limit: self.shared.round_limit,
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
        let writer = ObjectWriter::new();
        let written = answers
            .iter()
            .fold(writer, |out, (key, raw)| out.raw(key, raw));
        Ok(written.finish())
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
}

async fn pause(round: usize) {
    let factor = 1 << u32::try_from(round).unwrap_or(u32::MAX).min(5);
    tokio::time::sleep(PAUSE * factor).await;
}

/// Adds the answers and, unchanged, the state to the parameters.
fn with_answers(params: &str, responses: Option<&str>, state: Option<&str>) -> String {
    let body = Object::parse(params).unwrap_or_default();
    let out = body
        .iter()
        .filter(|(key, _)| !matches!(*key, "inputResponses" | "requestState"))
        .fold(ObjectWriter::new(), |out, (key, raw)| out.raw(key, raw));
    out.maybe_raw("inputResponses", responses)
        .maybe_raw("requestState", state)
        .finish()
}
