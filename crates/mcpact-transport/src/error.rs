//! What can go wrong at a door.

/// A failure of a pipe, socket, process or HTTP exchange.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// The operating system said no.
    #[error("input or output failed")]
    Io(#[from] std::io::Error),
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Spawn {
        /// Its name.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The address cannot be used.
    #[error("cannot use address `{address}`: {why}")]
    Address {
        /// As it may be shown.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A certificate or key cannot be used.
    #[error("cannot use {what}: {why}")]
    Tls {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate of the server is not accepted.
    #[error("the server's certificate is not accepted: {why}")]
    Certificate {
        /// What is wrong with it.
        why: &'static str,
        /// What would help.
        remedy: &'static str,
    },
    /// The HTTP exchange failed.
    #[error("the HTTP exchange failed: {0}")]
    Http(String),
    /// No connection could be made; nothing was sent.
    #[error("no connection could be made: {0}")]
    Unconnected(String),
    /// The peer sent more than is allowed.
    #[error("the peer sent more than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// A header that a caller may not choose, or that cannot stand in a request.
    #[error("cannot send header `{name}`: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The server points somewhere else, and following would hand our headers to another place.
    #[error(
        "the server redirects to `{location}`, which is not followed: use that address instead if you trust it"
    )]
    Redirect {
        /// Where it points.
        location: String,
    },
    /// The server points to where it was asked, or on and on.
    #[error(
        "the server redirects in a circle, last to `{location}`: check its address, and what stands before it"
    )]
    RedirectLoop {
        /// Where it points.
        location: String,
    },
    /// What the server answered is not what HTTP allows, or is cut off.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
    /// It took too long.
    #[error("timed out while {0}")]
    Timeout(&'static str),
}

/// What a connection that takes too long was doing.
pub(crate) const CONNECTING: &str = "connecting";

impl DoorError {
    /// Whether there was no connection to send anything on.
    #[must_use]
    pub fn is_unconnected(&self) -> bool {
        match self {
            Self::Unconnected(_) | Self::Certificate { .. } => true,
            Self::Timeout(doing) => *doing == CONNECTING,
            _ => false,
        }
    }
}
