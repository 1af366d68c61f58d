//! Memory of idle processes and idle legacy sessions.

use http::Response;
use hyper::body::Incoming;

use crate::between;
use crate::error::LoadError;
use crate::http::{Caller, PATH};
use crate::plan::{Programs, Weight};
use crate::process::Subject;
use crate::relay::{Behind, Relay};
use crate::role::Era;

/// Number of sessions before the first measurement, to allocate shared state.
const BEFORE: usize = 16;

/// Sessions that are opened over one connection: our server accepts 64.
const PER_CONNECTION: usize = 32;

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
            Self::Absent => "session without stream",
            Self::Open => "session with open stream",
        }
    }
}

/// Resident bytes per session, once this many are idle.
///
/// # Errors
/// The server refused a session.
pub async fn per_session(
    server: &Subject,
    address: &str,
    sessions: usize,
    stream: Stream,
) -> Result<f64, LoadError> {
    let _warm = settle(address, BEFORE, stream).await?;
    let before = server.resident()?;
    let _idle = settle(address, sessions, stream).await?;
    let after = server.resident()?;
    Ok(after.saturating_sub(before) as f64 / sessions as f64)
}

/// Memory of our relays: after the first client, and per session.
///
/// # Errors
/// A relay failed.
pub async fn relays(
    programs: &Programs,
    rounds: usize,
    sessions: usize,
) -> Result<Vec<Weight>, LoadError> {
    // Behind pipes, the bridge starts a process for each client.
    let behind = Behind::Http;
    let (goal, _server) = between::goal(programs, behind, Era::Legacy).await?;
    let mut weights = Vec::new();
    let recipes = [
        ("bridge", between::bridge(programs, behind)),
        ("serve", between::serve(programs, behind)),
    ];
    for (name, recipe) in recipes {
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (stream, place) in [(Stream::Absent, 1), (Stream::Open, 2)] {
                let relay = Relay::start(&recipe, &goal).await?;
                let _first = settle(&relay.address, 1, Stream::Absent).await?;
                let idle = relay.subject.resident()? as f64;
                if stream == Stream::Absent {
                    found[0].push(idle);
                }
                let each = per_session(&relay.subject, &relay.address, sessions, stream).await?;
                found[place].push(each);
            }
        }
        let names = [
            "idle process",
            Stream::Absent.as_str(),
            Stream::Open.as_str(),
        ];
        let each = names.into_iter().zip(found);
        weights.extend(each.map(|(what, rounds)| Weight::new(name, what, rounds)));
    }
    Ok(weights)
}

/// Connections with sessions, and the streams that they listen to.
#[derive(Debug)]
pub struct Idle {
    _open: Vec<(Caller, Response<Incoming>)>,
}

/// Opens idle sessions; each that listens has a connection of its own.
///
/// # Errors
/// The server refused a session.
pub async fn settle(address: &str, count: usize, stream: Stream) -> Result<Idle, LoadError> {
    let mut open = Vec::new();
    let mut first = Caller::connect(address, PATH).await?;
    for number in 0..count {
        if number % PER_CONNECTION == 0 {
            first = Caller::connect(address, PATH).await?;
        }
        first.renew(Era::Legacy).await?;
        if stream == Stream::Open {
            let mut twin = first.twin(address).await?;
            let listening = twin.listen().await?;
            open.push((twin, listening));
        }
    }
    Ok(Idle { _open: open })
}
