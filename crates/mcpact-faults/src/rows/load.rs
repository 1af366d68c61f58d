//! Many clients, and many calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::Effort;
use super::network::peer;
use crate::client::{Client, Era};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup};
use crate::ledger::Ledger;
use crate::process;

/// Number of servers used by the sessions.
const SERVERS: usize = 10;

/// Number of rounds.
const CROWDS: usize = 5;

/// Every session uses every server; memory does not grow from one crowd to the next.
pub(super) async fn sessions(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let mut setup = GatewaySetup::new()?;
    let names: Vec<String> = (0..SERVERS).map(|n| format!("s{n}")).collect();
    for name in &names {
        setup = setup.scripted(name, &[], "max_concurrent = 64\n")?;
    }
    let gateway = setup.serve().await?;
    let ledger = Arc::new(Ledger::default());
    let count = effort.of(100, 1000);
    // What all sessions share is there before the first crowd comes.
    crowd(&gateway, &ledger, &names, 16).await?;
    let before = gateway.resident()?;
    // The first crowd shows what a session weighs; after the second the heap has settled, and grows no more.
    let mut peaks = Vec::new();
    for _ in 0..CROWDS {
        gateway.forget_peak()?;
        let held = crowd(&gateway, &ledger, &names, count).await?;
        peaks.push((gateway.peak()?, held));
    }
    let [(_, held), (settled, _), .., (last, _)] = peaks[..] else {
        return Err(RowError::stage("too few crowds"));
    };
    let each = held.saturating_sub(before) as f64 / count as f64;
    figures.shown("sessions", count as f64, "");
    figures.shown("servers", SERVERS as f64, "");
    figures.bytes_each("memory of a session that has used them all", each, 65_536.0);
    figures.shown(
        "the second crowd at its peak",
        settled as f64 / 1_048_576.0,
        "MiB",
    );
    // Pages are not given back one by one: a few of them are no trend.
    figures.memory(
        "the last crowd at its peak",
        last,
        settled + settled / 20 + (1 << 20),
    );
    let alive = process::descendants(gateway.id()).len();
    figures.shown("processes of the gateway", alive as f64, "");
    let journals: Vec<_> = names.iter().map(|name| gateway.journal(name)).collect();
    let sums = ledger.balance(&journals.iter().collect::<Vec<_>>());
    figures.none("refused", sums.refused);
    sums.tell(figures);
    Ok(())
}

/// Opens sessions that call every server; returns the memory of the gateway.
async fn crowd(
    gateway: &Gateway,
    ledger: &Arc<Ledger>,
    names: &[String],
    count: usize,
) -> Result<u64, RowError> {
    const TOGETHER: usize = 20;
    let mut clients = Vec::new();
    for _ in 0..count.div_ceil(TOGETHER) {
        let mut opening = JoinSet::new();
        for _ in 0..TOGETHER {
            let (address, names) = (gateway.address.clone(), names.to_vec());
            let ledger = Arc::clone(ledger);
            opening.spawn(async move {
                let client = Client::open(&address, "/mcp", Era::Legacy).await?;
                for name in names {
                    let tool = format!("{name}__echo");
                    ledger.call(&client, &tool, json!({})).await;
                }
                Ok::<Client, RowError>(client)
            });
        }
        for client in opening.join_all().await {
            clients.push(client?);
        }
    }
    let held = gateway.resident()?;
    for client in clients {
        client.leave().await?;
    }
    Ok(held)
}

/// Number of concurrent clients.
const CLIENTS: usize = 64;

/// Number of calls between two memory measurements.
const LOOK: usize = 10_000;

/// A million calls over servers of both eras on pipes and HTTP.
pub(super) async fn soak(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let calls = match effort {
        Effort::Quick => 6_400,
        Effort::Full => 200_000,
        Effort::Long => 1_000_000,
    };
    let (gateway, _peers) = mixed().await?;
    let ledger = Arc::new(Ledger::default());
    let done = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..CLIENTS {
        let (client, tool) = errand(&gateway, worker).await?;
        let (ledger, done) = (Arc::clone(&ledger), Arc::clone(&done));
        workers.spawn(async move {
            for _ in 0..calls / CLIENTS {
                ledger.call(&client, tool, json!({})).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let begin = Instant::now();
    let files = process::files(gateway.id())?;
    let mut looks: Vec<(f64, f64)> = Vec::new();
    while !workers.is_empty() {
        while workers.try_join_next().is_some() {}
        let so_far = done.load(Ordering::Relaxed);
        if so_far >= (looks.len() + 1) * LOOK {
            looks.push((so_far as f64, gateway.resident()? as f64));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    figures.shown("calls per second", calls as f64 / seconds, "");
    figures.shown(
        "resident at the end",
        gateway.resident()? as f64 / 1_048_576.0,
        "MiB",
    );
    looks.retain(|(count, _)| *count >= 100_000.0);
    match slope(&looks) {
        Some((slope, error)) if effort == Effort::Long => {
            figures.shown("looks at the memory", looks.len() as f64, "");
            figures.bytes_each("growth for each call after 100,000", slope, 0.5);
            figures.shown("± (95 %)", 1.96 * error, "B");
        }
        Some((slope, _)) => figures.shown("growth for each call after 100,000", slope, "B"),
        None => {}
    }
    let more = process::files(gateway.id())?.saturating_sub(files);
    figures.at_most("files more than at the start", more, CLIENTS);
    let sums = ledger.balance(&[]);
    figures.none("refused", sums.refused);
    sums.tell(figures);
    Ok(())
}

/// Servers of both eras, on pipes and on HTTP.
const MIXED: [(&str, &str, &str); 4] = [
    ("pipe_old", "2025-06-18", "pipe_old__echo"),
    ("pipe_new", "2026-07-28", "pipe_new__echo"),
    ("http_old", "2025-11-25", "http_old__echo"),
    ("http_new", "2026-07-28", "http_new__echo"),
];

async fn mixed() -> Result<(Gateway, Vec<tokio::process::Child>), RowError> {
    let own = std::env::current_exe()?.display().to_string();
    let mut setup = GatewaySetup::new()?;
    let mut peers = Vec::new();
    for (name, revision, _) in MIXED {
        let keys = format!("era = \"{revision}\"\nmax_concurrent = 64\n");
        setup = if name.starts_with("pipe") {
            let words = [&own, "peer", "--revision", revision];
            setup.command(name, &words, &keys)
        } else {
            let (child, address) = peer(revision, None).await?;
            peers.push(child);
            setup.url(name, &format!("http://{address}/mcp"), &keys)
        };
    }
    Ok((setup.serve().await?, peers))
}

/// A client of either era, of all servers as one or of one server alone, and the tool that it calls.
async fn errand(gateway: &Gateway, worker: usize) -> Result<(Client, &'static str), RowError> {
    let (name, _, tool) = MIXED[worker % MIXED.len()];
    let era = [Era::Legacy, Era::Modern][worker / 4 % 2];
    if (worker / 8).is_multiple_of(2) {
        let client = Client::open(&gateway.address, "/mcp", era).await?;
        return Ok((client, tool));
    }
    Ok((gateway.client(name, era).await?, "echo"))
}

/// The slope of a line through the points and its standard error.
fn slope(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let common: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let slope = common / spread;
    let rest: f64 = points
        .iter()
        .map(|point| (point.1 - y - slope * (point.0 - x)).powi(2))
        .sum();
    Some((slope, (rest / (count - 2.0) / spread).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_line_has_its_own_slope() {
        let (found, error) = slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((found - 2.0).abs() < 1e-9 && error < 1e-9);
        assert!(slope(&[(0.0, 0.0)]).is_none());
    }
}
