//! Operations during load.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use super::Effort;
use super::ending::must_answer;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era, Stream};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup, path};
use crate::journal::Entry;
use crate::ledger::Ledger;
use crate::process::{self, PATIENCE};

/// Puts another config in the place of the one that runs, as editors do.
fn replace(gateway: &Gateway, text: &str) -> Result<(), RowError> {
    let folder = gateway.setup.folder();
    let next = folder.join("next.toml");
    fs::write(&next, text)?;
    Ok(fs::rename(next, folder.join("mcpact.toml"))?)
}

/// Returns whether this server is listed.
async fn is_there(gateway: &Gateway, name: &str) -> Result<bool, RowError> {
    let client = Client::new(&gateway.address, &path(name), Era::Legacy)?;
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"});
    Ok(client.post(&message).await?.status != 404)
}

/// Waits until the server is there, or is not; tells how long that took.
async fn until_there(gateway: &Gateway, name: &str, wanted: bool) -> Result<Duration, RowError> {
    let begin = Instant::now();
    while is_there(gateway, name).await? != wanted {
        if begin.elapsed() > PATIENCE {
            return Err(RowError::Patience("another config"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(begin.elapsed())
}

/// Another config replaces the old one all at once; a broken one changes nothing.
pub(super) async fn reload(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("steady", &[], "")?
        .serve()
        .await?;
    let base = gateway.setup.text();
    let journal = gateway.journal("steady");
    let client = gateway.client("steady", Era::Legacy).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let (mut longest, mut slowest) = (Duration::ZERO, 0);
    for turn in 0..effort.of(10, 100) {
        let slow = ledger.call(&client, "sleep", json!({"ms": 300}));
        let change = async {
            if turn % 10 == 9 {
                replace(&gateway, &format!("{base}\n[servers.broken\n"))?;
                tokio::time::sleep(Duration::from_millis(250)).await;
                slowest += usize::from(!is_there(&gateway, "steady").await?);
            }
            let name = format!("more{turn}");
            let more = format!("{base}\n[servers.{name}]\nbuiltin = \"everything\"\n");
            replace(&gateway, &more)?;
            until_there(&gateway, &name, true).await
        };
        let (_, changed) = tokio::join!(slow, change);
        longest = longest.max(changed?);
        must_answer(&ledger, &client, "echo").await?;
    }
    figures.none("broken configs that changed something", slowest);
    // The file is looked at when it has rested for a fifth of a second.
    figures.within(
        "from a new file to a new server",
        longest,
        Duration::from_millis(400),
    );
    figures.at_most(
        "starts of a server that did not change",
        journal.all(Entry::Start).len(),
        1,
    );
    let sums = ledger.balance(&[&journal]);
    figures.none("refused", sums.refused);
    sums.tell(figures);
    background_clients.end(figures).await
}

/// A stream that stays open; tells whether it ended with a last word.
async fn listen(client: Client) -> Result<bool, RowError> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let request = client.request(&json!("listen"), "subscriptions/listen", params);
    let body = request.to_string().into();
    let (_connection, response) = client.send(Method::POST, body, &request).await?;
    let mut stream = Stream::new(response);
    let mut is_finished = false;
    while let Some(message) = stream.next().await? {
        is_finished = message.get("result").is_some();
    }
    Ok(is_finished)
}

/// Calls that are under way end in order, streams with a last word, and then everything.
pub(super) async fn drain(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    const CALLS: usize = 100;
    const STREAMS: usize = 50;
    let keys = "max_concurrent = 128\nmax_instances = 1\ndrain_seconds = 30\n";
    let setup = GatewaySetup::new()?.setting("drain_seconds = 30\n");
    let mut gateway = setup.scripted("busy", &[], keys)?.serve().await?;
    let journal = gateway.journal("busy");
    let clients = super::ending::both(&gateway, "busy").await?;
    let ledger = Arc::new(Ledger::default());
    must_answer(&ledger, &clients[0], "echo").await?;
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        streams.spawn(listen(gateway.client("busy", Era::Modern).await?));
    }
    let longest = effort.of(3_000, 20_000);
    let mut calls = JoinSet::new();
    for (turn, client) in (0..CALLS).zip(clients.iter().cycle()) {
        let (ledger, client) = (Arc::clone(&ledger), Arc::clone(client));
        let pause = 100 + turn * (longest - 100) / CALLS;
        calls.spawn(async move { ledger.call(&client, "sleep", json!({"ms": pause})).await });
    }
    process::until("the calls at the server", || {
        journal.all(Entry::Call).len() == CALLS + 1
    })
    .await?;
    let family = process::descendants(gateway.id());
    let begin = Instant::now();
    gateway.signal(Signal::TERM);
    while calls.join_next().await.is_some() {}
    let finished = begin.elapsed();
    let status = gateway.ended().await?;
    let took = begin.elapsed();
    let mut cut = 0;
    while let Some(ended) = streams.join_next().await {
        cut += usize::from(!ended?.unwrap_or_default());
    }
    figures.shown("the last call", finished.as_secs_f64(), "s");
    figures.within(
        "until the gateway had ended",
        took,
        Duration::from_millis(longest as u64 + 2_000),
    );
    figures.none(
        "its exit code",
        status.code().map_or(1, i32::unsigned_abs) as usize,
    );
    figures.none("streams without a last word", cut);
    let alive = family.iter().filter(|id| process::is_alive(**id)).count();
    figures.none("survivors", alive);
    let sums = ledger.balance(&[&journal]);
    figures.none("refused", sums.refused);
    sums.tell(figures);
    Ok(())
}
