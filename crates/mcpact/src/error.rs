//! What can go wrong for a program that uses this library.

use mcpact_transport::error::DoorError;

/// A failure to serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was registered cannot be served.
    #[error("{0}")]
    Registration(String),
    /// The operating system gave no random numbers.
    #[error("the operating system gave no random numbers")]
    Randomness,
    /// The address is reachable for others, and nobody said that it may be.
    #[error("`{0}` can be reached from other machines, and no token is set")]
    NotLoopback(std::net::SocketAddr),
    /// A pipe or socket failed.
    #[error(transparent)]
    Door(#[from] DoorError),
}
