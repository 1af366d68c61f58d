//! Servers that say what is no message.

use std::time::Duration;

use serde_json::json;

use super::Effort;
use super::ending::must_answer;
use crate::background_clients::BackgroundClients;
use crate::client::Era;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::GatewaySetup;
use crate::journal::Entry;
use crate::ledger::{Ledger, Outcome};

const MEBIBYTE: u64 = 1 << 20;

/// The longest line that is taken, if nothing else is configured.
const LINE: u64 = 16 * MEBIBYTE;

/// A line is given up at its limit; what comes after it is heard.
pub(super) async fn flood(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("broad", &[], "")?
        .serve()
        .await?;
    let journal = gateway.journal("broad");
    let client = gateway.client("broad", Era::Legacy).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let bytes = effort.of(64, 1024) as u64 * MEBIBYTE;
    let (before, mut served) = (gateway.resident()?, 0);
    gateway.forget_peak()?;
    for bytes in [100_000_000.min(bytes), bytes] {
        let closed = ledger.call(&client, "flood", json!({"bytes": bytes})).await;
        served += usize::from(closed.outcome == Outcome::Answered);
        must_answer(&ledger, &client, "echo").await?;
    }
    let growth = gateway.peak()?.saturating_sub(before);
    figures.shown(
        "length of the longest line",
        bytes as f64 / MEBIBYTE as f64,
        "MiB",
    );
    figures.memory(
        "growth of the gateway at its peak",
        growth,
        LINE + 8 * MEBIBYTE,
    );
    figures.shown(
        "calls that were answered behind the line",
        served as f64,
        "",
    );
    figures.shown("starts", journal.all(Entry::Start).len() as f64, "");
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Bad lines are passed over, the session lives; half a line at the end is no answer.
pub(super) async fn noise(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("noisy", &[], "")?
        .serve()
        .await?;
    let journal = gateway.journal("noisy");
    let client = gateway.client("noisy", Era::Legacy).await?;
    let ledger = Ledger::default();
    let background_clients = BackgroundClients::begin(&gateway).await?;
    for _ in 0..effort.of(50, 2000) {
        must_answer(&ledger, &client, "noise").await?;
    }
    let starts = journal.all(Entry::Start).len();
    figures.none("starts because of noise", starts - 1);
    let half = ledger.call(&client, "partial", json!({})).await;
    figures.none(
        "half a line taken for an answer",
        usize::from(half.outcome == Outcome::Answered),
    );
    let again = must_answer(&ledger, &client, "echo").await?;
    figures.within("the next call", again.took, Duration::from_millis(1500));
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Time for which the memory is weighed without the flood.
const QUIET: Duration = Duration::from_secs(5);

/// Standard error is read to its end and forgotten.
pub(super) async fn murmur(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("angry", &[], "")?
        .serve()
        .await?;
    let journal = gateway.journal("angry");
    let client = gateway.client("angry", Era::Legacy).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    // What is kept of it is there before it is weighed.
    ledger
        .call(&client, "murmur", json!({"bytes": MEBIBYTE}))
        .await;
    let bytes = effort.of(64, 1024) as u64 * MEBIBYTE;
    // The memory that the other calls need varies, so a peak is compared with a peak.
    gateway.forget_peak()?;
    tokio::time::sleep(QUIET).await;
    let before = gateway.peak()?;
    gateway.forget_peak()?;
    let closed = ledger
        .call(&client, "murmur", json!({"bytes": bytes}))
        .await;
    let growth = gateway.peak()?.saturating_sub(before);
    figures.shown("written", bytes as f64 / MEBIBYTE as f64, "MiB");
    figures.shown("in", closed.took.as_secs_f64(), "s");
    figures.memory("growth of the gateway at its peak", growth, MEBIBYTE);
    figures.at_most("starts", journal.all(Entry::Start).len(), 1);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}
