//! Clients that hold as much memory, as many sessions and as many connections as they can.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Effort;
use super::ending::must_answer;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{CALM, Gateway, GatewaySetup};
use crate::ledger::Ledger;
use crate::raw;

const MEGABYTE: usize = 1 << 20;

/// Limit of the gateway in megabytes.
const BUDGET: usize = 200;

/// Time after which the memory must be free again.
const RETURN: Duration = Duration::from_secs(30);

/// Time that unread results are left alone.
const UNREAD: Duration = Duration::from_secs(6);

/// Begins a body of 16 MB and does not end it. Returns whether it is refused, or cut off without an answer.
async fn unfinished(client: &Client) -> Result<(TcpStream, Option<Refusal>), RowError> {
    let length = 16 * MEGABYTE - 1000;
    let head = raw::head(client, &json!({}), &format!("content-length: {length}\r\n"));
    let mut stream = raw::connect(client).await?;
    stream.write_all(head.as_bytes()).await?;
    let piece = vec![b' '; 64 * 1024];
    for _ in 0..length / piece.len() - 1 {
        // A refused connection is closed.
        if stream.write_all(&piece).await.is_err() {
            let refusal = Refusal::read(&mut stream).await?;
            return Ok((stream, Some(refusal)));
        }
    }
    Ok((stream, None))
}

/// Treatment of a message for which there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// 503 with `Retry-After`.
    Named,
    /// The connection was closed, because the client had begun to wait.
    Cut,
    Other,
}

impl Refusal {
    async fn read(stream: &mut TcpStream) -> Result<Self, RowError> {
        Ok(Self::of(&raw::answer(stream).await?))
    }

    fn of(answer: &str) -> Self {
        let is_503 = answer.starts_with("HTTP/1.1 503 ");
        match answer {
            "" => Self::Cut,
            _ if is_503 && answer.to_ascii_lowercase().contains("retry-after:") => Self::Named,
            _ => Self::Other,
        }
    }
}

/// Waits until little memory is left in use, and returns the least that was seen.
async fn settled(gateway: &Gateway, idle: u64) -> Result<u64, RowError> {
    let begin = Instant::now();
    let mut least = gateway.resident()?;
    while least > 2 * idle && begin.elapsed() < RETURN {
        tokio::time::sleep(Duration::from_millis(500)).await;
        least = least.min(gateway.resident()?);
    }
    Ok(least)
}

/// Large messages of many clients stay within the budget; others are served, and the memory is returned.
pub(super) async fn budget(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let gateway = GatewaySetup::new()?
        .setting(&format!("[gateway.limits]\nmemory_mb = {BUDGET}\n"))
        .limited("--as=419430400")
        .scripted("plain", &[], "max_concurrent = 64\n")?
        .serve()
        .await?;
    let client = gateway.client("plain", Era::Legacy).await?;
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let idle = gateway.resident()?;
    let mut refusals = Vec::new();

    let mut held = Vec::new();
    for _ in 0..effort.of(30, 100) {
        let (stream, refusal) = unfinished(&client).await?;
        refusals.extend(refusal);
        held.push(stream);
    }
    let named = |refusals: &[Refusal]| {
        refusals
            .iter()
            .filter(|one| **one == Refusal::Named)
            .count()
    };
    figures.at_least(
        "bodies that were refused with 503 and Retry-After",
        named(&refusals),
        1,
    );
    drop(held);

    let mut held = Vec::new();
    for number in 0..effort.of(24, 64) {
        let call = client.request(
            &json!(number + 1000),
            "tools/call",
            json!({"name": "large", "arguments": {"nonce": number, "bytes": 7 * MEGABYTE}}),
        );
        held.push(raw::send(&client, &call).await?);
    }
    tokio::time::sleep(UNREAD).await;
    drop(held);

    let (mut answered, mut busy) = (0, 0);
    let text = "y".repeat(8 * MEGABYTE);
    let mut calls = JoinSet::new();
    for number in 0..effort.of(12, 40) {
        let call = client.request(
            &json!(number + 2000),
            "tools/call",
            json!({"name": "echo", "arguments": {"nonce": number, "x": text}}),
        );
        let body = call.to_string();
        let head = raw::head(
            &client,
            &call,
            &format!("content-length: {}\r\n", body.len()),
        );
        let mut stream = raw::connect(&client).await?;
        calls.spawn(async move {
            // A refused call is not read to its end.
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
            raw::answer(&mut stream).await
        });
    }
    while let Some(answer) = calls.join_next().await {
        let answer = answer??;
        match answer.starts_with("HTTP/1.1 200 ") {
            true => answered += 1,
            false => {
                refusals.push(Refusal::of(&answer));
                busy += 1;
            }
        }
    }
    let other = refusals
        .iter()
        .filter(|one| **one == Refusal::Other)
        .count();
    figures.none("refusals that are not 503 with Retry-After", other);
    let cut = refusals.len() - named(&refusals) - other;
    figures.shown("refusals by closing the connection", cut as f64, "");
    figures.at_least("large calls that were answered", answered, 1);
    figures.shown("large calls that were refused", busy as f64, "");
    figures.memory(
        "resident memory at its peak",
        gateway.peak()?,
        3 * idle + (BUDGET * MEGABYTE) as u64,
    );
    figures.memory(
        "resident memory afterwards",
        settled(&gateway, idle).await?,
        2 * idle,
    );
    // Fails if the gateway has aborted.
    must_answer(&ledger, &client, "echo").await?;
    ledger.balance(&[]).tell(figures);
    background_clients.end(figures).await
}

fn initialize(number: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "greedy", "version": "1"},
    }})
}

/// A client that opens sessions does not lock out others.
pub(super) async fn sessions(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let gateway = GatewaySetup::new()?.serve().await?;
    let client = gateway.client(CALM, Era::Legacy).await?;
    let greedy = Client::new(&gateway.address, client.path(), Era::Legacy)?;
    let mut refused = 0;
    let attempts = effort.of(300, 10_200);
    for number in 0..attempts {
        let reply = greedy.post(&initialize(number)).await?;
        refused += usize::from(reply.status == 503);
    }
    figures.none("sessions that were refused", refused);
    let begin = Instant::now();
    let late = gateway.client(CALM, Era::Legacy).await?;
    figures.within(
        "until a new client had a session",
        begin.elapsed(),
        Duration::from_secs(1),
    );
    must_answer(&ledger, &late, "echo").await?;
    must_answer(&ledger, &client, "echo").await?;
    ledger.balance(&[]).tell(figures);
    Ok(())
}

/// Idle connections make room for others, and servers can be started.
pub(super) async fn descriptors(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let gateway = GatewaySetup::new()?
        .limited("--nofile=64:64")
        .scripted("plain", &[], "")?
        .serve()
        .await?;
    let client = Client::new(
        &gateway.address,
        &crate::gateway::path("plain"),
        Era::Legacy,
    )?;
    let mut slowest = Duration::ZERO;
    for _ in 0..effort.of(1, 5) {
        let mut idle = Vec::new();
        for _ in 0..129 {
            idle.push(raw::connect(&client).await?);
        }
        let begin = Instant::now();
        let caller = gateway.client("plain", Era::Legacy).await?;
        must_answer(&ledger, &caller, "echo").await?;
        slowest = slowest.max(begin.elapsed());
        drop(idle);
    }
    figures.within(
        "handshake and call beside 129 idle connections",
        slowest,
        Duration::from_secs(1),
    );
    let begin = Instant::now();
    must_answer(&ledger, &gateway.client(CALM, Era::Legacy).await?, "echo").await?;
    figures.within(
        "until another server answered",
        begin.elapsed(),
        Duration::from_secs(2),
    );
    ledger.balance(&[]).tell(figures);
    Ok(())
}
