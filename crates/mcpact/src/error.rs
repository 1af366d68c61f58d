//! Errors of servers.

use std::error::Error as StdError;

use mcpact_transport::error::TransportError;

/// A failure to serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registered handlers are inconsistent.
    #[error("{0}")]
    Registration(String),
    /// The operating system returned no random numbers.
    #[error("the operating system returned no random numbers")]
    Randomness,
    /// The address is reachable from other machines and no token is set.
    #[error("`{0}` is reachable from other machines, and no token is set")]
    NotLoopback(std::net::SocketAddr),
    /// The system has no Unix sockets.
    #[error("this system has no Unix sockets")]
    NoUnixSockets,
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Formats an error with its causes.
#[must_use]
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
