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
    hello: SavedHello,
    identity: ClientIdentity,
    sink: OnceLock<WeakClientSink>,
    /// ClientRef stands for it at a server of the other era.
    next: OnceCell<Arc<ServerBinding>>,
    /// ClientRef stands for it at a server that has taken the place of this one.
    followed: SuccessorBinding,
}

impl Rebind {
    pub(crate) fn new(era: Era, hello: SavedHello, identity: &ClientIdentity) -> Self {
        Self {
            era,
            hello,
            identity: identity.clone(),
            sink: OnceLock::new(),
            next: OnceCell::new(),
            followed: SuccessorBinding::default(),
        }
    }

    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    /// The client is there to stay.
    pub(crate) fn settle(&self, sink: &ClientSink) {
        // A session opens once.
        let _ = self.sink.set(sink.downgrade());
    }

    /// The client, once it is there to stay.
    pub(crate) fn who(&self) -> Option<ClientRef> {
        self.sink.get().map(WeakClientSink::who)
    }

    pub(crate) fn next(&self) -> Option<&Arc<ServerBinding>> {
        self.next.get()
    }

    /// ClientRef stands for it at the server that has taken the place of this one.
    pub(crate) async fn follow(
        &self,
        server: &Arc<UpstreamServer>,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        self.followed.to(server, self.renew(server, before)).await
    }

    async fn renew(
        &self,
        server: &UpstreamServer,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.hello.receive(server, &self.identity).await?;
        if let Some(sink) = self.sink.get().and_then(WeakClientSink::near) {
            server.settle(&binding, &sink);
            binding.observe(Method::Initialized, None);
        }
        if let Some(level) = before.level() {
            binding.set_level(level);
        }
        Ok(binding)
    }
}

/// Returns the binding that the latest change of the server's era left.
pub(crate) fn latest(mut binding: &ServerBinding) -> &ServerBinding {
    while let Some(next) = binding.rebind().and_then(Rebind::next) {
        binding = next;
    }
    binding
}

/// Returns the client's binding to the server as it is now, with a connection.
pub(crate) async fn current(
    server: &UpstreamServer,
    mut binding: Arc<ServerBinding>,
) -> Result<(Arc<ServerBinding>, Arc<UpstreamConnection>), ServeError> {
    for _ in 0..TURNS {
        let connection = binding.connection().await.map_err(ServeError::from)?;
        let Some(rebind) = binding
            .rebind()
            .filter(|rebind| rebind.era != connection.revision().era())
        else {
            return Ok((binding, connection));
        };
        let renewed = rebind
            .next
            .get_or_try_init(|| rebind.renew(server, &binding));
        // In a box: what is rare makes every call larger otherwise.
        let renewed = Arc::clone(Box::pin(renewed).await?);
        binding = renewed;
    }
    Err(binding.lost_call(UpstreamErrorKind::RevisionChanged).into())
}
