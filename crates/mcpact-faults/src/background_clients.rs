//! Calls to a server that nothing happens to, while something happens to another one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{CALM, Gateway};
use crate::ledger::{Ledger, Outcome};

/// Interval of calls: 200 per second.
const PACE: Duration = Duration::from_millis(5);

/// Time of calls before the fault, for comparison.
const BEFORE: Duration = Duration::from_millis(500);

/// Less is not told apart: the pace of the machine, not of the gateway.
const FINEST: Duration = Duration::from_millis(5);

/// Calls to a server that nothing happens to.
#[derive(Debug)]
pub(crate) struct BackgroundClients {
    /// The calls go on as long as this lives.
    working: JoinSet<()>,
    calls: Arc<Calls>,
    baseline: Duration,
}

#[derive(Debug)]
struct Calls {
    client: Client,
    ledger: Ledger,
    times: Mutex<Vec<Duration>>,
}

impl Calls {
    async fn one(&self) -> Outcome {
        let closed = self.ledger.call(&self.client, "echo", json!({})).await;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(closed.took);
        closed.outcome
    }

    /// All but one in a hundred of the calls so far took no longer; they are forgotten then.
    fn p99(&self) -> Duration {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        p99(&mut std::mem::take(&mut *times))
    }
}

/// All but one in a hundred took no longer.
pub(crate) fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    let place = (times.len() * 99 / 100).min(times.len().saturating_sub(1));
    times.get(place).copied().unwrap_or_default()
}

impl BackgroundClients {
    /// Begins to call.
    pub(crate) async fn begin(gateway: &Gateway) -> Result<Self, RowError> {
        let calls = Arc::new(Calls {
            client: gateway.client(CALM, Era::Legacy).await?,
            ledger: Ledger::default(),
            times: Mutex::default(),
        });
        let first = calls.one().await;
        if first != Outcome::Answered {
            return Err(RowError::stage(format!("the calm server: {first:?}")));
        }
        calls.p99();
        let mut working = JoinSet::new();
        working.spawn(call_on(Arc::clone(&calls)));
        tokio::time::sleep(BEFORE).await;
        let baseline = calls.p99();
        Ok(Self {
            working,
            calls,
            baseline,
        })
    }

    /// Stops calling, and tells how it went.
    pub(crate) async fn end(mut self, figures: &mut Figures) -> Result<(), RowError> {
        let p99 = self.calls.p99();
        self.working.shutdown().await;
        let sums = self.calls.ledger.balance(&[]);
        // The very last call was cut short by us.
        let unfinished = sums.lost.min(1);
        figures.shown("calls of innocents", sums.sent as f64, "");
        figures.none(
            "errors of innocents",
            sums.sent - sums.answered - unfinished,
        );
        let ratio = p99.max(FINEST).as_secs_f64() / self.baseline.max(FINEST).as_secs_f64();
        figures.ratio("p99 of innocents, to that before", ratio, 2.0);
        Ok(())
    }
}

async fn call_on(calls: Arc<Calls>) {
    let begin = Instant::now();
    for turn in 1.. {
        calls.one().await;
        let next = begin + PACE * turn;
        tokio::time::sleep_until(next.into()).await;
    }
}
