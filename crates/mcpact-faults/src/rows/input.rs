//! Clients that send too much, too deep, or no JSON-RPC.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::Effort;
use super::ending::must_answer;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era, read};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::ledger::Ledger;
use crate::raw;

/// The longest body that is taken, if nothing else is configured.
const BODY: usize = 16 << 20;

/// A gateway with one server, which has answered.
async fn setup(ledger: &Ledger) -> Result<(Gateway, Client), RowError> {
    let gateway = GatewaySetup::new()?
        .scripted("plain", &[], "")?
        .serve()
        .await?;
    let client = gateway.client("plain", Era::Legacy).await?;
    must_answer(ledger, &client, "echo").await?;
    Ok((gateway, client))
}

/// Sends a head and then pieces without end, or as good as; tells the status that comes back.
async fn pour(client: &Client, lines: &str, piece: &[u8]) -> Result<u16, RowError> {
    let head = raw::head(client, &json!({}), lines);
    let (mut hear, mut say) = raw::connect(client).await?.into_split();
    say.write_all(head.as_bytes()).await?;
    let pouring = async {
        let mut sent = 0;
        // A rejected connection is closed as well.
        while sent < 8 * BODY && say.write_all(piece).await.is_ok() {
            sent += piece.len();
        }
        std::future::pending().await
    };
    tokio::select! {
        status = raw::status_of(&mut hear) => status,
        () = pouring => Ok(0),
    }
}

/// Oversized bodies are rejected before they are complete; a wrong length has no effect on others.
pub(super) async fn oversized(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let (gateway, client) = setup(&ledger).await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let before = gateway.resident()?;
    gateway.forget_peak()?;
    let mut wrong = 0;
    let piece = vec![b' '; 1 << 16];
    let chunk = [b"10000\r\n", piece.as_slice(), b"\r\n"].concat();
    for _ in 0..effort.of(1, 10) {
        let long = format!("content-length: {}\r\n", BODY + 1);
        let status = pour(&client, &long, &piece).await?;
        wrong += usize::from(status != 413);
        let status = pour(&client, "transfer-encoding: chunked\r\n", &chunk).await?;
        wrong += usize::from(status != 413);
        wrong += usize::from(!lies(&client).await?);
        wrong += usize::from(packed(&client).await? < 400);
    }
    let growth = gateway.peak()?.saturating_sub(before);
    // One body may still be on its way out when the next one comes.
    figures.none(
        "too long, and not answered with 413 or refused otherwise",
        wrong,
    );
    figures.memory(
        "growth of the gateway at its peak",
        growth,
        (2 * BODY + (4 << 20)) as u64,
    );
    let bytes = json!({"bytes": BODY + 1});
    let closed = ledger.call(&client, "large", bytes).await;
    let is_passed = closed.outcome == crate::ledger::Outcome::Answered;
    figures.none(
        "answers of servers that are too long and were passed on",
        usize::from(is_passed),
    );
    figures.within(
        "until their callers were told",
        closed.took,
        Duration::from_secs(5),
    );
    must_answer(&ledger, &client, "echo").await?;
    ledger.balance(&[&gateway.journal("plain")]).tell(figures);
    background_clients.end(figures).await
}

/// A body that is shorter than it says; whether nothing came of it.
async fn lies(client: &Client) -> Result<bool, RowError> {
    let mut stream = raw::connect(client).await?;
    let head = raw::head(client, &json!({}), "content-length: 1000\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(br#"{"jsonrpc":"2.0","#).await?;
    stream.shutdown().await?;
    let status = raw::status(&mut stream).await?;
    Ok(status == 0 || status >= 400)
}

/// A body that says that it is compressed.
async fn packed(client: &Client) -> Result<u16, RowError> {
    let mut stream = raw::connect(client).await?;
    let lines = "content-encoding: gzip\r\ncontent-length: 20\r\n";
    stream
        .write_all(raw::head(client, &json!({}), lines).as_bytes())
        .await?;
    stream.write_all(&[0x1f; 20]).await?;
    raw::status(&mut stream).await
}

/// Outcome of a body.
struct Verdict {
    status: u16,
    code: Option<i64>,
    took: Duration,
}

async fn verdict(client: &Client, body: String) -> Result<Verdict, RowError> {
    let begin = Instant::now();
    let (_connection, response) = client
        .send(Method::POST, Bytes::from(body), &Value::Null)
        .await?;
    let reply = read(response).await?;
    let error = reply
        .messages
        .iter()
        .find_map(|message| message.get("error"));
    Ok(Verdict {
        status: reply.status,
        code: error.and_then(|error| error["code"].as_i64()),
        took: begin.elapsed(),
    })
}

/// A call with this argument.
fn call(argument: &str) -> String {
    let nonce = Ledger::mint();
    format!(
        r#"{{"jsonrpc":"2.0","id":{nonce},"method":"tools/call","params":{{"name":"echo","arguments":{{"nonce":{nonce},"x":{argument}}}}}}}"#
    )
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// Nesting depth is limited everywhere; width and length are limited by the body.
pub(super) async fn deep(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let (gateway, client) = setup(&ledger).await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let keys: Vec<String> = (0..effort.of(100_000, 1_000_000))
        .map(|n| format!("\"{n}\":0"))
        .collect();
    let corpus = [
        ("100 deep", nested(100), true),
        ("1,000 deep", nested(1_000), false),
        ("100,000 deep", nested(100_000), false),
        ("5,000,000 deep", nested(5_000_000), false),
        ("many keys", format!("{{{}}}", keys.join(",")), true),
        ("100,000 digits", format!("0.{}", "1".repeat(100_000)), true),
        (
            "100,000 escapes",
            format!("\"{}\"", "\\u00e9".repeat(100_000)),
            true,
        ),
    ];
    let mut wrong = 0;
    let mut slowest: f64 = 0.0;
    for (name, argument, is_good) in &corpus {
        let body = call(argument);
        let megabytes = (body.len() as f64 / 1e6).max(1.0);
        let verdict = verdict(&client, body).await?;
        let is_taken = verdict.code.is_none() && verdict.status == 200;
        let is_refused = matches!(verdict.code, Some(-32700 | -32600));
        let is_right = if *is_good { is_taken } else { is_refused };
        if !is_right {
            figures.shown(*name, verdict.code.unwrap_or_default() as f64, "(code)");
        }
        wrong += usize::from(!is_right);
        if !*is_good {
            slowest = slowest.max(verdict.took.as_secs_f64() * 1000.0 / megabytes);
        }
        must_answer(&ledger, &client, "echo").await?;
    }
    figures.none("taken or refused wrongly", wrong);
    figures.within(
        "refusal for each megabyte",
        Duration::from_secs_f64(slowest / 1000.0),
        Duration::from_millis(5),
    );
    let (mut passed, mut told) = (0, Duration::ZERO);
    for depth in [1_000, 100_000] {
        let closed = ledger.call(&client, "raw", json!({"depth": depth})).await;
        passed += usize::from(closed.outcome == crate::ledger::Outcome::Answered);
        told = told.max(closed.took);
        must_answer(&ledger, &client, "echo").await?;
    }
    figures.within(
        "until their callers were told",
        told,
        Duration::from_millis(100),
    );
    figures.none(
        "answers of servers that are too deep and were passed on",
        passed,
    );
    ledger.balance(&[&gateway.journal("plain")]).tell(figures);
    background_clients.end(figures).await
}

/// Invalid requests with the expected code, if any.
const GARBAGE: &[(&str, &str, &[i64])] = &[
    ("nothing", "", &[-32700]),
    ("no JSON", "{", &[-32700]),
    ("a string", "\"text\"", &[-32600]),
    (
        "a batch",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        &[-32600],
    ),
    ("an empty batch", "[]", &[-32600]),
    ("no version", r#"{"id":1,"method":"ping"}"#, &[-32600]),
    (
        "another version",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        &[-32600],
    ),
    (
        "the id null",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        &[-32600],
    ),
    (
        "the id an object",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        &[-32600],
    ),
    (
        "the id true",
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        &[-32600],
    ),
    (
        "the method a number",
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        &[-32600],
    ),
    (
        "wrong case",
        r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#,
        &[-32600],
    ),
    (
        "two methods",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        &[-32600, -32700],
    ),
    (
        "two ids",
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        &[-32600, -32700],
    ),
    (
        "result and error",
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        &[-32600],
    ),
    (
        "params a text",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#,
        &[-32600, -32602],
    ),
    (
        "no such method",
        r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        &[-32601],
    ),
];

/// Ids that are echoed as they are.
const IDS: &[&str] = &[
    "0",
    "-1",
    "9007199254740993",
    "\"\"",
    "\"é\\u0000\"",
    "\"1\"",
];

/// Garbage is named as such; nothing of it reaches a server, and every id comes back as it went.
pub(super) async fn garbage(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let ledger = Ledger::default();
    let (gateway, client) = setup(&ledger).await?;
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let mut wrong = 0;
    for (name, body, codes) in GARBAGE {
        let verdict = verdict(&client, (*body).to_owned()).await?;
        let is_right = verdict.code.is_some_and(|code| codes.contains(&code));
        if !is_right {
            figures.shown(
                format!("{name}: HTTP {}", verdict.status),
                verdict.code.unwrap_or_default() as f64,
                "(code)",
            );
        }
        wrong += usize::from(!is_right);
        must_answer(&ledger, &client, "echo").await?;
    }
    figures.shown("kinds of garbage", GARBAGE.len() as f64, "");
    figures.none("not refused, or not as what they are", wrong);
    let mut changed = 0;
    for id in IDS {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let (_connection, response) = client
            .send(Method::POST, Bytes::from(body), &Value::Null)
            .await?;
        let reply = read(response).await?;
        let wanted: Value = serde_json::from_str(id)?;
        let is_same = reply.answers().iter().any(|answer| answer["id"] == wanted);
        changed += usize::from(!is_same);
    }
    figures.none("ids that came back changed", changed);
    ledger.balance(&[&gateway.journal("plain")]).tell(figures);
    background_clients.end(figures).await
}
