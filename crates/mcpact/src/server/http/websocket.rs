//! WebSockets: each carries a line-based connection.

use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::http::server::HttpResponse;
use tokio::sync::{Semaphore, watch};

use crate::server::backend::Backend;
use crate::server::connection;
use crate::server::session_end::SessionEnd;

/// Maximum number of open sockets.
const LIMIT: usize = 1000;

/// Time for the error responses of a socket that is closed by the server.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct WebSockets {
    permits: Arc<Semaphore>,
    draining: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl Default for WebSockets {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(LIMIT)),
            draining: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        }
    }
}

impl WebSockets {
    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> HttpResponse {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return HttpResponse::text(503, "too many sockets");
        };
        let backend = Arc::clone(backend);
        let draining = self.draining.subscribe();
        let mut stopping = self.stopping.subscribe();
        HttpResponse::socket(move |link| {
            tokio::spawn(async move {
                let session_end = SessionEnd::new(connection::DISCONNECT_GRACE, stopping.clone())
                    .or_when_drained(draining);
                let stopped = async {
                    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
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

    /// Ends each socket as soon as it has no request in flight.
    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Ends every socket.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}
