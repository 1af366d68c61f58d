//! One server for any client.

mod acquaintance;
mod askable;
mod audience;
mod caller;
mod crossing;
mod ear;
mod lane;
mod levels;
mod listens;
mod listing;
mod parking;
mod pool;
mod port;
mod pump;
mod questions;
mod restart;
mod rounds;
mod tasks;
mod welcome;
mod wishes;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mcpact::client::Verdicts;
use mcpact::server::backend::{HttpFront, Sealer, serve_link};
use mcpact::server::{SealKeys, Settings};
use mcpact_bridge::input::{ParkLimits, RoundLimits};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::EraMode;
use mcpact_engine::server::ServerTerms;
use mcpact_engine::time::Moment;
use mcpact_spec::Side;
use mcpact_transport::link::Link;
use mcpact_wire::model::implementation::Implementation;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::acquaintance::Acquaintance;
pub(crate) use self::acquaintance::{Herald, Met};
pub(crate) use self::caller::Caller;
pub(crate) use self::crossing::wire_error;
pub(crate) use self::ear::{Ear, FarEar, View};
pub(crate) use self::listens::farewell;
pub(crate) use self::listing::Listing;
use self::parking::ParkingLot;
use self::port::{Port, Shared};
use self::tasks::{Hosting, Mapping, ToolTasks};
use self::welcome::Guests;
use crate::target::Target;
use crate::upstream::HeaderBook;

/// How long programs may take to end.
const GOODBYE: Duration = Duration::from_secs(5);

/// What can be set about a bridge.
#[derive(Clone, Debug)]
pub struct BridgeSettings {
    /// How its fronts are set.
    pub front: Settings,
    /// Which eras are tried with the server.
    pub mode: EraMode,
    /// What was learned about servers earlier.
    pub verdicts: Verdicts,
    /// How far a modern server may go before it answers a legacy client.
    pub rounds: RoundLimits,
    /// How many calls of modern clients may wait for input, and how long.
    pub parks: ParkLimits,
    /// How long a call may take, questions included.
    pub call_timeout: Duration,
    /// How many connections to a legacy server may be open at a time.
    pub lanes: usize,
    /// How long a connection that clients share may be idle.
    pub lane_idle: Duration,
}

impl Default for BridgeSettings {
    fn default() -> Self {
        Self {
            front: Settings::default(),
            mode: EraMode::Auto,
            verdicts: Verdicts::new(),
            rounds: RoundLimits::default(),
            parks: ParkLimits::default(),
            call_timeout: Duration::from_secs(600),
            lanes: 64,
            lane_idle: Duration::from_secs(300),
        }
    }
}

/// Stands between clients of any revision and one server of any revision.
#[derive(Debug)]
pub struct Bridge {
    settings: BridgeSettings,
    /// The terms for whoever has not said anything yet.
    terms: Arc<ServerTerms>,
    shared: Arc<Shared>,
    /// The way to a modern server, which everybody shares.
    modern: OnceLock<Arc<Port>>,
    guests: Mutex<Guests>,
    lot: Arc<ParkingLot>,
    hosting: Arc<Hosting>,
    sealer: Sealer,
    clock: Clock,
    /// Closed when every connection has ended.
    gone: Mutex<Option<mpsc::Receiver<Infallible>>>,
}

/// The bridge's own time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    zero: Instant,
}

impl Clock {
    fn now(self) -> Moment {
        Moment::at(self.zero.elapsed())
    }
}

impl Bridge {
    /// A bridge to a server, which is reached or started when the first client comes.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn new(
        target: Target,
        settings: BridgeSettings,
    ) -> Result<Arc<Self>, mcpact::error::Error> {
        let info = Implementation::new("mcpact", env!("CARGO_PKG_VERSION"));
        let nothing = CapabilitySet::empty(Side::Server);
        let terms = ServerTerms::new(info.clone(), nothing, settings.front.policy.clone());
        let clock = Clock {
            zero: Instant::now(),
        };
        let (alive, gone) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            alive,
            target,
            mode: settings.mode,
            verdicts: settings.verdicts.clone(),
            book: Arc::new(HeaderBook::default()),
            ports: Mutex::default(),
            acquaintance: Acquaintance::default(),
            tool_tasks: Arc::new(ToolTasks::default()),
            mapping: Arc::new(Mapping::new(clock)),
        });
        shared.watch(settings.lane_idle);
        let keys = match &settings.front.seal_keys {
            Some(keys) => keys.clone(),
            None => SealKeys::random()?,
        };
        let hosting = Arc::new(Hosting::new(clock));
        tasks::watch(&hosting, &shared.mapping);
        let lot = Arc::new(ParkingLot::new(settings.parks, clock));
        lot.watch();
        Ok(Arc::new(Self {
            terms: Arc::new(terms),
            shared,
            modern: OnceLock::new(),
            guests: Mutex::default(),
            lot,
            hosting,
            sealer: Sealer::new(&keys),
            settings,
            clock,
            gone: Mutex::new(Some(gone)),
        }))
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one client on a carrier of lines, until it goes away.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve(self: Arc<Self>, link: Link) -> Result<(), mcpact::error::Error> {
        serve_link(self, link).await
    }

    /// Ends the connections to the server, and waits a while for the programs behind them to go.
    pub async fn close(self: Arc<Self>) {
        let gone = self
            .gone
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.hosting.stop();
        drop(self);
        if let Some(mut gone) = gone {
            // Whoever is left after that is ended by force, with the runtime.
            let _ = tokio::time::timeout(GOODBYE, gone.recv()).await;
        }
    }

    /// Listens on HTTP; the bridge runs once [`HttpFront::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen(
        self: Arc<Self>,
        address: SocketAddr,
    ) -> Result<HttpFront<Self>, mcpact::error::Error> {
        HttpFront::bind(self, address).await
    }
}
