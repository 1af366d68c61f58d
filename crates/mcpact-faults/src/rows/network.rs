//! Servers on HTTP, behind a network that does what networks do.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Effort;
use super::ending::{begin, both};
use crate::background_clients::BackgroundClients;
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::GatewaySetup;
use crate::journal::Journal;
use crate::ledger::{Ledger, Outcome};
use crate::proxy::{Fault, Proxy};

/// The library's own server on HTTP, killed on drop, and where it listens.
pub(super) async fn peer(
    revision: &str,
    journal: Option<&Journal>,
) -> Result<(Child, String), RowError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["peer", "--http", "--revision", revision]);
    if let Some(journal) = journal {
        command.arg("--journal").arg(journal.path());
    }
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).await?;
    }
    let host = line.trim().strip_prefix("http://");
    let host = host.and_then(|rest| rest.split('/').next());
    let host = host.ok_or_else(|| RowError::stage("the peer does not say where it listens"))?;
    Ok((child, host.to_owned()))
}

/// Network faults, and whether calls survive them.
const WEATHER: &[(Fault, bool)] = &[
    (Fault::Split, true),
    (Fault::Merged, true),
    (Fault::Reset(0), false),
    (Fault::Reset(100), false),
    (Fault::HalfClose(0), false),
    (Fault::HalfClose(100), false),
    (Fault::Stall(0), false),
    (Fault::Stall(100), false),
];

/// As on pipes, for servers of both eras on HTTP; a call is never made twice.
pub(super) async fn weather(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let setup = GatewaySetup::new()?;
    let (mut peers, mut proxies) = (Vec::new(), Vec::new());
    let mut setup = setup;
    for (name, revision) in [("old", "2025-11-25"), ("new", "2026-07-28")] {
        let (child, address) = peer(revision, Some(&setup.journal(name))).await?;
        let proxy = Proxy::start(&address).await?;
        let url = format!("http://{}/mcp", proxy.address());
        let keys = format!(
            "era = \"{revision}\"\nmax_concurrent = 64\ncall_seconds = 2\nfailures = 1000\n"
        );
        setup = setup.url(name, &url, &keys);
        peers.push(child);
        proxies.push(proxy);
    }
    let gateway = setup.serve().await?;
    let ledger = Arc::new(Ledger::default());
    let background_clients = BackgroundClients::begin(&gateway).await?;
    let mut clients = both(&gateway, "old").await?;
    clients.extend(both(&gateway, "new").await?);
    let (mut harmed, mut longest) = (0, Duration::ZERO);
    for (fault, is_harmless) in WEATHER.iter().cycle().take(WEATHER.len() * effort.of(1, 5)) {
        proxies.iter().for_each(|proxy| proxy.set(*fault));
        let mut calls = begin(&ledger, &clients, 20, "echo", &json!({"ms": 5}));
        while let Some(call) = calls.join_next().await {
            let (closed, _) = call?;
            harmed += usize::from(*is_harmless && closed.outcome != Outcome::Answered);
            longest = longest.max(closed.took);
        }
        proxies.iter().for_each(|proxy| proxy.set(Fault::None));
        recover(&ledger, &clients).await?;
    }
    figures.none("harmed by split or merged bytes", harmed);
    figures.within(
        "the longest call, of 2 s at most",
        longest,
        Duration::from_millis(2250),
    );
    let journals = [gateway.journal("old"), gateway.journal("new")];
    ledger.balance(&[&journals[0], &journals[1]]).tell(figures);
    background_clients.end(figures).await
}

/// Calls until all clients are served again.
async fn recover(ledger: &Ledger, clients: &[Arc<crate::client::Client>]) -> Result<(), RowError> {
    for client in clients {
        let mut tries = 0;
        while ledger.call(client, "echo", json!({})).await.outcome != Outcome::Answered {
            tries += 1;
            if tries > 100 {
                return Err(RowError::Patience("a server that is there again"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}
