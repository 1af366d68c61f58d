//! A way to the server that outlives its connections.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcpact::client::Verdicts;
use mcpact_engine::client::EraMode;
use mcpact_spec::Method;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::acquaintance::Acquaintance;
use super::audience::Audience;
use super::lane::Lane;
use super::restart::Restarts;
use super::tasks::{Mapping, ToolTasks};
use crate::error::{Trouble, UpstreamError};
use crate::target::Target;
use crate::upstream::{HeaderBook, Wish, connect};

/// A pause before the next try that is waited for rather than told.
const SHORT: Duration = Duration::from_secs(2);

/// How long a new session may take to get to where the lost one was.
const CATCH_UP: Duration = Duration::from_secs(10);

/// How often in a row a connection is tried for those who listen.
const TRIES: u32 = 12;

/// What all ways to the server share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Held by everything that lives as long as a connection.
    pub(super) alive: mpsc::Sender<Infallible>,
    pub(super) target: Target,
    pub(super) mode: EraMode,
    pub(super) verdicts: Verdicts,
    pub(super) book: Arc<HeaderBook>,
    /// Every way that there is, for whoever ends idle connections.
    pub(super) ports: Mutex<Vec<Weak<Port>>>,
    pub(super) acquaintance: Acquaintance,
    pub(super) tool_tasks: Arc<ToolTasks>,
    pub(super) mapping: Arc<Mapping>,
}

/// Connects when somebody needs it, and again when the connection was lost.
#[derive(Debug)]
pub(super) struct Port {
    shared: Arc<Shared>,
    wish: Wish,
    current: Mutex<Option<Arc<Lane>>>,
    audience: Arc<Audience>,
    /// Calls that may be asked something take turns where a question does not say whose it is.
    turn: Arc<Semaphore>,
    /// Whether a call was given up on it a moment ago.
    is_resting: AtomicBool,
    /// Whoever holds it connects; the others wait for the outcome.
    opening: AsyncMutex<Restarts>,
}

impl Port {
    pub(super) fn new(shared: Arc<Shared>, wish: Wish, audience: Audience) -> Arc<Self> {
        let port = Arc::new(Self {
            shared,
            wish,
            current: Mutex::default(),
            audience: Arc::new(audience),
            turn: Arc::new(Semaphore::new(1)),
            is_resting: AtomicBool::new(false),
            opening: AsyncMutex::default(),
        });
        let mut ports = port.shared.ports();
        ports.retain(|port| port.strong_count() > 0);
        ports.push(Arc::downgrade(&port));
        drop(ports);
        port
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

    /// Who hears what belongs to no call.
    pub(super) const fn audience(&self) -> &Arc<Audience> {
        &self.audience
    }

    /// A call was given up, and the server may not know it yet; or that is over.
    pub(super) fn rests(&self, is_resting: bool) {
        self.is_resting.store(is_resting, Ordering::Release);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }

    pub(super) fn try_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turn).try_acquire_owned().ok()
    }

    /// Waits in line; none where turns are not taken any more, which never is.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }

    /// The connection, opened if there is none.
    pub(super) async fn lane(self: &Arc<Self>) -> Result<Arc<Lane>, UpstreamError> {
        if let Some(lane) = self.live() {
            return Ok(lane);
        }
        let mut restarts = self.opening.lock().await;
        if let Some(lane) = self.live() {
            return Ok(lane);
        }
        if self.current().take().is_some() {
            restarts.lost(Instant::now());
        }
        let pause = restarts.pause(Instant::now());
        if pause > SHORT {
            return Err(self.error(restarts.suspended(pause)));
        }
        tokio::time::sleep(pause).await;
        let lane = match self.open().await {
            Ok(lane) => Arc::new(lane),
            Err(kind) => {
                let error = self.error(kind);
                restarts.failed(Instant::now(), &error);
                return Err(error);
            }
        };
        restarts.opened(Instant::now());
        lane.serve_strays(Arc::downgrade(self));
        *self.current() = Some(Arc::clone(&lane));
        self.shared.acquaintance.meet(&lane);
        if self.shared.acquaintance.has_herald() {
            lane.watch(&self.shared);
        }
        let moving = self.audience.move_to(&lane);
        if tokio::time::timeout(CATCH_UP, moving).await.is_err() {
            tracing::warn!("a new session takes long to get to where the lost one was");
        }
        Ok(lane)
    }

    /// The connection is lost. If somebody listens it is replaced, ever more slowly and not for ever.
    pub(super) async fn lost(self: &Arc<Self>) {
        self.audience.listens.lost();
        // Another process may have other tools.
        self.shared.tool_tasks.forget();
        let mut failures = 0;
        while self.audience.is_waiting() {
            match self.lane().await {
                Ok(_) => return,
                Err(UpstreamError {
                    kind: Trouble::Suspended { wait, .. },
                    ..
                }) => tokio::time::sleep(wait).await,
                Err(_) if failures < TRIES => failures += 1,
                Err(_) => return self.audience.listens.end(),
            }
        }
    }

    /// Tells whoever wants to know that something has changed.
    pub(super) fn tell(&self, method: Method) {
        self.shared.acquaintance.tell(method);
    }

    fn error(&self, kind: Trouble) -> UpstreamError {
        let error = UpstreamError {
            target: self.shared.target.to_string(),
            kind,
        };
        let server = error.target.as_str();
        let (why, advice) = (error.kind.told(), error.kind.advice());
        tracing::warn!(server, error = why, advice, "the server cannot be used");
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
        let (target, alive) = (&self.shared.target, &self.shared.alive);
        let mut met = connect(target, &wish, alive).await;
        if prior.is_some() && met.as_ref().is_err_and(Trouble::is_disagreement) {
            // What was believed about the server may be what is wrong.
            asking.forget();
            let wish = Wish {
                prior: None,
                ..wish
            };
            met = connect(target, &wish, alive).await;
        }
        let met = met?;
        if let Some(verdict) = met.verdict {
            asking.learn(verdict);
        }
        Ok(Lane::new(met, &self.shared, Arc::clone(&self.audience)))
    }

    /// Ends the connection if nobody has needed it for so long.
    fn rest(&self, idle: Duration) {
        let mut current = self.current();
        let is_needed = self.audience.is_waiting() || self.audience.owner().is_some();
        if current
            .as_ref()
            .is_some_and(|lane| !is_needed && lane.upstream.is_idle_for(idle))
        {
            *current = None;
            tracing::info!(
                event = mcpact::log::event::IDLE_REAP,
                server = %self.shared.target,
                "a connection that nobody used was ended"
            );
        }
    }
}

impl Shared {
    fn ports(&self) -> MutexGuard<'_, Vec<Weak<Port>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends connections that nobody has needed for so long, as long as anybody may open some.
    pub(super) fn watch(self: &Arc<Self>, idle: Duration) {
        const SHORTEST: Duration = Duration::from_millis(10);
        const LONGEST: Duration = Duration::from_secs(15);
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep((idle / 4).clamp(SHORTEST, LONGEST)).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                let ports = shared.ports().clone();
                for port in ports.iter().filter_map(Weak::upgrade) {
                    port.rest(idle);
                }
            }
        });
    }
}
