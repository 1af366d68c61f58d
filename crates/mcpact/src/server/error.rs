use std::fmt;

use mcpact_engine::refusal::{Dialect, Refusal, WireError};
use mcpact_spec::{ErrorCode, Revision, Site};
use serde_json::{Value, json};

use crate::model::{ElicitRequest, UrlRequest};

/// Why a handler gives no result.
///
/// Any error converts into one by `?`; for a tool that is a failed result that the model may read,
/// for everything else an internal error.
pub struct HandlerError(pub(super) Kind);

pub(super) enum Kind {
    /// It failed in a way that its caller may read about.
    Failed(String),
    /// The request itself is refused.
    Rpc {
        code: i64,
        message: String,
        data: Option<Value>,
    },
    /// There is no such resource; the code depends on the revision.
    NoResource(String),
    /// Pages must be visited first.
    VisitFirst(Vec<UrlRequest>),
    /// The engine refuses, with a code of its own.
    Refused(Box<Refusal>),
    /// A question is open; the handler will run again with the answer.
    Interrupted,
}

impl HandlerError {
    /// It failed; the text is for whoever called.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self(Kind::Failed(text.into()))
    }

    /// It panicked: not even a tool's failed result, since nobody knows what became of it.
    pub(super) fn failed_inside() -> Self {
        Self::rpc(ErrorCode::InternalError.code(), "Internal error")
    }

    /// The parameters do not fit.
    #[must_use]
    pub fn invalid_params(text: impl Into<String>) -> Self {
        Self::rpc(ErrorCode::InvalidParams.code(), text)
    }

    /// There is no resource with this address.
    #[must_use]
    pub fn no_resource(uri: impl Into<String>) -> Self {
        Self(Kind::NoResource(uri.into()))
    }

    /// The request can be served once the user has visited these pages; the client then tries again.
    /// Only 2025-11-25 has a code for that. Under other revisions it is a failure whose text names the
    /// pages: a modern handler asks by [`Context::elicit`](super::Context::elicit) instead.
    #[must_use]
    pub fn visit_first(pages: &[UrlRequest]) -> Self {
        Self(Kind::VisitFirst(pages.to_vec()))
    }

    /// A JSON-RPC error of the caller's choice.
    #[must_use]
    pub fn rpc(code: i64, message: impl Into<String>) -> Self {
        Self(Kind::Rpc {
            code,
            message: message.into(),
            data: None,
        })
    }

    /// The same with data for programs.
    #[must_use]
    pub fn with_data(mut self, value: Value) -> Self {
        if let Kind::Rpc { data, .. } = &mut self.0 {
            *data = Some(value);
        }
        self
    }

    /// What the client sees when it is not the failed result of a tool.
    pub(super) fn on_wire(self, dialect: Dialect) -> WireError {
        let revision = dialect.revision;
        match self.0 {
            Kind::Failed(message) => wire(ErrorCode::InternalError.code(), message, None, revision),
            Kind::Rpc {
                code,
                message,
                data,
            } => wire(code, message, data, revision),
            Kind::NoResource(uri) => {
                let code = if ErrorCode::ResourceNotFound.emitted_in(revision) {
                    ErrorCode::ResourceNotFound
                } else {
                    ErrorCode::InvalidParams
                };
                let message = format!("Resource not found: {uri}");
                wire(code.code(), message, Some(json!({ "uri": uri })), revision)
            }
            Kind::VisitFirst(pages) => visit_first(pages, revision),
            Kind::Refused(refusal) => refusal.on_wire(dialect),
            Kind::Interrupted => wire(
                ErrorCode::InternalError.code(),
                String::from("the handler asked for input where none can be given"),
                None,
                revision,
            ),
        }
    }
}

fn visit_first(pages: Vec<UrlRequest>, revision: Revision) -> WireError {
    let code = ErrorCode::UrlElicitationRequired;
    if code.emitted_in(revision) {
        let message = String::from("This request requires more information.");
        let pages: Vec<_> = pages.into_iter().map(ElicitRequest::Url).collect();
        let data = json!({ "elicitations": pages });
        return wire(code.code(), message, Some(data), revision);
    }
    let pages: Vec<&str> = pages.iter().map(|page| page.url.as_str()).collect();
    let message = format!("visit {} first, then try again", pages.join(" and "));
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
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            text.push_str(": ");
            text.push_str(&source.to_string());
            cause = source.source();
        }
        Self::failed(text)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(text) => write!(f, "failed: {text}"),
            Kind::Rpc { code, message, .. } => write!(f, "{message} ({code})"),
            Kind::NoResource(uri) => write!(f, "no resource {uri}"),
            Kind::VisitFirst(pages) => write!(f, "{} pages to visit first", pages.len()),
            Kind::Refused(refusal) => write!(f, "{refusal}"),
            Kind::Interrupted => f.write_str("waiting for input"),
        }
    }
}
