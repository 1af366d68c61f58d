//! Errors of the transports.

use crate::budget::MemoryExhausted;
use crate::stdio::child::SandboxProblem;

/// Failure of a pipe, socket, process or HTTP request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Spawn {
        /// Name of the program.
        program: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The sandbox cannot be enforced; nothing was started.
    #[error("cannot enforce the sandbox: {0}")]
    Sandbox(SandboxProblem),
    /// The URL cannot be used.
    #[error("cannot use `{address}`: {why}")]
    Address {
        /// URL without secrets.
        address: String,
        /// Reason.
        why: &'static str,
    },
    /// A certificate or key cannot be used.
    #[error("cannot use {what}: {why}")]
    Tls {
        /// Name of the certificate or key.
        what: String,
        /// Reason.
        why: String,
    },
    /// The certificate of the server was rejected.
    #[error("the server's certificate was rejected: {why}")]
    Certificate {
        /// Reason.
        why: &'static str,
        /// Hint for the user.
        remedy: &'static str,
    },
    /// The HTTP request failed.
    #[error("the HTTP request failed: {0}")]
    Http(String),
    /// No connection could be made; nothing was sent.
    #[error("cannot connect: {0}")]
    Unconnected(String),
    /// The peer sent more than the limit.
    #[error("the peer sent more than {limit} bytes")]
    TooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// The header is reserved or invalid.
    #[error("cannot send header `{name}`: {why}")]
    Header {
        /// Name of the header.
        name: String,
        /// Reason.
        why: &'static str,
    },
    /// The server redirects to another origin, which must not see our headers.
    #[error(
        "the server redirects to another origin, `{location}`; use that URL instead if you trust it"
    )]
    Redirect {
        /// Target of the redirect.
        location: String,
    },
    /// The server redirects a request that must not be sent twice.
    #[error(
        "the server redirects the call to `{location}`; it was not sent there, because it may have run; use that URL \
         instead if you trust it"
    )]
    RedirectedCall {
        /// Target of the redirect.
        location: String,
    },
    /// The server redirects in a loop.
    #[error(
        "the server redirects in a loop, last to `{location}`; check the URL and any proxy in front of the server"
    )]
    RedirectLoop {
        /// Target of the last redirect.
        location: String,
    },
    /// The response is not valid HTTP, or is truncated.
    #[error("invalid HTTP response: {0}")]
    Unreadable(String),
    /// There is no memory for the message.
    #[error(transparent)]
    Memory(#[from] MemoryExhausted),
    /// The peer does not send the rest of a large message.
    #[error("memory is scarce, and the peer does not continue its message")]
    Unfinished,
    /// The peer does not read.
    #[error("the peer does not read: it accepted nothing for {seconds} s")]
    Stalled {
        /// Time without progress.
        seconds: u64,
    },
    /// The operation timed out.
    #[error("timed out while {0}")]
    Timeout(&'static str),
}

/// Name of the connect operation in [`TransportError::Timeout`].
pub(crate) const CONNECTING: &str = "connecting";

impl TransportError {
    /// Error for an address that cannot be used.
    pub(crate) fn address(address: impl Into<String>, why: &'static str) -> Self {
        Self::Address {
            address: address.into(),
            why,
        }
    }
    /// Returns the first part of the text of a failed connection or start; the causes follow it.
    #[must_use]
    pub fn connect_failure(&self) -> String {
        match self {
            Self::Spawn { .. } | Self::Sandbox(_) => self.to_string(),
            _ => String::from("the server cannot be reached"),
        }
    }

    /// Returns whether no connection was made, so that nothing was sent.
    #[must_use]
    pub fn is_unconnected(&self) -> bool {
        match self {
            Self::Unconnected(_) | Self::Certificate { .. } => true,
            Self::Timeout(doing) => *doing == CONNECTING,
            _ => false,
        }
    }
}
