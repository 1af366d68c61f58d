//! Clients that leave, or hardly listen.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::Effort;
use super::ending::must_answer;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::GatewaySetup;
use crate::journal::{Entry, Journal};
use crate::ledger::Ledger;
use crate::process::{self, PATIENCE};
use crate::raw;

/// Makes a call and hangs up once the server has it; tells when.
async fn leave(
    ledger: &Ledger,
    client: &Client,
    journal: &Journal,
    turn: u64,
) -> Result<(u64, Instant), RowError> {
    let nonce = ledger.open();
    let arguments = json!({"nonce": nonce, "ms": 300});
    let params = json!({
        "name": "late", "arguments": arguments, "_meta": {"progressToken": turn},
    });
    let mut stream = raw::send(client, &client.request(&json!(turn), "tools/call", params)).await?;
    process::until("the call at the server", || journal.has(Entry::Call, nonce)).await?;
    // Some leave before the head of the answer, some within it.
    let mut some = vec![0; usize::try_from(turn % 7).unwrap_or_default() * 10];
    let reading = stream.read(&mut some);
    // Whether anything came or not, this is the end.
    let _ = tokio::time::timeout(Duration::from_millis(5), reading).await;
    drop(stream);
    ledger.leave(nonce);
    Ok((nonce, Instant::now()))
}

/// Closing the stream of a modern call cancels it; losing the connection of a legacy call does not.
pub(super) async fn disconnect(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("left", &[], "")?
        .serve()
        .await?;
    let journal = gateway.journal("left");
    let modern = gateway.client("left", Era::Modern).await?;
    let legacy = gateway.client("left", Era::Legacy).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &modern, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let files = process::files(gateway.id())?;
    let (mut longest, mut wrongly) = (Duration::ZERO, 0);
    for turn in 0..effort.of(20, 300) as u64 {
        let (nonce, left) = leave(&ledger, &modern, &journal, turn).await?;
        process::until("the cancellation", || journal.has(Entry::Cancelled, nonce)).await?;
        longest = longest.max(left.elapsed());
        let (nonce, _) = leave(&ledger, &legacy, &journal, turn).await?;
        must_answer(&ledger, &modern, "echo").await?;
        wrongly += usize::from(journal.has(Entry::Cancelled, nonce));
    }
    figures.within(
        "until a modern call was cancelled",
        longest,
        Duration::from_millis(200),
    );
    figures.none("legacy calls that were cancelled", wrongly);
    figures.at_most("starts", journal.all(Entry::Start).len(), 4);
    process::until("the end of the connections", || {
        process::files(gateway.id()).is_ok_and(|now| now <= files + 2)
    })
    .await?;
    let more = process::files(gateway.id())?.saturating_sub(files);
    figures.at_most("files more than before", more, 2);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Number of slow readers.
const SLOW: usize = 4;

/// Length of a progress message.
const NOTE: usize = 10_000;

/// Unread output is bounded, and the response is not lost.
pub(super) async fn slow_reader(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("eager", &[], "")?
        .serve()
        .await?;
    let journal = gateway.journal("eager");
    let client = gateway.client("eager", Era::Modern).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let before = gateway.resident()?;
    gateway.forget_peak()?;
    let count = 1000;
    let mut streams = Vec::new();
    for turn in 0..SLOW {
        let nonce = ledger.open();
        let arguments = json!({"nonce": nonce, "count": count, "bytes": NOTE});
        let params = json!({
            "name": "progress", "arguments": arguments, "_meta": {"progressToken": turn},
        });
        let request = client.request(&json!(turn), "tools/call", params);
        streams.push((nonce, raw::send(&client, &request).await?));
    }
    let seconds = effort.of(2, 20);
    for _ in 0..seconds {
        for (_, stream) in &mut streams {
            stream.read_exact(&mut [0]).await?;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let growth = gateway.peak()?.saturating_sub(before);
    figures.shown("said to each", (count * NOTE) as f64 / 1e6, "MB");
    let each = (3 << 19) * SLOW as u64;
    figures.memory("growth of the gateway at its peak", growth, each);
    for (nonce, mut stream) in streams {
        let end = tokio::time::timeout(PATIENCE, read_answer(&mut stream)).await;
        let end = end.map_err(|_| RowError::Patience("the end of a stream"))??;
        if end.contains(&format!("\"text\":\"{nonce}\"")) {
            ledger.leave(nonce);
        }
    }
    let sums = ledger.balance(&[&journal]);
    figures.none("answers that did not come when it read on", sums.lost);
    figures.none("twice", sums.twice);
    background_clients.end(figures).await
}

/// Reads until the answer of a tool is there, or the stream ends; tells the end of what was read.
async fn read_answer(stream: &mut tokio::net::TcpStream) -> Result<String, RowError> {
    const TAIL: usize = 1 << 10;
    let mut buffer = vec![0; 1 << 16];
    let mut tail = Vec::new();
    loop {
        let count = stream.read(&mut buffer).await?;
        tail.extend_from_slice(buffer.get(..count).unwrap_or_default());
        tail.drain(..tail.len().saturating_sub(TAIL));
        let text = String::from_utf8_lossy(&tail);
        if count == 0 || text.contains("\"result\"") {
            return Ok(text.into_owned());
        }
    }
}
