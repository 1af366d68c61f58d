//! Calls that a server has not seen when another one takes its place: they go to that one.

use std::sync::{Arc, OnceLock, Weak};

use bytestring::ByteString;
use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::Side;
use tokio::sync::Mutex;

use super::Bridge;
use super::caller::Caller;
use super::ear::Ear;
use super::latecomer::Kept;
use super::parking::ParkingLot;
use crate::downstream::{ClientKind, ClientState};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::retry::{Attempt, Retry, RetryPolicy};

/// How many servers before one are remembered for the calls that wait for input.
const FORMER: usize = 8;

/// Why a call that may go on elsewhere has no result here.
#[derive(Debug)]
pub(crate) enum Undone {
    /// The client is told this.
    Told(ServeError),
    /// The server has not seen it, and another one has taken its place.
    Unseen,
}

impl From<ServeError> for Undone {
    fn from(error: ServeError) -> Self {
        Self::Told(error)
    }
}

/// The hand-over of a server to its successor, as one call sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    /// Another server has replaced this one.
    pub(crate) has_successor: bool,
    /// Number of times the call was moved to a successor.
    pub(crate) moves: usize,
}

impl Handover {
    /// No successor is asked.
    pub(crate) const NONE: Self = Self {
        has_successor: false,
        moves: 0,
    };
}

impl Undone {
    /// Decides whether a failed call moves to the successor of its server.
    pub(crate) fn of(error: ServeError, handover: impl FnOnce() -> Handover) -> Self {
        // Most errors are not of this kind: the successor is looked for only if it matters.
        let handover = match error.is_retired() {
            true => handover(),
            false => Handover::NONE,
        };
        let attempt = Attempt {
            cause: error.retry_cause(),
            delivery: error.delivery(),
            state_lost: false,
            has_successor: handover.has_successor,
            retries: handover.moves,
        };
        match RetryPolicy::REMOTE.decide(attempt) {
            Retry::Successor => Self::Unseen,
            Retry::FreshConnection | Retry::IfServerChanged | Retry::No => Self::Told(error),
        }
    }
}

/// Who takes a server's place, and whose it has taken.
#[derive(Debug, Default)]
pub(super) struct Succession {
    next: OnceLock<Weak<Bridge>>,
    /// Where calls wait for input that were made before, the latest first: whoever comes back for one of them goes on
    /// with it, or is told what became of it.
    before: OnceLock<Vec<Arc<ParkingLot>>>,
}

/// A client at the server that has taken the place of its own.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(super) bridge: Arc<Bridge>,
    pub(super) caller: Arc<Caller>,
}

/// Where a client that stays has followed its server to.
#[derive(Debug, Default)]
pub(super) struct Followed(Mutex<Option<Place>>);

impl Followed {
    /// Its place at this server; the first call of it that comes there makes it.
    pub(super) async fn to(
        &self,
        bridge: &Arc<Bridge>,
        meeting: impl Future<Output = Result<Arc<Caller>, ServeError>>,
    ) -> Result<Arc<Caller>, ServeError> {
        let mut place = self.0.lock().await;
        if let Some(place) = place.as_ref().filter(|place| place.is_at(bridge)) {
            return Ok(Arc::clone(&place.caller));
        }
        let caller = meeting.await?;
        *place = Some(Place {
            bridge: Arc::clone(bridge),
            caller: Arc::clone(&caller),
        });
        Ok(caller)
    }
}

impl Place {
    fn is_at(&self, bridge: &Arc<Bridge>) -> bool {
        Arc::ptr_eq(&self.bridge, bridge)
    }
}

impl Bridge {
    /// This one is served in its place from here on.
    pub(crate) fn succeeded_by(&self, next: &Arc<Self>) {
        // It goes once, and the next one comes once.
        let _ = self.succession.next.set(Arc::downgrade(next));
        let lots = self.lots().take(FORMER).cloned().collect();
        let _ = next.succession.before.set(lots);
        let _ = next.hosting.set(Arc::clone(self.hosting()));
    }

    /// Where calls wait for input: here, and where they were made before.
    pub(super) fn lots(&self) -> impl Iterator<Item = &Arc<ParkingLot>> {
        let before = self.succession.before.get().into_iter().flatten();
        std::iter::once(&self.lot).chain(before)
    }

    /// Who is served in its place, after everybody who was meanwhile.
    pub(super) fn successor(&self) -> Option<Arc<Self>> {
        let next = |bridge: &Self| bridge.succession.next.get().and_then(Weak::upgrade);
        let mut last = next(self)?;
        while let Some(one) = next(&last) {
            last = one;
        }
        Some(last)
    }

    /// Whether anybody is.
    pub(crate) fn is_succeeded(&self) -> bool {
        self.successor().is_some()
    }

    /// Welcomes a client that has not met the server before another one took its place.
    pub(super) async fn welcome_onward(
        &self,
        opening: ClientHello<'_>,
        visitor: &ClientIdentity,
    ) -> Option<Result<ClientSetup<ClientState>, ServeError>> {
        let next = self.successor()?;
        let welcome = match next.admit(opening, visitor).await {
            Ok(welcome) => welcome,
            Err(error) => return Some(Err(error)),
        };
        let ClientSetup { terms, state } = welcome;
        let caller = state.and_then(|state| state.bound().cloned());
        let place = caller.map(|caller| Place {
            bridge: next,
            caller,
        });
        Some(Ok(ClientSetup {
            terms,
            state: place.map(|place| ClientState(ClientKind::Moved(Arc::new(place)))),
        }))
    }

    /// Serves a request that the server has not seen by those who have taken its place.
    pub(super) async fn attend_onward(
        &self,
        job: BackendRequest,
        ear: Ear,
    ) -> Result<ByteString, ServeError> {
        for moves in 1..=RetryPolicy::REMOTE.successors {
            let Some(next) = self.successor() else {
                break;
            };
            next.check_served(job.method, &job.params, job.pact.revision())?;
            let goes_on = || Handover {
                has_successor: next.is_succeeded(),
                moves,
            };
            let undone = match self.caller_at(&next, &job, &ear).await {
                Ok(caller) => {
                    let (job, ear) = (job.clone(), ear.clone());
                    match next.attend_for(job, caller, ear, goes_on).await {
                        Ok(raw) => return Ok(raw),
                        Err(undone) => undone,
                    }
                }
                Err(error) => Undone::of(error, goes_on),
            };
            if let Undone::Told(error) = undone {
                return Err(error);
            }
        }
        Err(self.shared.error(UpstreamErrorKind::Retired).into())
    }

    /// Who stands for a client of this server at the next one.
    async fn caller_at(
        &self,
        next: &Arc<Self>,
        job: &BackendRequest,
        ear: &Ear,
    ) -> Result<Arc<Caller>, ServeError> {
        let caller = match ear.state().map(|state| &state.0) {
            Some(ClientKind::Pending(latecomer)) => return latecomer.follow(next).await,
            Some(ClientKind::Moved(place)) => Some(Arc::clone(&place.caller)),
            Some(ClientKind::Bound(caller)) => Some(Arc::clone(caller)),
            Some(ClientKind::Aggregate(_)) | None => None,
        };
        match caller
            .as_ref()
            .and_then(|caller| Some((caller, caller.renewal()?)))
        {
            Some((caller, renewal)) => renewal.follow(next, caller).await,
            None => introduced(job).receive(next, ear.visitor()).await,
        }
    }
}

/// A modern client, as its request shows it.
fn introduced(job: &BackendRequest) -> Kept {
    let client = job.pact.party(Side::Client);
    let info = client.info.as_deref();
    Kept::Request {
        capabilities: Box::from(client.capabilities.raw()),
        info: info.map(|info| info.encode(job.pact.revision()).into()),
    }
}
