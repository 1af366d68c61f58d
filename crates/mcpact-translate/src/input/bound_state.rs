//! State of a modern server for a modern client, bound to the client's principal.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::claims::{Kind, Reader, start};

/// Content of the `requestState` that takes the place of a server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundState {
    /// Digest of the principal that may return the state.
    pub principal: [u8; 32],
    /// State of the server, as raw JSON.
    pub state: Box<str>,
}

impl BoundState {
    /// The plain bytes to seal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = start(Kind::Bound);
        out.extend_from_slice(&self.principal);
        out.extend_from_slice(self.state.as_bytes());
        out
    }

    /// Reads the bytes back; none when they are something else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader::open(bytes, Kind::Bound)?;
        Some(Self {
            principal: rest.take()?,
            state: rest.rest()?,
        })
    }
}
