//! Errors of connections.

use std::fmt;

use bytestring::ByteString;
use mcpact_engine::client::Failure;
use mcpact_engine::transcript::Transcript;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::ClientResponse;

const STDERR: &str = "; stderr: ";

/// Number of characters shown of a server's stderr.
const STDERR_CHARS: usize = 600;

/// Reason why no connection was made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be reached or started.
    #[error("{}", .0.connect_failure())]
    Transport(#[from] TransportError),
    /// The URL answers, but not as an MCP endpoint.
    #[error("no MCP endpoint at this URL (HTTP {status})")]
    NotMcp {
        /// HTTP status of the first message.
        status: u16,
        /// Failure of the older HTTP+SSE transport.
        source: TransportError,
    },
    /// The server refused the handshake with an HTTP status that does not depend on the revision.
    #[error("the server answered with status {}", .0.status)]
    HttpStatus(HttpRefusal),
    /// The process exited before the negotiation had finished.
    #[error("the server exited during startup ({status})")]
    Exited {
        /// Exit status, as text.
        status: String,
        /// End of the server's stderr.
        stderr: String,
        /// Steps of the negotiation.
        transcript: Box<Transcript>,
    },
    /// The negotiation failed.
    #[error("negotiation with the server failed")]
    Negotiation {
        /// Cause.
        #[source]
        failure: Failure,
        /// End of the server's stderr.
        stderr: String,
        /// Steps of the negotiation.
        transcript: Box<Transcript>,
    },
}

/// Refusal with an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    /// HTTP status.
    pub status: u16,
    /// `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// `Retry-After` header.
    pub retry_after: Option<String>,
    /// Raw error of a server that rejects the revision.
    pub error: Option<ByteString>,
}

impl HttpRefusal {
    pub(super) fn of(answer: &ClientResponse) -> Self {
        Self {
            status: answer.status,
            challenge: answer.header("www-authenticate").map(str::to_owned),
            retry_after: answer.header("retry-after").map(str::to_owned),
            error: None,
        }
    }
}

/// Details of a failed exchange over HTTP.
#[derive(Debug)]
pub enum HttpFailure {
    /// The server refused the request with a status.
    Refused(HttpRefusal),
    /// The request was not delivered, or its response not received.
    Transport(TransportError),
}

/// Fate of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The request was never written.
    NotSent,
    /// The server refused the request before reading it.
    RefusedUnread,
    /// The server may have run the request.
    Unknown,
}

/// Cause of a failure and the end of the server's stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureText {
    /// The cause, in one line.
    pub cause: String,
    /// End of the stderr, or empty.
    pub stderr: String,
}

impl FailureText {
    /// Returns the cause in one line, without the stderr.
    #[must_use]
    pub fn in_short(&self) -> String {
        self.cause.replace(['\n', '\r'], " ")
    }
}

impl From<&str> for FailureText {
    fn from(cause: &str) -> Self {
        Self::from(cause.to_owned())
    }
}

impl From<String> for FailureText {
    fn from(cause: String) -> Self {
        Self {
            cause,
            stderr: String::new(),
        }
    }
}

impl fmt::Display for FailureText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        let stderr = self.stderr.trim();
        if stderr.is_empty() {
            return Ok(());
        }
        let skipped = stderr.chars().count().saturating_sub(STDERR_CHARS);
        let ellipsis = if skipped > 0 { "…" } else { "" };
        let end: String = stderr.chars().skip(skipped).map(printable).collect();
        write!(f, "{STDERR}{ellipsis}{end}")
    }
}

/// Replaces control characters, which could drive a terminal.
fn printable(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}
