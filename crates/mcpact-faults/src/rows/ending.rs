//! Servers that end when they should not, and do not when they should.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use super::Effort;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::journal::Entry;
use crate::ledger::{Closed, Ledger, Outcome};
use crate::process;

/// Number of calls in flight when a server is killed.
const UNDER_WAY: usize = 50;

/// Calls a tool and fails if it does not answer.
pub(super) async fn must_answer(
    ledger: &Ledger,
    client: &Client,
    tool: &str,
) -> Result<Closed, RowError> {
    let closed = ledger.call(client, tool, json!({})).await;
    match closed.outcome {
        Outcome::Answered => Ok(closed),
        _ => Err(RowError::stage(format!(
            "`{tool}` should answer: {closed:?}"
        ))),
    }
}

/// Begins calls that go on beside the row.
pub(super) fn begin(
    ledger: &Arc<Ledger>,
    clients: &[Arc<Client>],
    count: usize,
    tool: &'static str,
    arguments: &serde_json::Value,
) -> JoinSet<(Closed, Instant)> {
    let mut calls = JoinSet::new();
    for client in clients.iter().cycle().take(count) {
        let (ledger, client, arguments) =
            (Arc::clone(ledger), Arc::clone(client), arguments.clone());
        calls.spawn(async move {
            let closed = ledger.call(&client, tool, arguments).await;
            (closed, Instant::now())
        });
    }
    calls
}

/// A client of each era.
pub(super) async fn both(gateway: &Gateway, server: &str) -> Result<Vec<Arc<Client>>, RowError> {
    let mut clients = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        clients.push(Arc::new(gateway.client(server, era).await?));
    }
    Ok(clients)
}

/// Each call in flight fails within 100 ms, and the next one restarts the server.
pub(super) async fn killed(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let keys = "max_concurrent = 64\nmax_instances = 1\n";
    let setup = GatewaySetup::new()?.scripted("frail", &[], keys)?;
    let gateway = setup.serve().await?;
    let journal = gateway.journal("frail");
    let clients = both(&gateway, "frail").await?;
    let ledger = Arc::new(Ledger::default());
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let mut longest = Duration::ZERO;
    let mut again = Vec::new();
    for _ in 0..2 {
        must_answer(&ledger, &clients[0], "echo").await?;
        let before = journal.all(Entry::Call).len();
        let mut calls = begin(
            &ledger,
            &clients,
            UNDER_WAY,
            "sleep",
            &json!({"ms": 600_000}),
        );
        process::until("the calls at the server", || {
            journal.all(Entry::Call).len() == before + UNDER_WAY
        })
        .await?;
        let victim = journal.process().unwrap_or_default();
        let killed = Instant::now();
        process::signal(victim, Signal::KILL);
        while let Some(call) = calls.join_next().await {
            longest = longest.max(call?.1.duration_since(killed));
        }
        again.push(must_answer(&ledger, &clients[1], "echo").await?.took);
    }
    figures.within(
        "from death to the last error",
        longest,
        Duration::from_millis(100),
    );
    // A server that has answered is restarted at once.
    for (what, took) in ["the next call", "the next call after a second death"]
        .into_iter()
        .zip(again)
    {
        figures.within(what, took, Duration::from_millis(1500));
    }
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Input closed, two seconds, TERM, three seconds, KILL.
pub(super) async fn stubborn(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let setup = GatewaySetup::new()?;
    let own = std::env::current_exe()?.display().to_string();
    let deaf = setup.shell("deaf", "trap '' TERM HUP INT\nexec \"$@\"\n")?;
    let mut setup = setup;
    let names: Vec<String> = (0..effort.of(2, 8)).map(|n| format!("deaf{n}")).collect();
    for name in &names {
        let journal = setup.journal(name).path().display().to_string();
        let words = [
            &deaf,
            &own,
            "script",
            "--manner",
            "stubborn",
            "--journal",
            &journal,
        ];
        setup = setup.command(name, &words, "era = \"legacy\"\n");
    }
    let gateway = setup.serve().await?;
    let ledger = Ledger::default();
    for name in &names {
        let client = gateway.client(name, Era::Legacy).await?;
        must_answer(&ledger, &client, "echo").await?;
    }
    let family = process::descendants(gateway.id());
    let journals: Vec<_> = names.iter().map(|name| gateway.journal(name)).collect();
    let sums = ledger.balance(&journals.iter().collect::<Vec<_>>());
    let took = gateway.close().await?;
    figures.within(
        "from SIGTERM to the end of everything",
        took,
        Duration::from_secs(6),
    );
    let alive = family.iter().filter(|id| process::is_alive(**id)).count();
    figures.none("survivors", alive);
    sums.tell(figures);
    Ok(())
}

/// Restarts back off, and calls fail at once when the server is suspended.
pub(super) async fn crash_loop(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    // With the usual backoff, a quick run would end before the server is suspended.
    let keys = "backoff_max_seconds = 1\n";
    let setup = GatewaySetup::new()?.scripted("broken", &["--manner", "crash"], keys)?;
    let gateway = setup.serve().await?;
    let journal = gateway.journal("broken");
    let client = gateway.client("broken", Era::Modern).await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let ledger = Ledger::default();
    let lasts = Duration::from_secs(effort.of(6, 300) as u64);
    let (begin, mut quick) = (Instant::now(), Vec::new());
    while begin.elapsed() < lasts {
        let starts = journal.all(Entry::Start).len();
        let closed = ledger.call(&client, "echo", json!({})).await;
        if journal.all(Entry::Start).len() == starts {
            quick.push(closed.took);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let starts = journal.all(Entry::Start).len();
    figures.at_most("starts", starts, 12);
    figures.at_least("calls that were told at once", quick.len(), 1);
    let p99 = crate::background_clients::p99(&mut quick);
    figures.within("p99 of those", p99, Duration::from_millis(10));
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// A tree of processes: a launcher such as `npx`, a shell, the server, a lingering process, and one in its own session.
const TREE: &str = r#"
sleep 1000 &
(setsid sleep 1000 &)
sh -c '"$@"; exit $?' tree "$@"
exit $?
"#;

/// A house with a server that is a tree, and a mark that all of it carries.
fn grove(keys: &str) -> Result<(GatewaySetup, String), RowError> {
    let setup = GatewaySetup::new()?;
    let own = std::env::current_exe()?.display().to_string();
    let tree = setup.shell("tree", TREE)?;
    let journal = setup.journal("tree").path().display().to_string();
    let mark = format!("tree-{}-{}", std::process::id(), Ledger::mint());
    let keys = format!("era = \"legacy\"\nenv = {{ TREE_MARK = \"{mark}\" }}\n{keys}");
    let words = [&tree, &own, "script", "--journal", &journal];
    Ok((setup.command("tree", &words, &keys), mark))
}

/// A tree is started for each session and stopped with it.
pub(super) async fn trees(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let (setup, mark) = grove("strategy = \"stateful\"\nidle_seconds = 1\n")?;
    let gateway = setup.serve().await?;
    let journal = gateway.journal("tree");
    // The gateway itself wants to know whom it serves, and lets go.
    process::until("a first tree", || journal.process().is_some()).await?;
    process::until("its end", || process::marked(&mark).is_empty()).await?;
    let others = process::descendants(gateway.id()).len();
    let ledger = Ledger::default();
    let rounds = effort.of(20, 200);
    let mut files = 0;
    let mut most = 0;
    for round in 0..=rounds {
        let client = gateway.client("tree", Era::Legacy).await?;
        must_answer(&ledger, &client, "echo").await?;
        most = most.max(process::marked(&mark).len());
        client.leave().await?;
        process::until("the end of a tree", || process::marked(&mark).is_empty()).await?;
        if round == 0 {
            // The first one also opens what the gateway keeps.
            files = process::files(gateway.id())?;
        }
    }
    // A process stays visible until it is reaped.
    let left = || {
        process::descendants(gateway.id())
            .len()
            .saturating_sub(others)
    };
    process::until("the last child", || left() == 0).await?;
    let left = left();
    figures.shown("trees", rounds as f64, "");
    figures.at_least("processes in a tree", most, 4);
    figures.none("survivors", process::marked(&mark).len());
    figures.none("children and zombies of the gateway", left);
    let more = process::files(gateway.id())?.saturating_sub(files);
    figures.none("files more than after the first", more);
    ledger.balance(&[&journal]).tell(figures);
    Ok(())
}

/// Nothing outlives a gateway that is killed.
pub(super) async fn gateway_killed(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let rounds = effort.of(3, 20);
    let mut longest = Duration::ZERO;
    let mut trees = 0;
    for _ in 0..rounds {
        let (setup, mark) = grove("strategy = \"stateful\"\nmax_instances = 64\n")?;
        let mut gateway = setup.serve().await?;
        let ledger = Ledger::default();
        for _ in 0..3 {
            let client = gateway.client("tree", Era::Legacy).await?;
            must_answer(&ledger, &client, "echo").await?;
        }
        trees += process::marked(&mark).len();
        gateway.signal(Signal::KILL);
        gateway.ended().await?;
        let none = process::until("the end of the trees", || process::marked(&mark).is_empty());
        longest = longest.max(none.await?);
    }
    figures.shown("gateways killed", rounds as f64, "");
    figures.at_least("processes that were there", trees, rounds * 12);
    figures.within("until nothing was left", longest, Duration::from_secs(5));
    Ok(())
}
