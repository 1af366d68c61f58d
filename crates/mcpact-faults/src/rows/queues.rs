//! Peers that send much and do not read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::Effort;
use super::ending::{begin, must_answer};
use crate::background_clients::BackgroundClients;
use crate::client::Era;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::journal::Entry;
use crate::ledger::{Ledger, Outcome};
use crate::process::{self, PATIENCE};

/// Growth of the gateway because of one such peer.
const GROWTH: u64 = 32 << 20;

/// Time until a peer that does not read is disconnected.
const CUT: Duration = Duration::from_secs(15);

/// Interval of calls at a storming server.
const PACE: Duration = Duration::from_millis(50);

/// Memory is bounded, the server is disconnected with a reason, and the next call starts it again.
pub(super) async fn demanding_server(
    effort: Effort,
    figures: &mut Figures,
) -> Result<(), RowError> {
    let setup = GatewaySetup::new()?.scripted("greedy", &[], "max_instances = 1\n")?;
    let gateway = setup.serve().await?;
    let journal = gateway.journal("greedy");
    let clients = [Arc::new(gateway.client("greedy", Era::Legacy).await?)];
    let ledger = Arc::new(Ledger::default());
    must_answer(&ledger, &clients[0], "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let mut growth = 0;
    let mut slowest = Duration::ZERO;
    let mut unnamed = 0;
    let methods = ["ping", "roots/list", "sampling/createMessage"];
    for method in methods.into_iter().take(effort.of(1, methods.len())) {
        let before = gateway.resident()?;
        gateway.forget_peak()?;
        let mut hanging = begin(&ledger, &clients, 1, "hang", &json!({}));
        process::until("the call in flight", || {
            journal.all(Entry::Call).len() > ledger.balance(&[&journal]).answered
        })
        .await?;
        let start = Instant::now();
        let arguments = json!({"method": method, "ms": 20_000});
        ledger.call(&clients[0], "demand", arguments).await;
        let ended = tokio::time::timeout(PATIENCE, hanging.join_next()).await;
        let ended = ended.map_err(|_| RowError::Patience("the end of the call in flight"))?;
        slowest = slowest.max(start.elapsed());
        if let Some(ended) = ended {
            let is_named =
                matches!(&ended?.0.outcome, Outcome::Refused(why) if why.contains("does not read"));
            unnamed += usize::from(!is_named);
        }
        growth = growth.max(gateway.peak()?.saturating_sub(before));
        must_answer(&ledger, &clients[0], "echo").await?;
    }
    figures.memory("growth of the gateway at its peak", growth, GROWTH);
    figures.within("until it is disconnected", slowest, CUT);
    figures.none("calls in flight that do not name the reason", unnamed);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Memory is bounded whatever the client sends, and it is disconnected.
pub(super) async fn silent_client(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let setup = GatewaySetup::new()?.setting("websocket = true\n");
    let gateway = setup.serve().await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let ping = frame(
        TEXT,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.as_bytes(),
    );
    let control = frame(PING, &[b'x'; 125]);
    let greeting = frame(TEXT, INITIALIZE.as_bytes());
    let before = gateway.resident()?;
    gateway.forget_peak()?;
    let mut floods = JoinSet::new();
    for (first, repeated) in [
        (Vec::new(), control.clone()),
        (Vec::new(), ping.clone()),
        (greeting.clone(), control),
        (greeting, ping),
    ]
    .into_iter()
    .cycle()
    .take(effort.of(4, 8))
    {
        let mut socket = open(&gateway).await?;
        socket.write_all(&first).await?;
        let many = repeated.repeat(1024);
        floods.spawn(async move {
            let sending = async { while socket.write_all(&many).await.is_ok() {} };
            tokio::time::timeout(PATIENCE, sending).await
        });
    }
    let count = floods.len();
    let begin = Instant::now();
    for ended in floods.join_all().await {
        ended.map_err(|_| RowError::Patience("the end of a WebSocket"))?;
    }
    let slowest = begin.elapsed();
    let growth = gateway.peak()?.saturating_sub(before);
    let reasons = gateway.log().matches("does not read").count();
    figures.memory("growth of the gateway at its peak", growth, GROWTH);
    figures.shown("clients", count as f64, "");
    figures.within("until the last is disconnected", slowest, 2 * CUT);
    // One in four sends no message, and is disconnected for that after ten seconds.
    figures.at_least("log lines with the reason", reasons, count / 4 * 3);
    background_clients.end(figures).await
}

/// Limit of the gateway in megabytes.
const BUDGET: usize = 200;

/// Large messages that are begun stay within the memory budget, and WebSockets of new clients are accepted.
pub(super) async fn unfinished_messages(
    effort: Effort,
    figures: &mut Figures,
) -> Result<(), RowError> {
    let limits = format!("websocket = true\n[gateway.limits]\nmemory_mb = {BUDGET}\n");
    let gateway = GatewaySetup::new()?
        .setting(&limits)
        .limited("--as=629145600")
        .serve()
        .await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let before = gateway.resident()?;
    gateway.forget_peak()?;
    // Headers of frames of 16 MB, alone and with most of the payload.
    let header = [
        &[0x80 | TEXT, 0x80 | 127][..],
        &(16_u64 << 20).to_be_bytes(),
        &[0; 4],
    ]
    .concat();
    let mut held = Vec::new();
    for _ in 0..effort.of(300, 1500) {
        let mut socket = open(&gateway).await?;
        socket.write_all(&header).await?;
        held.push(socket);
    }
    let mut senders = JoinSet::new();
    let begin = Instant::now();
    for _ in 0..effort.of(20, 40) {
        let mut socket = open(&gateway).await?;
        let mut message = header.clone();
        message.resize(15 << 20, b' ');
        senders.spawn(async move {
            // The answers are a close frame, or the end of the connection.
            let _ = socket.write_all(&message).await;
            let ended = tokio::time::timeout(PATIENCE, socket.read_u8()).await;
            usize::from(ended.is_ok())
        });
    }
    let mut closed = 0;
    while let Some(ended) = senders.join_next().await {
        closed += ended?;
    }
    figures.at_least(
        "unfinished messages whose connection was closed",
        closed,
        effort.of(20, 40),
    );
    figures.within("until the last was closed", begin.elapsed(), 4 * CUT);
    figures.memory(
        "growth of the gateway at its peak",
        gateway.peak()?.saturating_sub(before),
        ((BUDGET + 100) << 20) as u64,
    );
    let begin = Instant::now();
    let mut newcomer = open(&gateway).await?;
    newcomer
        .write_all(&frame(TEXT, INITIALIZE.as_bytes()))
        .await?;
    newcomer.read_u8().await?;
    figures.within(
        "until a new client was answered",
        begin.elapsed(),
        Duration::from_secs(2),
    );
    drop(held);
    background_clients.end(figures).await
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Opcode of a text message.
const TEXT: u8 = 1;

/// Opcode of a ping.
const PING: u8 = 9;

/// A frame of a client, with a mask that changes nothing.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    const FINAL: u8 = 0x80;
    const MASKED: u8 = 0x80;
    const EXTENDED: u8 = 126;
    let mut frame = vec![FINAL | opcode];
    match u8::try_from(payload.len()) {
        Ok(length @ ..EXTENDED) => frame.push(MASKED | length),
        _ => {
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            frame.push(MASKED | EXTENDED);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// Opens a WebSocket, of which nothing is read after the upgrade.
async fn open(gateway: &Gateway) -> Result<TcpStream, RowError> {
    let mut socket = TcpStream::connect(&gateway.address).await?;
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-protocol: mcp\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        gateway.address
    );
    socket.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await?);
    }
    match answer.starts_with(b"HTTP/1.1 101 ") {
        true => Ok(socket),
        false => Err(RowError::stage(String::from_utf8_lossy(&answer))),
    }
}

/// The storm costs little, and both this server and others answer their calls.
pub(super) async fn storm(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let setup = GatewaySetup::new()?.scripted("stormy", &[], "max_instances = 1\n")?;
    let gateway = setup.serve().await?;
    let journal = gateway.journal("stormy");
    let client = gateway.client("stormy", Era::Legacy).await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &client, "echo").await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let seconds = effort.of(3, 10);
    let (calm, _) = share(&gateway, seconds, async || {
        must_answer(&ledger, &client, "echo")
            .await
            .map(|closed| closed.took)
    })
    .await?;
    let arguments = json!({"ms": 1000 * (seconds + 1)});
    ledger.call(&client, "storm", arguments).await;
    let (storming, slowest) = share(&gateway, seconds, async || {
        must_answer(&ledger, &client, "echo")
            .await
            .map(|closed| closed.took)
    })
    .await?;
    figures.shown("share of a core without the storm", calm, "");
    figures.ratio("share of a core because of the storm", storming - calm, 0.2);
    figures.within("its slowest call", slowest, Duration::from_millis(500));
    figures.at_most("starts", journal.all(Entry::Start).len(), 1);
    ledger.balance(&[&journal]).tell(figures);
    background_clients.end(figures).await
}

/// Calls for this time. Returns the part of a core that the gateway has used, and the duration of the slowest call.
async fn share(
    gateway: &Gateway,
    seconds: usize,
    call: impl AsyncFn() -> Result<Duration, RowError>,
) -> Result<(f64, Duration), RowError> {
    let begin = Instant::now();
    let before = process::processor_time(gateway.id())?;
    let mut slowest = Duration::ZERO;
    while begin.elapsed().as_secs_f64() < seconds as f64 {
        slowest = slowest.max(call().await?);
        tokio::time::sleep(PACE).await;
    }
    let used = process::processor_time(gateway.id())?.saturating_sub(before);
    Ok((used.as_secs_f64() / begin.elapsed().as_secs_f64(), slowest))
}
