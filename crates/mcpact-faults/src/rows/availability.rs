//! Servers that end again and again: calls continue with the next instance, and only a useless server is left alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use super::Effort;
use super::ending::both;
use crate::client::Client;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::journal::{Entry, Journal};
use crate::ledger::{Ledger, Outcome};
use crate::process;

/// Number of servers that are killed in turn.
const SERVERS: usize = 6;

/// Number of callers per client, each with one call at a time.
const CALLERS: usize = 2;

/// Reason of calls that were refused because of earlier failures.
const SUSPENDED: &str = "upstream_suspended";

/// At least 99 of 100 calls are answered while servers are killed, and a server that dies on every call is left alone.
pub(super) async fn killed_again(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let (calls, kills) = (effort.of(3_000, 20_000), effort.of(6, 39));
    let lasts = Duration::from_secs(effort.of(4, 26) as u64);
    let names: Vec<String> = (0..SERVERS).map(|n| format!("frail{n}")).collect();
    let mut setup = GatewaySetup::new()?;
    for name in &names {
        setup = setup.scripted(name, &[], "max_concurrent = 64\nmax_instances = 1\n")?;
    }
    let gateway = setup.serve().await?;
    let journals: Vec<Journal> = names.iter().map(|name| gateway.journal(name)).collect();
    let mut clients = Vec::new();
    for name in &names {
        clients.extend(both(&gateway, name).await?);
    }
    let ledger = Arc::new(Ledger::default());
    let callers = clients.len() * CALLERS;
    let each = calls.div_ceil(callers);
    let mut working = JoinSet::new();
    let begin = Instant::now();
    for client in clients.iter().cycle().take(callers) {
        let (ledger, client) = (Arc::clone(&ledger), Arc::clone(client));
        working.spawn(call_at_pace(ledger, client, begin, lasts, each));
    }
    let mut killed = 0;
    for (turn, journal) in journals.iter().cycle().take(kills).enumerate() {
        let at = begin + lasts.mul_f64((turn as f64 + 0.5) / kills as f64);
        tokio::time::sleep_until(at.into()).await;
        let victim = journal.process().filter(|id| process::is_alive(*id));
        killed += usize::from(victim.is_some());
        victim
            .into_iter()
            .for_each(|id| process::signal(id, Signal::KILL));
    }
    let (mut longest, mut suspended) = (Duration::ZERO, 0);
    while let Some(caller) = working.join_next().await {
        let (slowest, refused) = caller?;
        longest = longest.max(slowest);
        suspended += refused;
    }
    let balance = ledger.balance(&journals.iter().collect::<Vec<_>>());
    figures.at_least("servers killed", killed, kills * 9 / 10);
    figures.at_least(
        "calls answered of 1000",
        balance.answered * 1000 / balance.sent,
        990,
    );
    figures.none("refused as suspended", suspended);
    figures.within("the longest call", longest, Duration::from_secs(3));
    balance.tell(figures);
    gateway.close().await?;
    dies_on_every_call(effort, figures).await
}

/// Makes calls at an even pace. Returns the longest time of a call, and the number that was refused as suspended.
async fn call_at_pace(
    ledger: Arc<Ledger>,
    client: Arc<Client>,
    begin: Instant,
    lasts: Duration,
    count: usize,
) -> (Duration, usize) {
    let (mut longest, mut suspended) = (Duration::ZERO, 0);
    for turn in 0..count {
        let at = begin + lasts.mul_f64(turn as f64 / count as f64);
        tokio::time::sleep_until(at.into()).await;
        let closed = ledger.call(&client, "sleep", json!({"ms": 5})).await;
        longest = longest.max(closed.took);
        suspended += usize::from(is_suspended(&closed.outcome));
    }
    (longest, suspended)
}

fn is_suspended(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(why) if why.contains(SUSPENDED))
}

/// The server starts and lists its tools, but never answers a call.
async fn dies_on_every_call(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    // The default is 1 s, which would double up to 8 s before the fifth start.
    let keys = "backoff_max_seconds = 1\n";
    let setup = GatewaySetup::new()?.scripted("mortal", &[], keys)?;
    let gateway: Gateway = setup.serve().await?;
    let journal = gateway.journal("mortal");
    let clients = both(&gateway, "mortal").await?;
    let ledger = Ledger::default();
    let before = journal.all(Entry::Start).len();
    let (begin, mut suspended) = (Instant::now(), 0);
    let lasts = Duration::from_secs(effort.of(6, 20) as u64);
    for client in clients.iter().cycle() {
        if begin.elapsed() > lasts {
            break;
        }
        let list = client.request(&json!("list"), "tools/list", json!({}));
        client.post(&list).await?;
        let closed = ledger.call(client, "die", json!({})).await;
        suspended += usize::from(is_suspended(&closed.outcome));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let starts = journal.all(Entry::Start).len() - before;
    figures.at_most("starts of a server that dies on every call", starts, 5);
    figures.at_least("calls refused as suspended then", suspended, 1);
    ledger.balance(&[&journal]).tell(figures);
    Ok(())
}
