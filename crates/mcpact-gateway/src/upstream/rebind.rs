//! A legacy client that stays, while its server comes back as one of the other era.

use std::sync::{Arc, OnceLock};

use mcpact::server::backend::ClientIdentity;
use mcpact_spec::{Era, Method};
use tokio::sync::OnceCell;

use crate::connection::UpstreamConnection;
use crate::connection::ownership::ClientRef;
use crate::downstream::sink::ClientSink;
use crate::downstream::sink::WeakClientSink;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::handover::SuccessorBinding;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::SavedHello;

/// How often in a row a server may turn out to be another one than a moment ago.
const TURNS: usize = 3;

/// What it takes to introduce a client once more.
#[derive(Debug)]
pub(crate) struct Rebind {
    /// The era of the server that it was introduced to.
    era: Era,
    opening: SavedHello,
    visitor: ClientIdentity,
    ear: OnceLock<WeakClientSink>,
    /// ClientRef stands for it at a server of the other era.
    next: OnceCell<Arc<ServerBinding>>,
    /// ClientRef stands for it at a server that has taken the place of this one.
    followed: SuccessorBinding,
}

impl Rebind {
    pub(crate) fn new(era: Era, opening: SavedHello, visitor: &ClientIdentity) -> Self {
        Self {
            era,
            opening,
            visitor: visitor.clone(),
            ear: OnceLock::new(),
            next: OnceCell::new(),
            followed: SuccessorBinding::default(),
        }
    }

    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    /// The client is there to stay.
    pub(crate) fn settle(&self, ear: &ClientSink) {
        // A session opens once.
        let _ = self.ear.set(ear.downgrade());
    }

    /// The client, once it is there to stay.
    pub(crate) fn who(&self) -> Option<ClientRef> {
        self.ear.get().map(WeakClientSink::who)
    }

    pub(crate) fn next(&self) -> Option<&Arc<ServerBinding>> {
        self.next.get()
    }

    /// ClientRef stands for it at the server that has taken the place of this one.
    pub(crate) async fn follow(
        &self,
        bridge: &Arc<UpstreamServer>,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        self.followed.to(bridge, self.renew(bridge, before)).await
    }

    async fn renew(
        &self,
        bridge: &UpstreamServer,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let caller = self.opening.receive(bridge, &self.visitor).await?;
        if let Some(ear) = self.ear.get().and_then(WeakClientSink::near) {
            bridge.settle(&caller, &ear);
            caller.observe(Method::Initialized, None);
        }
        if let Some(level) = before.level() {
            caller.set_level(level);
        }
        Ok(caller)
    }
}

impl UpstreamServer {
    /// ClientRef stands for a client at the server as it is, and on which connection.
    pub(crate) async fn current(
        &self,
        mut caller: Arc<ServerBinding>,
    ) -> Result<(Arc<ServerBinding>, Arc<UpstreamConnection>), ServeError> {
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
