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
use crate::model::{
    CreateMessageRequest, CreateMessageResult, ElicitRequest, ElicitResult, FormRequest, Root,
    UrlRequest,
};

/// Parses a question and answers it.
trait AnswerHandler: Send + Sync {
    fn answer(&self, params: Option<&str>) -> BoxFuture<'static, Result<String, AnswerError>>;
}

impl<F> AnswerHandler for F
where
    F: Fn(Option<&str>) -> BoxFuture<'static, Result<String, AnswerError>> + Send + Sync,
{
    fn answer(&self, params: Option<&str>) -> BoxFuture<'static, Result<String, AnswerError>> {
        self(params)
    }
}

/// Observes a notification.
pub(super) trait NotificationObserver: Send + Sync {
    fn observe(&self, note: &Notification);
}

impl<F: Fn(&Notification) + Send + Sync> NotificationObserver for F {
    fn observe(&self, note: &Notification) {
        self(note);
    }
}

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
    sampling: Option<Arc<dyn AnswerHandler>>,
    sampling_tools: bool,
    form: Option<Arc<dyn AnswerHandler>>,
    url: Option<Arc<dyn AnswerHandler>>,
    roots: Option<Arc<dyn AnswerHandler>>,
    pub(super) observers: Vec<Arc<dyn NotificationObserver>>,
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
fn typed<Q, A, F, Fut>(handler: F) -> Arc<dyn AnswerHandler>
where
    Q: DeserializeOwned,
    A: Serialize,
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, AnswerError>> + Send + 'static,
{
    Arc::new(
        move |params: Option<&str>| -> BoxFuture<'static, Result<String, AnswerError>> {
            let question = serde_json::from_str::<Q>(params.unwrap_or("{}"));
            let answering = question.map(&handler);
            Box::pin(async move {
                let answering =
                    answering.map_err(|error| AnswerError::invalid(error.to_string()))?;
                let answer = answering.await?;
                serde_json::to_string(&answer)
                    .map_err(|error| AnswerError::internal(error.to_string()))
            })
        },
    )
}

/// An invalid question does not reach its handler.
fn refused(error: &impl std::error::Error) -> AnswerError {
    AnswerError::invalid(error.to_string())
}

impl Handlers {
    pub(super) fn on_sampling<F, Fut>(&mut self, handler: F)
    where
        F: Fn(CreateMessageRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, AnswerError>> + Send + 'static,
    {
        self.sampling = Some(typed(move |request: CreateMessageRequest| {
            let error = request.check().err();
            let answering =
                error.map_or_else(|| Ok(handler(request)), |error| Err(refused(&error)));
            async move { answering?.await }
        }));
    }

    pub(super) const fn with_sampling_tools(&mut self) {
        self.sampling_tools = true;
    }

    pub(super) fn on_form<F, Fut>(&mut self, handler: F)
    where
        F: Fn(FormRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, AnswerError>> + Send + 'static,
    {
        self.form = Some(typed(move |form: FormRequest| {
            let error = form.check().err();
            let answering = error.map_or_else(|| Ok(handler(form)), |error| Err(refused(&error)));
            async move { answering?.await }
        }));
    }

    pub(super) fn on_url<F, Fut>(&mut self, handler: F)
    where
        F: Fn(UrlRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, AnswerError>> + Send + 'static,
    {
        self.url = Some(typed(handler));
    }

    pub(super) fn on_roots<F, Fut>(&mut self, handler: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Root>, AnswerError>> + Send + 'static,
    {
        self.roots = Some(typed(move |_: Value| {
            let asking = handler();
            async move { Ok(json!({ "roots": asking.await? })) }
        }));
    }

    /// Answers a question of the server, if it has a handler.
    pub(super) fn answer(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Option<BoxFuture<'static, Result<String, AnswerError>>> {
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
        Some(handler.answer(params))
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
