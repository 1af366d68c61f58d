use std::fmt;

use mcpact_engine::refusal::{Dialect, Refusal, WireError};
use mcpact_spec::{ErrorCode, Revision, Site};
use serde_json::{Value, json};

use crate::error::with_causes;
use crate::model::{ElicitRequest, UrlRequest};

/// Error of a handler.
///
/// Any error converts into one with `?`. For a tool it becomes a failed result that the model can read, for
/// everything else an internal error.
pub struct HandlerError(pub(super) Kind);

pub(super) enum Kind {
    /// Failure with a text for the caller.
    Failed(String),
    /// JSON-RPC error.
    Rpc {
        code: i64,
        message: String,
        data: Option<Value>,
    },
    /// Unknown resource; the code depends on the revision.
    ResourceNotFound(String),
    /// URLs that the user must visit first.
    UrlElicitationRequired(Vec<UrlRequest>),
    /// Refusal by the engine.
    Refused(Box<Refusal>),
}

impl HandlerError {
    /// Fails with a text for the caller.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self(Kind::Failed(text.into()))
    }

    /// Failure by a panic. Not even a failed tool result: the effect of the tool is unknown.
    pub(super) fn internal() -> Self {
        Self::rpc(ErrorCode::InternalError.code(), "Internal error")
    }

    /// Rejects the parameters.
    #[must_use]
    pub fn invalid_params(text: impl Into<String>) -> Self {
        Self::rpc(ErrorCode::InvalidParams.code(), text)
    }

    /// Reports an unknown resource URI.
    #[must_use]
    pub fn resource_not_found(uri: impl Into<String>) -> Self {
        Self(Kind::ResourceNotFound(uri.into()))
    }

    /// Asks the user to visit these URLs before the client retries the request. Only 2025-11-25 has a code for it. In
    /// other revisions it is a failure that names the URLs; modern handlers use
    /// [`Context::elicit`](super::Context::elicit) instead.
    #[must_use]
    pub fn url_elicitation_required(urls: &[UrlRequest]) -> Self {
        Self(Kind::UrlElicitationRequired(urls.to_vec()))
    }

    /// Fails with this JSON-RPC error.
    #[must_use]
    pub fn rpc(code: i64, message: impl Into<String>) -> Self {
        Self(Kind::Rpc {
            code,
            message: message.into(),
            data: None,
        })
    }

    /// Adds data to a JSON-RPC error.
    #[must_use]
    pub fn with_data(mut self, value: Value) -> Self {
        if let Kind::Rpc { data, .. } = &mut self.0 {
            *data = Some(value);
        }
        self
    }

    /// Converts to the error that the client receives, unless it becomes a failed tool result.
    pub(super) fn on_wire(self, dialect: Dialect) -> WireError {
        let revision = dialect.revision;
        match self.0 {
            Kind::Failed(message) => wire(ErrorCode::InternalError.code(), message, None, revision),
            Kind::Rpc {
                code,
                message,
                data,
            } => wire(code, message, data, revision),
            Kind::ResourceNotFound(uri) => {
                let code = if ErrorCode::ResourceNotFound.emitted_in(revision) {
                    ErrorCode::ResourceNotFound
                } else {
                    ErrorCode::InvalidParams
                };
                let message = format!("Resource not found: {uri}");
                wire(code.code(), message, Some(json!({ "uri": uri })), revision)
            }
            Kind::UrlElicitationRequired(urls) => url_elicitation_required(urls, revision),
            Kind::Refused(refusal) => refusal.on_wire(dialect),
        }
    }
}

fn url_elicitation_required(urls: Vec<UrlRequest>, revision: Revision) -> WireError {
    let code = ErrorCode::UrlElicitationRequired;
    if code.emitted_in(revision) {
        let message = String::from("This request requires more information.");
        let urls: Vec<_> = urls.into_iter().map(ElicitRequest::Url).collect();
        let data = json!({ "elicitations": urls });
        return wire(code.code(), message, Some(data), revision);
    }
    let urls: Vec<&str> = urls.iter().map(|url| url.url.as_str()).collect();
    let message = format!("visit {} first, then retry", urls.join(" and "));
    wire(ErrorCode::InternalError.code(), message, None, revision)
}

fn wire(code: i64, message: String, data: Option<Value>, revision: Revision) -> WireError {
    let http_status =
        ErrorCode::parse(code).map_or(200, |code| code.http_status(revision, Site::Application));
    WireError {
        code,
        message,
        data: data.map(|data| data.to_string()),
        http_status,
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::failed(with_causes(&error))
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(text) => write!(f, "failed: {text}"),
            Kind::Rpc { code, message, .. } => write!(f, "{message} ({code})"),
            Kind::ResourceNotFound(uri) => write!(f, "no resource {uri}"),
            Kind::UrlElicitationRequired(urls) => write!(f, "{} urls to visit first", urls.len()),
            Kind::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}
