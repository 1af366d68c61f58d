//! A legacy client that stays, while its server comes back as one of the other era.

use std::sync::{Arc, OnceLock};

use mcpact::server::backend::ClientIdentity;
use mcpact_spec::{Era, Method};
use tokio::sync::OnceCell;

use super::Bridge;
use super::caller::Caller;
use super::claim::Who;
use super::ear::{Ear, FarEar};
use super::lane::Lane;
use super::latecomer::Kept;
use super::succession::Followed;
use crate::error::{ServeError, UpstreamErrorKind};

/// How often in a row a server may turn out to be another one than a moment ago.
const TURNS: usize = 3;

/// What it takes to introduce a client once more.
#[derive(Debug)]
pub(super) struct Renewal {
    /// The era of the server that it was introduced to.
    era: Era,
    opening: Kept,
    visitor: ClientIdentity,
    ear: OnceLock<FarEar>,
    /// Who stands for it at a server of the other era.
    next: OnceCell<Arc<Caller>>,
    /// Who stands for it at a server that has taken the place of this one.
    followed: Followed,
}

impl Renewal {
    pub(super) fn new(era: Era, opening: Kept, visitor: &ClientIdentity) -> Self {
        Self {
            era,
            opening,
            visitor: visitor.clone(),
            ear: OnceLock::new(),
            next: OnceCell::new(),
            followed: Followed::default(),
        }
    }

    pub(super) const fn era(&self) -> Era {
        self.era
    }

    /// The client is there to stay.
    pub(super) fn settle(&self, ear: &Ear) {
        // A session opens once.
        let _ = self.ear.set(ear.downgrade());
    }

    /// The client, once it is there to stay.
    pub(super) fn who(&self) -> Option<Who> {
        self.ear.get().map(FarEar::who)
    }

    pub(super) fn next(&self) -> Option<&Arc<Caller>> {
        self.next.get()
    }

    /// Who stands for it at the server that has taken the place of this one.
    pub(super) async fn follow(
        &self,
        bridge: &Arc<Bridge>,
        before: &Caller,
    ) -> Result<Arc<Caller>, ServeError> {
        self.followed.to(bridge, self.renew(bridge, before)).await
    }

    async fn renew(&self, bridge: &Bridge, before: &Caller) -> Result<Arc<Caller>, ServeError> {
        let caller = self.opening.receive(bridge, &self.visitor).await?;
        if let Some(ear) = self.ear.get().and_then(FarEar::near) {
            bridge.settle(&caller, &ear);
            caller.observe(Method::Initialized, None);
        }
        if let Some(level) = before.level() {
            caller.set_level(level);
        }
        Ok(caller)
    }
}

impl Bridge {
    /// Who stands for a client at the server as it is, and on which connection.
    pub(super) async fn current(
        &self,
        mut caller: Arc<Caller>,
    ) -> Result<(Arc<Caller>, Arc<Lane>), ServeError> {
        for _ in 0..TURNS {
            let lane = caller.lane().await.map_err(ServeError::from)?;
            let Some(renewal) = caller
                .renewal()
                .filter(|renewal| renewal.era != lane.revision().era())
            else {
                return Ok((caller, lane));
            };
            let renewed = renewal
                .next
                .get_or_try_init(|| renewal.renew(self, &caller));
            // In a box: what is rare makes every call larger otherwise.
            let renewed = Arc::clone(Box::pin(renewed).await?);
            caller = renewed;
        }
        Err(caller.lost_call(UpstreamErrorKind::RevisionChanged).into())
    }
}
