//! Error of one request, typed until the backend encodes it.

use std::borrow::Cow;
use std::sync::Arc;

use mcpact::connection::Delivery;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Revision, Site};

use super::{Explanation, UpstreamError};
use crate::metrics::Outcome;
use crate::retry::{Attempt, Cause, ServerDoubt};

/// Error of one request through the gateway.
///
/// `impl Backend` is the one place that encodes it ([`ServeError::into_wire`]). Decisions look at the kind, never at
/// message or data.
#[derive(Clone, Debug)]
pub(crate) struct ServeError {
    pub(crate) kind: ServeErrorKind,
    /// Set if the server may have changed since the negotiation.
    doubt: Option<ServerDoubt>,
}

/// Origin of an error.
#[derive(Clone, Debug)]
pub(crate) enum ServeErrorKind {
    /// The upstream server could not be used.
    Upstream(Arc<UpstreamError>),
    /// Error response of the upstream server, translated for the client.
    Response(WireError),
    /// Refusal by the gateway.
    Refused(WireError),
}

impl From<ServeErrorKind> for ServeError {
    fn from(kind: ServeErrorKind) -> Self {
        Self { kind, doubt: None }
    }
}

impl From<WireError> for ServeError {
    fn from(error: WireError) -> Self {
        ServeErrorKind::Refused(error).into()
    }
}

impl From<UpstreamError> for ServeError {
    fn from(error: UpstreamError) -> Self {
        ServeErrorKind::Upstream(Arc::new(error)).into()
    }
}

impl ServeError {
    /// Error response of the upstream server, translated for the client.
    pub(crate) fn response(error: WireError) -> Self {
        ServeErrorKind::Response(error).into()
    }

    /// Records that the server may have changed since the negotiation, or clears that.
    pub(crate) fn with_doubt(self, doubt: Option<ServerDoubt>) -> Self {
        Self { doubt, ..self }
    }

    /// Returns the reason to negotiate with the server again.
    pub(crate) const fn doubt(&self) -> Option<ServerDoubt> {
        self.doubt
    }

    /// Encodes the error for the client.
    pub(crate) fn into_wire(self) -> WireError {
        match self.kind {
            ServeErrorKind::Upstream(error) => error.on_wire(),
            ServeErrorKind::Response(error) | ServeErrorKind::Refused(error) => error,
        }
    }

    /// Encodes the error for a client that fetches it later.
    pub(crate) fn to_wire(&self) -> WireError {
        self.clone().into_wire()
    }

    /// Returns the failed attempt, as input of the retry policy. `has_successor` is called only if it matters.
    pub(crate) fn attempt(&self, has_successor: impl FnOnce() -> bool) -> Attempt {
        match (self.doubt, &self.kind) {
            (Some(doubt), _) => doubt.attempt(),
            (None, ServeErrorKind::Upstream(error)) if error.kind.is_retired() => Attempt {
                has_successor: has_successor(),
                ..Attempt::new(Cause::Retired, error.kind.delivery())
            },
            (None, ServeErrorKind::Upstream(error)) => {
                Attempt::new(Cause::Other, error.kind.delivery())
            }
            // The server has answered, so it has run the request.
            (None, ServeErrorKind::Response(_)) => Attempt::new(Cause::Other, Delivery::Unknown),
            (None, ServeErrorKind::Refused(_)) => Attempt::new(Cause::Other, Delivery::NotSent),
        }
    }

    /// Returns true if the server was retired before it was given the request.
    pub(crate) fn is_retired(&self) -> bool {
        matches!(&self.kind, ServeErrorKind::Upstream(error) if error.kind.is_retired())
    }

    /// Returns the outcome of the request in the metrics.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.kind {
            ServeErrorKind::Upstream(error) => error.kind.outcome(),
            // A refusal of the gateway is about the request, and so is a response of the server.
            ServeErrorKind::Response(_) | ServeErrorKind::Refused(_) => Outcome::Error,
        }
    }

    /// Returns the JSON-RPC error code.
    pub(crate) fn code(&self) -> i64 {
        match &self.kind {
            ServeErrorKind::Upstream(_) => UpstreamError::CODE,
            ServeErrorKind::Response(error) | ServeErrorKind::Refused(error) => error.code,
        }
    }

    /// Returns the message for the client.
    pub(crate) fn message(&self) -> Cow<'_, str> {
        match &self.kind {
            ServeErrorKind::Upstream(error) => error.message().into(),
            ServeErrorKind::Response(error) | ServeErrorKind::Refused(error) => {
                error.message.as_str().into()
            }
        }
    }

    /// Applies a change to an error that is already in JSON-RPC form.
    pub(crate) fn map_wire(self, change: impl FnOnce(WireError) -> WireError) -> Self {
        let kind = match self.kind {
            ServeErrorKind::Upstream(_) => self.kind,
            ServeErrorKind::Response(error) => ServeErrorKind::Response(change(error)),
            ServeErrorKind::Refused(error) => ServeErrorKind::Refused(change(error)),
        };
        Self { kind, ..self }
    }

    /// Names the server in the message, which upstream errors do themselves.
    pub(crate) fn at(self, server: &str) -> Self {
        self.map_wire(|error| WireError {
            message: format!("`{server}`: {}", error.message),
            ..error
        })
    }

    /// Returns the cause without the name of the server.
    pub(crate) fn explanation(&self) -> Explanation {
        match &self.kind {
            ServeErrorKind::Upstream(error) => error.explanation(),
            ServeErrorKind::Response(error) | ServeErrorKind::Refused(error) => {
                error.message.as_str().into()
            }
        }
    }
}

/// Error in JSON-RPC form, with the HTTP status of its code for a client of this revision.
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
