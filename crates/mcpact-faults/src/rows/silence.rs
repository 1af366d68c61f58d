//! Servers that do not answer, or do not even listen.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::Effort;
use super::ending::{begin, both, must_answer};
use crate::background_clients::BackgroundClients;
use crate::client::Era;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::GatewaySetup;
use crate::journal::Entry;
use crate::ledger::{Ledger, Outcome};
use crate::process;

/// The time limit of a call in these rows.
const LIMIT: Duration = Duration::from_secs(1);

/// The call times out and is cancelled at the server; other calls on the same process are not affected.
pub(super) async fn hangs(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let keys = "max_concurrent = 64\nmax_instances = 1\ncall_seconds = 1\n";
    let gateway = GatewaySetup::new()?
        .scripted("mute", &[], keys)?
        .serve()
        .await?;
    let journal = gateway.journal("mute");
    let clients = both(&gateway, "mute").await?;
    let ledger = Arc::new(Ledger::default());
    must_answer(&ledger, &clients[0], "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let (mut off, mut untold, mut beside) = (Duration::ZERO, 0, 0);
    for _ in 0..effort.of(2, 12) {
        let mut calls = begin(&ledger, &clients, 20, "hang", &json!({}));
        for _ in 0..20 {
            let closed = ledger.call(&clients[1], "echo", json!({})).await;
            beside += usize::from(closed.outcome != Outcome::Answered);
        }
        let mut nonces = Vec::new();
        while let Some(call) = calls.join_next().await {
            let (closed, _) = call?;
            off = off.max(closed.took.abs_diff(LIMIT));
            nonces.push(closed.nonce);
        }
        let told = process::until("the cancellations", || {
            let told = journal.all(Entry::Cancelled);
            nonces.iter().all(|nonce| told.contains(nonce))
        });
        untold += usize::from(told.await.is_err());
    }
    figures.within("distance from the limit", off, Duration::from_millis(250));
    figures.none("rounds in which a cancellation is missing", untold);
    figures.none("errors beside it on the same process", beside);
    figures.at_most("starts", journal.all(Entry::Start).len(), 1);
    let list = clients[0].request(&json!("list"), "tools/list", json!({}));
    let list = clients[0].post(&list).await?;
    let has_tools = list.answers().iter().any(|answer| {
        answer["result"]["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    });
    figures.at_least("its tools are listed still", usize::from(has_tools), 1);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Length of the texts that a stopped server does not read.
const LENGTH: usize = 64 * 1024;

/// Limits of concurrent and of queued calls.
const ROOM: (usize, usize) = (8, 8);

/// Calls over the limits are rejected at once; the others are served when the server reads again.
pub(super) async fn stopped(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let keys = format!(
        "max_concurrent = {}\nmax_instances = 1\nqueue = {}\n",
        ROOM.0, ROOM.1
    );
    let gateway = GatewaySetup::new()?
        .scripted("frozen", &[], &keys)?
        .serve()
        .await?;
    let journal = gateway.journal("frozen");
    let clients = [Arc::new(gateway.client("frozen", Era::Legacy).await?)];
    let ledger = Arc::new(Ledger::default());
    must_answer(&ledger, &clients[0], "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let victim = journal.process().unwrap_or_default();
    let (mut slowest, mut most) = (Duration::ZERO, 0);
    let mut growth = 0;
    for _ in 0..effort.of(2, 12) {
        let before = gateway.resident()?;
        gateway.forget_peak()?;
        process::signal(victim, Signal::STOP);
        let count = 4 * (ROOM.0 + ROOM.1);
        let mut calls = begin(
            &ledger,
            &clients,
            count,
            "echo",
            &json!({"text": "x".repeat(LENGTH)}),
        );
        // All but those that fit are over while the server reads nothing.
        for _ in 0..count - ROOM.0 - ROOM.1 {
            if let Some(call) = calls.join_next().await {
                slowest = slowest.max(call?.0.took);
            }
        }
        most = most.max(calls.len());
        growth = growth.max(gateway.peak()?.saturating_sub(before));
        process::signal(victim, Signal::CONT);
        while let Some(call) = calls.join_next().await {
            call?;
        }
    }
    figures.at_most("calls that are held", most, ROOM.0 + ROOM.1);
    figures.memory(
        "bytes of calls that are held",
        (most * LENGTH) as u64,
        1 << 20,
    );
    // The bodies of all that were refused are read, too, and what was freed is not given back at once.
    figures.memory("growth of the gateway at its peak", growth, 16 << 20);
    figures.within("the slowest refusal", slowest, Duration::from_secs(1));
    figures.at_most("starts", journal.all(Entry::Start).len(), 1);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}
