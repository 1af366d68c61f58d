//! Memory of an idle legacy session.

use http::Response;
use hyper::body::Incoming;

use crate::error::LoadError;
use crate::http::{Caller, PATH};
use crate::process::Subject;
use crate::role::Era;

/// Number of sessions before the first measurement, to allocate shared state.
const BEFORE: usize = 16;

/// Open streams of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Nothing is open: the client comes back when it wants something.
    Absent,
    /// The client listens on a connection of its own.
    Open,
}

impl Stream {
    /// The word of the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "no stream",
            Self::Open => "open stream",
        }
    }
}

/// Resident bytes per session, once this many are idle.
///
/// # Errors
/// The server refused a session.
pub async fn per_session(
    server: &mut Subject,
    sessions: usize,
    stream: Stream,
) -> Result<f64, LoadError> {
    let address = server.address().await?;
    let mut open = Vec::new();
    settle(&address, BEFORE, stream, &mut open).await?;
    let before = server.resident()?;
    settle(&address, sessions, stream, &mut open).await?;
    let after = server.resident()?;
    Ok(after.saturating_sub(before) as f64 / sessions as f64)
}

/// Opens sessions over one connection; each that listens has another.
async fn settle(
    address: &str,
    count: usize,
    stream: Stream,
    open: &mut Vec<(Caller, Response<Incoming>)>,
) -> Result<(), LoadError> {
    let mut first = Caller::connect(address, PATH).await?;
    for _ in 0..count {
        first.renew(Era::Legacy).await?;
        if stream == Stream::Open {
            let mut twin = first.twin(address).await?;
            let listening = twin.listen().await?;
            open.push((twin, listening));
        }
    }
    Ok(())
}
