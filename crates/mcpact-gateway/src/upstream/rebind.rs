//! Rebinding of a legacy client after a change of the server's era.

use std::sync::Arc;

use mcpact::server::backend::ClientIdentity;
use mcpact_spec::Era;

use crate::connection::UpstreamConnection;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::{SavedClient, SavedHello};

/// Maximum number of era changes during one request.
const ERA_CHANGES: usize = 3;

/// Data to bind a legacy client again.
#[derive(Debug)]
pub(crate) struct Rebind {
    /// Era of the server at the time of the binding.
    pub(crate) era: Era,
    pub(crate) client: SavedClient,
}

impl Rebind {
    pub(crate) fn new(era: Era, hello: SavedHello, identity: &ClientIdentity) -> Self {
        Self {
            era,
            client: SavedClient::new(hello, identity),
        }
    }

    /// Returns the client's binding to the successor of its server.
    pub(crate) async fn successor_binding(
        &self,
        server: &Arc<UpstreamServer>,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let bind = self.bind(server, before);
        self.client.successor.to(server, bind).await
    }

    async fn bind(
        &self,
        server: &UpstreamServer,
        before: &ServerBinding,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.client.bind(server, None).await?;
        if let Some(level) = before.level() {
            binding.set_level(level);
        }
        Ok(binding)
    }
}

/// Returns the client's binding for the current era of the server, and a connection.
pub(crate) async fn current(
    server: &UpstreamServer,
    mut binding: Arc<ServerBinding>,
) -> Result<(Arc<ServerBinding>, Arc<UpstreamConnection>), ServeError> {
    for _ in 0..ERA_CHANGES {
        let connection = binding.connection().await.map_err(ServeError::from)?;
        let Some(rebind) = binding
            .rebind()
            .filter(|rebind| rebind.era != connection.revision().era())
        else {
            return Ok((binding, connection));
        };
        let bind = || rebind.bind(server, &binding);
        // Boxed: this is rare, and would otherwise enlarge the future of every call.
        let next = Box::pin(rebind.client.binding.get_or_try_init(bind)).await?;
        binding = Arc::clone(next);
    }
    Err(binding.lost_call(UpstreamErrorKind::RevisionChanged).into())
}
