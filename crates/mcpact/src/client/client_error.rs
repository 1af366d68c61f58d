//! Errors of clients.

use std::time::Duration;

use mcpact_engine::client::Failure;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_engine::transcript::Transcript;
use mcpact_spec::ErrorCode;
use mcpact_transport::error::TransportError;
use mcpact_wire::model::error::ErrorBody;
use serde_json::Value;

use crate::connection::HttpRefusal;
use crate::model::{ElicitRequest, UrlRequest};
use crate::validation::ValidationError;

/// Error of a call or connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server is unreachable.
    #[error("cannot reach {target}: check that it is running and that the URL is right{}", stderr_suffix(.stderr))]
    Unreachable {
        /// Server.
        target: String,
        /// Tail of the stderr of a child process.
        stderr: String,
        /// Transport error.
        #[source]
        source: TransportError,
    },
    /// The negotiation failed.
    #[error("no agreement with {target}: {}", .failure.advice())]
    Refused {
        /// Server.
        target: String,
        /// Cause.
        #[source]
        failure: Failure,
        /// Steps of the negotiation.
        transcript: Box<Transcript>,
    },
    /// The server requires authentication.
    #[error("the server requires authentication (HTTP {status}): set an `Authorization` header{}", challenge.as_deref().map(|c| format!("; challenge: `{c}`")).unwrap_or_default())]
    Auth {
        /// 401 or 403.
        status: u16,
        /// `WWW-Authenticate` header.
        challenge: Option<String>,
    },
    /// The server responded with a status and no message.
    #[error("the server answered with HTTP {status}{}", retry_after.as_deref().map(|t| format!("; retry after `{t}`")).unwrap_or_default())]
    Http {
        /// The status.
        status: u16,
        /// `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The transport failed.
    #[error("the connection to the server failed")]
    Transport(#[source] TransportError),
    /// The message was not sent: it was not negotiated or could not be encoded.
    #[error(transparent)]
    NotNegotiated(#[from] ApiMisuse),
    /// The server responded with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The server timed out.
    #[error("`{method}` timed out and was cancelled: raise the timeout if the server is slow")]
    Timeout {
        /// The method.
        method: String,
    },
    /// The caller cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The connection is closed.
    #[error("the connection is closed: reconnect")]
    Closed,
    /// The session ended while the request was in flight; it may or may not have been served.
    #[error("the server closed the session twice in a row")]
    SessionLost,
    /// The response is not a valid result of the method.
    #[error("the answer to `{method}` cannot be read")]
    Unreadable {
        /// The method.
        method: String,
        /// Parse error.
        #[source]
        source: serde_json::Error,
    },
    /// A message violates the official schema of the revision.
    #[error("{what} `{method}` is invalid")]
    SchemaViolation {
        /// Kind of message.
        what: &'static str,
        /// The method.
        method: String,
        /// Violations.
        #[source]
        source: ValidationError,
    },
    /// The arguments are not a JSON object.
    #[error("arguments must be a JSON object")]
    Arguments,
    /// The server asks for input without a handler.
    #[error("the server asks for `{method}`, but no handler is registered")]
    NoHandler {
        /// Method of the question.
        method: String,
    },
    /// A handler failed to answer the server.
    #[error("the handler for `{method}` failed")]
    Handler {
        /// Method of the question.
        method: String,
        /// Error of the handler.
        #[source]
        source: AnswerError,
    },
    /// The server violated the protocol.
    #[error("the server violated the protocol: {0}")]
    ProtocolViolation(&'static str),
    /// A limit of this client was reached.
    #[error("gave up after {limit} {what}")]
    Limit {
        /// Limit.
        limit: usize,
        /// Counted items.
        what: &'static str,
    },
    /// The era cache file cannot be read.
    #[error("cannot read the era cache file `{path}`")]
    EraCacheFile {
        /// The file.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
}

/// Error response of the server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the server answered with error {code}: {message}")]
pub struct RpcError {
    /// Code; unknown codes are kept.
    pub code: i64,
    /// Message.
    pub message: String,
    /// Data.
    pub data: Option<Value>,
}

impl RpcError {
    /// Reads a raw error. An unreadable one becomes the message.
    pub(super) fn parse(raw: &str) -> Self {
        match ErrorBody::parse(raw) {
            Some(body) => Self {
                code: body.code,
                message: body.message.into_owned(),
                data: body.data.and_then(|raw| serde_json::from_str(raw).ok()),
            },
            None => Self {
                code: 0,
                message: raw.to_owned(),
                data: None,
            },
        }
    }

    /// Returns the URLs that must be visited before a retry; empty for other errors.
    #[must_use]
    pub fn pending_urls(&self) -> Vec<UrlRequest> {
        if ErrorCode::parse(self.code) != Some(ErrorCode::UrlElicitationRequired) {
            return Vec::new();
        }
        let listed = self.data.as_ref().and_then(|data| data.get("elicitations"));
        let listed = listed.and_then(Value::as_array).into_iter().flatten();
        listed
            .filter_map(|one| match serde_json::from_value(one.clone()) {
                Ok(ElicitRequest::Url(request)) => Some(request),
                Ok(ElicitRequest::Form(_)) | Err(_) => None,
            })
            .collect()
    }
}

/// Error of a handler that answers the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct AnswerError {
    /// Code for a legacy server.
    pub code: i64,
    /// Message for a legacy server.
    pub message: String,
}

impl AnswerError {
    /// The user declined. `2025-11-25 client/sampling#error-handling` uses -1.
    #[must_use]
    pub fn rejected(message: impl Into<String>) -> Self {
        Self {
            code: -1,
            message: message.into(),
        }
    }

    /// The question is invalid.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: -32602,
            message: message.into(),
        }
    }

    /// The handler failed.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            code: -32603,
            message: message.into(),
        }
    }
}

impl ClientError {
    /// Returns the code of an error response.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Rpc(error) => Some(error.code),
            _ => None,
        }
    }

    /// Creates the error of a server that is unreachable.
    pub(super) fn unreachable(target: &str, source: TransportError) -> Self {
        Self::Unreachable {
            target: target.to_owned(),
            stderr: String::new(),
            source,
        }
    }

    /// Converts a refusal with an HTTP status.
    pub(super) fn refused(refusal: HttpRefusal) -> Self {
        match refusal {
            HttpRefusal {
                error: Some(raw), ..
            } => RpcError::parse(&raw).into(),
            HttpRefusal {
                status: status @ (401 | 403),
                challenge,
                ..
            } => Self::Auth { status, challenge },
            HttpRefusal {
                status,
                retry_after,
                ..
            } => Self::Http {
                status,
                retry_after,
            },
        }
    }
}

fn stderr_suffix(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; its log ends with:\n{text}"),
    }
}

/// Default timeout of a request.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
