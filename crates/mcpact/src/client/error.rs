//! What can go wrong with a client, by blame.

use std::time::Duration;

use mcpact_engine::client::{Failure, ProbeFailure};
use mcpact_engine::refusal::ApiMisuse;
use mcpact_engine::transcript::Transcript;
use mcpact_spec::ErrorCode;
use mcpact_transport::error::DoorError;
use serde_json::Value;

use crate::conformity::Misfit;
use crate::model::{ElicitRequest, UrlRequest};

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot reach {target}: check that it runs and that the address is right{}", last_words(.stderr))]
    Unreachable {
        /// What was to be reached.
        target: String,
        /// The end of what a child process wrote to its log.
        stderr: String,
        /// What went wrong at the door.
        #[source]
        source: DoorError,
    },
    /// The server was reached, but the two could not agree.
    #[error("no agreement with {target}: {}", .failure.advice())]
    Refused {
        /// Who was asked.
        target: String,
        /// Why.
        #[source]
        failure: Failure,
        /// What happened, step by step.
        trail: Box<Transcript>,
    },
    /// The server wants credentials.
    #[error("the server wants authentication (HTTP {status}): set an `Authorization` header{}", challenge.as_deref().map(|c| format!("; it asks for `{c}`")).unwrap_or_default())]
    Auth {
        /// 401 or 403.
        status: u16,
        /// Its `WWW-Authenticate` header.
        challenge: Option<String>,
    },
    /// The server answered with a status and no message.
    #[error("the server answered with HTTP {status}{}", retry_after.as_deref().map(|t| format!(" and wants a pause of `{t}`")).unwrap_or_default())]
    Http {
        /// The status.
        status: u16,
        /// Its `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The exchange went wrong at the door.
    #[error("the exchange with the server failed")]
    Door(#[source] DoorError),
    /// The message was not sent, because it was not negotiated or could not be written.
    #[error(transparent)]
    NotNegotiated(#[from] ApiMisuse),
    /// The server answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The server did not answer in time.
    #[error(
        "`{method}` was not answered in time: it was given up, raise the timeout if the server is slow"
    )]
    Timeout {
        /// The method.
        method: String,
    },
    /// The caller gave the request up.
    #[error("the request was cancelled")]
    Cancelled,
    /// The connection is gone.
    #[error("the connection is closed: connect anew")]
    Closed,
    /// The session ended while the request was in flight; it may or may not have been served.
    #[error("the server ended the session, and again after a new one was opened")]
    SessionLost,
    /// The answer does not have the shape that the method asks for.
    #[error("the answer to `{method}` cannot be read")]
    Unreadable {
        /// The method.
        method: String,
        /// Where it went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A message does not fit the official schema of the revision.
    #[error("{what} `{method}` cannot be used")]
    Misfit {
        /// Which message of the exchange.
        what: &'static str,
        /// The method.
        method: String,
        /// What is wrong with it.
        #[source]
        source: Misfit,
    },
    /// The arguments are not a JSON object.
    #[error("arguments must be a JSON object")]
    Arguments,
    /// The server wants input that this client has no handler for.
    #[error("the server wants `{method}` answered, but no handler is registered for it")]
    Unanswerable {
        /// The method of the question.
        method: String,
    },
    /// A handler of this client could not answer what the server wants.
    #[error("the handler for `{method}` failed")]
    Handler {
        /// The method of the question.
        method: String,
        /// What the handler said.
        #[source]
        source: AnswerError,
    },
    /// The server broke a rule.
    #[error("the server broke a rule: {0}")]
    Misbehaved(&'static str),
    /// A limit of this client was reached.
    #[error("gave up after {limit} {what}")]
    Limit {
        /// How many were allowed.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// The file with what is known about servers cannot be used.
    #[error("cannot use the verdict file `{path}`")]
    VerdictFile {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// An error that the server answered with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the server answered with error {code}: {message}")]
pub struct RpcError {
    /// Its code; unknown codes are kept.
    pub code: i64,
    /// Its text.
    pub message: String,
    /// Its data.
    pub data: Option<Value>,
}

impl RpcError {
    /// The pages that must be visited before the request is tried again; none for other errors.
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

/// Why a handler of this client does not answer a question of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct AnswerError {
    /// The code that a legacy server sees.
    pub code: i64,
    /// The text that a legacy server sees.
    pub message: String,
}

impl AnswerError {
    /// The person does not want it. `2025-11-25 client/sampling#error-handling` uses -1.
    #[must_use]
    pub fn rejected(message: impl Into<String>) -> Self {
        Self {
            code: -1,
            message: message.into(),
        }
    }

    /// The question cannot be understood.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: -32602,
            message: message.into(),
        }
    }

    /// Something went wrong here.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            code: -32603,
            message: message.into(),
        }
    }
}

impl ClientError {
    /// The code of an error that the server answered with.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Rpc(error) => Some(error.code),
            _ => None,
        }
    }

    /// A failure of the machine, told in the words of the client.
    pub(super) fn failed(target: &str, failure: Failure, trail: &Transcript) -> Self {
        match failure {
            Failure::Probe(ProbeFailure::Authentication(status)) => Self::Auth {
                status,
                challenge: None,
            },
            Failure::Probe(ProbeFailure::TooManyRequests) => Self::Http {
                status: 429,
                retry_after: None,
            },
            failure => Self::Refused {
                target: target.to_owned(),
                failure,
                trail: Box::new(trail.clone()),
            },
        }
    }
}

fn last_words(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; its log ends with:\n{text}"),
    }
}

/// How long something may take, as a caller sees it.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
