//! Ids and tokens that are wrong, late, the same, or all at once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Effort;
use super::ending::{both, must_answer};
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::journal::Entry;
use crate::ledger::{Ledger, Outcome};

/// Responses without a request are dropped.
pub(super) async fn strangers(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let keys = "call_seconds = 1\nmax_instances = 1\nmax_concurrent = 64\n";
    let gateway = GatewaySetup::new()?
        .scripted("odd", &[], keys)?
        .serve()
        .await?;
    let journal = gateway.journal("odd");
    let clients = both(&gateway, "odd").await?;
    let ledger = Ledger::default();
    let background_clients = BackgroundClients::begin(&gateway).await?;
    for _ in 0..effort.of(20, 1000) {
        for client in &clients {
            for tool in ["twice", "stranger", "mistyped", "echo"] {
                must_answer(&ledger, client, tool).await?;
            }
        }
    }
    for _ in 0..effort.of(1, 10) {
        for client in &clients {
            // It answers a while after the gateway has given it up.
            let late = ledger.call(client, "late", json!({"ms": 1100})).await;
            let beyond = tokio::time::Instant::now() + Duration::from_millis(300);
            while tokio::time::Instant::now() < beyond {
                must_answer(&ledger, client, "echo").await?;
            }
            if late.outcome == Outcome::Answered {
                return Err(RowError::stage("the late answer came in time"));
            }
        }
    }
    figures.at_most("starts", journal.all(Entry::Start).len(), 1);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Outcome of a call and its cancellation.
struct Race {
    answers: usize,
    /// The stream ended without an answer: the cancellation came first.
    ended: usize,
    broken: usize,
}

/// A call that is cancelled about when it is answered.
async fn race(client: &Client, ledger: &Ledger, turn: u64) -> Race {
    let nonce = ledger.open();
    // Spread over a few milliseconds, in an order that repeats only after all pairs.
    let (work, wait) = (turn * 7 % 5, turn * 11 % 6);
    let arguments = json!({"nonce": nonce, "ms": work});
    let id = json!(format!("race-{nonce}"));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(wait)).await;
        let params = json!({"requestId": id, "reason": "race"});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        client.post(&note).await
    };
    let (reply, cancelled) = tokio::join!(client.call(&id, "sleep", arguments), cancel);
    let (answers, whole) = match &reply {
        Ok(reply) => (
            reply.answers().len(),
            reply.status < 300 && cancelled.is_ok(),
        ),
        Err(_) => (0, false),
    };
    match ledger.close(nonce, &reply) {
        Outcome::Lost if whole => ledger.leave(nonce),
        Outcome::Answered
        | Outcome::Refused(_)
        | Outcome::Left
        | Outcome::Crossed
        | Outcome::Many
        | Outcome::Lost => {}
    }
    Race {
        answers,
        ended: usize::from(whole && answers == 0),
        broken: usize::from(!whole),
    }
}

/// Exactly one of the two wins.
pub(super) async fn races(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    const WORKERS: usize = 16;
    let keys = "max_concurrent = 64\nmax_instances = 1\n";
    let gateway = GatewaySetup::new()?
        .scripted("racer", &[], keys)?
        .serve()
        .await?;
    let ledger = Arc::new(Ledger::default());
    let mut workers = JoinSet::new();
    let each = effort.of(2_000, 100_000) / WORKERS;
    for worker in 0..WORKERS {
        let client = gateway.client("racer", Era::Legacy).await?;
        let ledger = Arc::clone(&ledger);
        workers.spawn(async move {
            let mut races = Vec::new();
            for turn in 0..each {
                races.push(race(&client, &ledger, (turn + worker) as u64).await);
            }
            races
        });
    }
    let races: Vec<Race> = workers.join_all().await.into_iter().flatten().collect();
    let sum = |of: fn(&Race) -> usize| races.iter().map(of).sum::<usize>();
    figures.shown(
        "answered first",
        sum(|race| usize::from(race.answers == 1)) as f64,
        "",
    );
    figures.shown("cancelled first", sum(|race| race.ended) as f64, "");
    figures.none("both", sum(|race| usize::from(race.answers > 1)));
    figures.none("neither", sum(|race| race.broken));
    let journal = gateway.journal("racer");
    ledger.balance(&[&journal]).tell(figures);
    Ok(())
}

/// Of two calls with the same id at a time each gets its own answer, also in one session.
pub(super) async fn same_id(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let keys = "max_concurrent = 64\nmax_instances = 1\n";
    let gateway = GatewaySetup::new()?
        .scripted("double", &[], keys)?
        .serve()
        .await?;
    let journal = gateway.journal("double");
    for (era, name) in [
        (Era::Legacy, "a legacy session"),
        (Era::Modern, "modern clients"),
    ] {
        let ledger = Arc::new(Ledger::default());
        pairs(&gateway, era, &ledger, effort.of(200, 5_000)).await?;
        let sums = ledger.balance(&[&journal]);
        figures.none("refused", sums.refused);
        figures.shown(format!("calls of {name}"), sums.sent as f64, "");
        sums.tell(figures);
    }
    Ok(())
}

/// Calls two by two, each two with the same id.
async fn pairs(
    gateway: &Gateway,
    era: Era,
    ledger: &Arc<Ledger>,
    count: usize,
) -> Result<(), RowError> {
    const WORKERS: usize = 4;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let client = gateway.client("double", era).await?;
        let ledger = Arc::clone(ledger);
        workers.spawn(async move {
            for _ in 0..count / WORKERS {
                let one = || async {
                    let nonce = ledger.open();
                    let arguments = json!({"nonce": nonce, "ms": nonce % 3});
                    let reply = client.call(&json!(1), "sleep", arguments).await;
                    ledger.close(nonce, &reply);
                };
                tokio::join!(one(), one());
            }
        });
    }
    workers.join_all().await;
    Ok(())
}

/// A call with progress; tells how many notes were not its own.
async fn with_progress(client: &Client, ledger: &Ledger) -> usize {
    let nonce = ledger.open();
    let arguments = json!({"nonce": nonce, "count": 2});
    let params = json!({
        "name": "progress", "arguments": arguments, "_meta": {"progressToken": "same"},
    });
    let request = client.request(&json!(1), "tools/call", params);
    let reply = client.post(&request).await;
    ledger.close(nonce, &reply);
    let Ok(reply) = reply else { return 0 };
    let notes = reply.notes("notifications/progress");
    let is_foreign = |note: &&&Value| {
        let params = &note["params"];
        let text = params["message"].as_str().unwrap_or_default();
        params["progressToken"] != "same" || text.trim() != nonce.to_string()
    };
    notes.iter().filter(is_foreign).count()
}

/// All clients use the same id and token on one process, and get only their own responses.
pub(super) async fn same_ids(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    const CLIENTS: usize = 100;
    let keys = "max_concurrent = 256\nmax_instances = 1\n";
    let gateway = GatewaySetup::new()?
        .scripted("shared", &[], keys)?
        .serve()
        .await?;
    let ledger = Arc::new(Ledger::default());
    let each = effort.of(3_000, 100_000) / CLIENTS;
    let mut workers = JoinSet::new();
    for worker in 0..CLIENTS {
        let era = [Era::Legacy, Era::Modern][worker % 2];
        let client = gateway.client("shared", era).await?;
        let ledger = Arc::clone(&ledger);
        workers.spawn(async move {
            let mut foreign = 0;
            for _ in 0..each {
                foreign += with_progress(&client, &ledger).await;
            }
            foreign
        });
    }
    let foreign = workers.join_all().await.into_iter().sum();
    let journal = gateway.journal("shared");
    figures.at_most("processes", journal.all(Entry::Start).len(), 1);
    figures.none("progress of others", foreign);
    let sums = ledger.balance(&[&journal]);
    figures.none("refused", sums.refused);
    sums.tell(figures);
    Ok(())
}
