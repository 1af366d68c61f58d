//! WebSockets: each carries a line-based connection.

use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::http::server::HttpResponse;
use tokio::sync::Semaphore;

use crate::server::backend::Backend;
use crate::server::connection;
use crate::server::connection::SessionSwitches;

/// Maximum number of open sockets.
const LIMIT: usize = 1000;

/// Time for the error responses of a socket that is closed by the server.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct WebSockets {
    permits: Arc<Semaphore>,
    pub(super) switches: SessionSwitches,
}

impl Default for WebSockets {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(LIMIT)),
            switches: SessionSwitches::default(),
        }
    }
}

impl WebSockets {
    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> HttpResponse {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return HttpResponse::text(503, "too many sockets");
        };
        let backend = Arc::clone(backend);
        let session_end = self.switches.session_end(connection::DISCONNECT_GRACE);
        HttpResponse::socket(move |link| {
            tokio::spawn(async move {
                let stop_requested = session_end.clone().stop_requested();
                let stopped = async {
                    stop_requested.await;
                    tokio::time::sleep(CLOSE_TIMEOUT).await;
                };
                tokio::select! {
                    served = connection::run(backend, link, principal, "websocket", session_end) => {
                        if let Err(error) = served {
                            tracing::debug!(%error, "connection ended");
                        }
                    }
                    () = stopped => {}
                }
                drop(permit);
            });
        })
    }

    /// Returns the number of open sockets.
    pub(super) fn len(&self) -> usize {
        LIMIT - self.permits.available_permits()
    }
}
