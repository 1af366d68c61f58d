//! Line-based clients over TCP.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::tcp::Listener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::backend::Backend;
use super::connection;
use super::dispatch::Core;
use super::principal::anonymous;
use super::session_end::SessionEnd;

/// Maximum number of concurrent clients; further ones wait.
const LIMIT: usize = 1000;

/// Pause after a failed accept, for example due to too many clients files.
const PAUSE: Duration = Duration::from_millis(50);

/// TCP server for line-based clients, bound to an address.
#[derive(Debug)]
pub struct LineListener {
    pub(super) listener: Listener,
    pub(super) core: Arc<Core>,
}

impl LineListener {
    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("tcp://{}", self.address())
    }

    /// Serves until `stop` resolves.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { listener, core } = self;
        let permits = Arc::new(Semaphore::new(LIMIT));
        let mut clients = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut stop => break,
                next = next => next,
            };
            while clients.try_join_next().is_some() {}
            match accepted {
                Ok(link) => {
                    let core = Arc::clone(&core);
                    let session_end = SessionEnd::after(connection::DISCONNECT_GRACE);
                    clients.spawn(async move {
                        if let Err(error) =
                            connection::run(core, link, anonymous(), "tcp", session_end).await
                        {
                            tracing::debug!(%error, "connection ended");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        core.stop();
    }
}
