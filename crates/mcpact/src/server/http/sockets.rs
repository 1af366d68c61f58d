//! WebSockets: behind each stands an ordinary connection of lines.

use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::http::server::Answer;
use tokio::sync::{Semaphore, watch};

use crate::server::backend::Backend;
use crate::server::ending::Ending;
use crate::server::lines;

/// How many sockets may be open at a time.
const LIMIT: usize = 1000;

/// How long those may take to be told whose socket is ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Sockets {
    seats: Arc<Semaphore>,
    resting: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            seats: Arc::new(Semaphore::new(LIMIT)),
            resting: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
        }
    }
}

impl Sockets {
    pub(super) fn open<B: Backend>(&self, backend: &Arc<B>, principal: Arc<str>) -> Answer {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            return Answer::text(503, "too many sockets");
        };
        let backend = Arc::clone(backend);
        let resting = self.resting.subscribe();
        let mut stopping = self.stopping.subscribe();
        Answer::socket(move |link| {
            tokio::spawn(async move {
                let ending = Ending::new(lines::LEFT, stopping.clone()).or_at_rest(resting);
                let stopped = async {
                    let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
                    tokio::time::sleep(LAST_WORDS).await;
                };
                tokio::select! {
                    served = lines::run(backend, link, principal, "websocket", ending) => {
                        if let Err(error) = served {
                            tracing::debug!(%error, "connection ended");
                        }
                    }
                    () = stopped => {}
                }
                drop(seat);
            });
        })
    }

    /// How many are open.
    pub(super) fn len(&self) -> usize {
        LIMIT - self.seats.available_permits()
    }

    /// Ends every socket on which nobody waits for an answer, as soon as that is so.
    pub(super) fn rest(&self) {
        self.resting.send_replace(true);
    }

    /// Ends every socket.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}
