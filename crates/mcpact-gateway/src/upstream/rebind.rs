//! Rebinding of a legacy client after a change of the server's era.

use std::sync::Arc;

use mcpact_spec::Era;

use crate::connection::UpstreamConnection;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::SavedClient;

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
    /// Binds the client again, to its server or a successor, with the log level of the binding before.
    pub(crate) async fn bind(
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

/// Returns the binding that the latest change of the server's era left.
pub(crate) fn latest(mut binding: &ServerBinding) -> &ServerBinding {
    while let Some(rebind) = binding.rebind()
        && let Some(next) = rebind.client.binding.get()
    {
        binding = next;
    }
    binding
}

/// Returns the client's binding for the current era of the server, and a connection.
pub(crate) async fn current(
    server: &UpstreamServer,
    mut binding: Arc<ServerBinding>,
) -> Result<(Arc<ServerBinding>, Arc<UpstreamConnection>), ServeError> {
    for _ in 0..ERA_CHANGES {
        let connection = binding.connection().await?;
        let era = connection.revision().era();
        let Some(rebind) = binding.rebind().filter(|rebind| rebind.era != era) else {
            return Ok((binding, connection));
        };
        let bind = || rebind.bind(server, &binding);
        // Boxed: this is rare, and would otherwise enlarge the future of every call.
        let next = Box::pin(rebind.client.binding.get_or_try_init(bind)).await?;
        binding = Arc::clone(next);
    }
    Err(binding.lost_call(UpstreamErrorKind::RevisionChanged).into())
}
