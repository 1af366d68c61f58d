//! Handlers for requests and notifications of servers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Capability, Extension, Method, Side};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::client_error::AnswerError;
use crate::model::ElicitRequest;

/// Answer of a handler.
pub(super) type Answering = BoxFuture<'static, Result<String, AnswerError>>;

/// Parses a question and answers it.
type AnswerHandler = Arc<dyn Fn(Option<&str>) -> Answering + Send + Sync>;

/// Observes a notification.
pub(super) type NotificationObserver = Arc<dyn Fn(&Notification) + Send + Sync>;

/// Notification of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Method.
    pub method: String,
    /// Raw parameters.
    pub params: Option<String>,
}

impl Notification {
    /// Parses the parameters.
    ///
    /// # Errors
    /// The parameters have another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.params.as_deref().unwrap_or("{}"))
    }
}

/// Registered handlers, from which the capabilities follow.
#[derive(Clone, Default)]
pub(super) struct Handlers {
    pub(super) sampling: Option<AnswerHandler>,
    pub(super) sampling_tools: bool,
    pub(super) form: Option<AnswerHandler>,
    pub(super) url: Option<AnswerHandler>,
    pub(super) roots: Option<AnswerHandler>,
    pub(super) observers: Vec<NotificationObserver>,
    pub(super) tasks: bool,
    pub(super) experimental: Map<String, Value>,
    pub(super) extensions: Map<String, Value>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").finish_non_exhaustive()
    }
}

/// Wraps a typed handler.
pub(super) fn typed<Q, A, F, Fut>(handler: F) -> AnswerHandler
where
    Q: DeserializeOwned,
    A: Serialize,
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, AnswerError>> + Send + 'static,
{
    Arc::new(move |params: Option<&str>| -> Answering {
        let question = serde_json::from_str::<Q>(params.unwrap_or("{}"));
        let answering = question.map(&handler);
        Box::pin(async move {
            let answering = answering.map_err(|error| AnswerError::invalid(error.to_string()))?;
            let answer = answering.await?;
            serde_json::to_string(&answer).map_err(|error| AnswerError::internal(error.to_string()))
        })
    })
}

/// As [`typed`], for questions that are checked before they reach the handler.
pub(super) fn checked<Q, A, E, F, Fut>(check: fn(&Q) -> Result<(), E>, handler: F) -> AnswerHandler
where
    Q: DeserializeOwned + 'static,
    A: Serialize,
    E: std::error::Error + 'static,
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, AnswerError>> + Send + 'static,
{
    typed(move |question: Q| {
        let invalid = check(&question).map_err(|error| AnswerError::invalid(error.to_string()));
        let answering = invalid.map(|()| handler(question));
        async move { answering?.await }
    })
}

impl Handlers {
    /// Answers a question of the server, if it has a handler.
    pub(super) fn answer(&self, method: &str, params: Option<&str>) -> Option<Answering> {
        let handler = match Method::parse(method)? {
            Method::SamplingCreateMessage => self.sampling.as_ref()?,
            Method::RootsList => self.roots.as_ref()?,
            Method::ElicitationCreate => match serde_json::from_str(params.unwrap_or("{}")) {
                Ok(ElicitRequest::Form(_)) => self.form.as_ref()?,
                Ok(ElicitRequest::Url(_)) => self.url.as_ref()?,
                Err(error) => {
                    let error = AnswerError::invalid(error.to_string());
                    return Some(Box::pin(async move { Err(error) }));
                }
            },
            _ => return None,
        };
        Some(handler(params))
    }

    /// Derives the capabilities from the handlers.
    pub(super) fn capabilities(&self) -> CapabilitySet {
        let mut document = Map::new();
        if self.roots.is_some() {
            document.insert("roots".into(), json!({ "listChanged": true }));
        }
        if self.sampling.is_some() {
            let tools = self.sampling_tools.then(|| ("tools".to_owned(), json!({})));
            document.insert("sampling".into(), Map::from_iter(tools).into());
        }
        if self.form.is_some() || self.url.is_some() {
            let form = self.form.is_some().then(|| ("form".to_owned(), json!({})));
            let url = self.url.is_some().then(|| ("url".to_owned(), json!({})));
            let modes = Map::from_iter(form.into_iter().chain(url));
            document.insert("elicitation".into(), modes.into());
        }
        if !self.experimental.is_empty() {
            document.insert("experimental".into(), self.experimental.clone().into());
        }
        let mut extensions = self.extensions.clone();
        if self.tasks {
            extensions.insert(Extension::Tasks.id().to_owned(), json!({}));
        }
        if !extensions.is_empty() {
            document.insert("extensions".into(), extensions.into());
        }
        let raw = Value::Object(document).to_string();
        // The document is valid by construction.
        CapabilitySet::parse(Side::Client, Some(&raw), Reading::Lenient).unwrap_or_else(|_| {
            CapabilitySet::declaring(Side::Client, core::iter::empty::<Capability>())
        })
    }
}
