//! A way to the server that outlives its connections.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpact::client::Verdicts;
use mcpact_bridge::input::Backoff;
use mcpact_engine::client::EraMode;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::Instant;

use super::lane::Lane;
use crate::error::{Trouble, UpstreamError};
use crate::target::Target;
use crate::upstream::{HeaderBook, Wish, connect};

/// How long to wait after a connection that did not last.
const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(30),
};

/// A connection that lasted this long was a good one.
const LASTED: Duration = Duration::from_secs(10);

/// What all ways to the server share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Held by everything that lives as long as a connection.
    pub(super) alive: mpsc::Sender<Infallible>,
    pub(super) target: Target,
    pub(super) mode: EraMode,
    pub(super) verdicts: Verdicts,
    pub(super) book: Arc<HeaderBook>,
}

/// Connects when somebody needs it, and again when the connection was lost.
#[derive(Debug)]
pub(super) struct Port {
    shared: Arc<Shared>,
    wish: Wish,
    current: Mutex<Option<Arc<Lane>>>,
    /// Whoever holds it connects; the others wait for the outcome.
    opening: AsyncMutex<History>,
}

#[derive(Debug, Default)]
struct History {
    failures: u32,
    last: Option<Instant>,
}

impl Port {
    pub(super) fn new(shared: Arc<Shared>, wish: Wish) -> Self {
        Self {
            shared,
            wish,
            current: Mutex::default(),
            opening: AsyncMutex::default(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Lane>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn live(&self) -> Option<Arc<Lane>> {
        self.current()
            .as_ref()
            .filter(|lane| !lane.upstream.is_gone())
            .cloned()
    }

    /// The connection, opened if there is none.
    pub(super) async fn lane(&self) -> Result<Arc<Lane>, UpstreamError> {
        if let Some(lane) = self.live() {
            return Ok(lane);
        }
        let mut history = self.opening.lock().await;
        if let Some(lane) = self.live() {
            return Ok(lane);
        }
        history.check().map_err(|kind| self.error(kind))?;
        let before = self.current().take();
        let lane = match self.open().await {
            Ok(lane) => Arc::new(lane),
            Err(kind) => {
                history.failed();
                return Err(self.error(kind));
            }
        };
        history.opened();
        lane.serve_strays();
        if let Some(before) = before {
            lane.take_over(&before).await;
        }
        *self.current() = Some(Arc::clone(&lane));
        Ok(lane)
    }

    fn error(&self, kind: Trouble) -> UpstreamError {
        let error = UpstreamError {
            target: self.shared.target.to_string(),
            kind,
        };
        tracing::warn!(%error, "the server cannot be used");
        error
    }

    async fn open(&self) -> Result<Lane, Trouble> {
        let key = self.shared.target.key();
        let (prior, mut asking) = self.shared.verdicts.consult(&key).await;
        let wish = Wish {
            mode: self.shared.mode,
            prior,
            ..self.wish.clone()
        };
        match connect(&self.shared.target, &wish, &self.shared.alive).await {
            Ok(met) => {
                if let Some(verdict) = met.verdict {
                    asking.learn(verdict);
                }
                let pact = &met.upstream.pact;
                tracing::info!(
                    target = %self.shared.target,
                    revision = pact.revision().as_str(),
                    era = pact.era().as_str(),
                    outcome = "agreed",
                    "negotiated with the server"
                );
                Ok(Lane::new(met, Arc::clone(&self.shared.book)))
            }
            Err(trouble) => {
                if prior.is_some() {
                    // What was believed about the server may be what is wrong.
                    asking.forget();
                }
                Err(trouble)
            }
        }
    }
}

impl History {
    /// Whether the server may be tried again already.
    fn check(&mut self) -> Result<(), Trouble> {
        let Some(last) = self.last else {
            return Ok(());
        };
        if last.elapsed() > LASTED {
            self.failures = 0;
        }
        let pause = match self.failures {
            0 => Duration::ZERO,
            failures => PAUSES.pause(failures - 1),
        };
        match pause.checked_sub(last.elapsed()) {
            Some(wait) if !wait.is_zero() => Err(Trouble::Suspended {
                attempts: self.failures,
                wait_ms: wait.as_millis(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(Instant::now());
    }

    /// A connection counts as a failure until it has lasted.
    fn opened(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() > LASTED) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = Some(Instant::now());
    }
}
