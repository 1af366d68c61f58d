//! Many clients on lines over TCP.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::tcp::Listener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::backend::Backend;
use super::dispatch::Core;
use super::ending::Ending;
use super::lines;
use super::principal::nobody;

/// How many clients are served at a time; the next one waits.
const LIMIT: usize = 1000;

/// The pause after a client could not be accepted, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that is bound to a port of its own for lines.
#[derive(Debug)]
pub struct ListeningLines {
    pub(super) listener: Listener,
    pub(super) core: Arc<Core>,
}

impl ListeningLines {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The address that clients use.
    #[must_use]
    pub fn url(&self) -> String {
        format!("tcp://{}", self.address())
    }

    /// Serves until `stop` resolves.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { listener, core } = self;
        let seats = Arc::new(Semaphore::new(LIMIT));
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let next = async {
                let seat = Arc::clone(&seats).acquire_owned().await;
                (seat, listener.accept().await)
            };
            let (seat, accepted) = tokio::select! {
                () = &mut stop => break,
                next = next => next,
            };
            while open.try_join_next().is_some() {}
            match accepted {
                Ok(link) => {
                    let core = Arc::clone(&core);
                    let ending = Ending::after(lines::LEFT);
                    open.spawn(async move {
                        if let Err(error) = lines::run(core, link, nobody(), "tcp", ending).await {
                            tracing::debug!(%error, "connection ended");
                        }
                        drop(seat);
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
