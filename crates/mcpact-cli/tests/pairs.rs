//! Every pair of revisions between processes: the binary as server, the library as client.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

use std::process::Command;
use std::time::Duration;

use mcpact::client::{ChildCommand, Client, ClientBuilder, ClientError, EraMode};
use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::{Era, Revision};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcpact");

/// Revisions of a peer, as in the compatibility matrix of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Only(Revision),
    Legacy,
    Modern,
    Dual,
}

impl Peer {
    const FAMILIES: [Self; 3] = [Self::Legacy, Self::Modern, Self::Dual];

    fn revisions(self) -> Vec<Revision> {
        match self {
            Self::Only(revision) => vec![revision],
            Self::Legacy => of(Era::Legacy),
            Self::Modern => of(Era::Modern),
            Self::Dual => Revision::ALL.to_vec(),
        }
    }

    fn client(self) -> ClientBuilder {
        let mode = match self {
            Self::Only(revision) => EraMode::Pin(revision),
            Self::Legacy => EraMode::Legacy,
            Self::Modern => EraMode::Modern,
            Self::Dual => EraMode::Auto,
        };
        Client::builder("pair", "1").mode(mode)
    }
}

fn of(era: Era) -> Vec<Revision> {
    let all = Revision::ALL.into_iter();
    all.filter(|revision| revision.era() == era).collect()
}

/// Returns the latest common revision.
fn expected(client: Peer, server: Peer) -> Option<Revision> {
    let theirs = server.revisions();
    let both = client.revisions().into_iter();
    both.filter(|revision| theirs.contains(revision)).max()
}

fn arguments(server: Peer) -> [String; 3] {
    let names: Vec<&str> = server.revisions().iter().map(|one| one.as_str()).collect();
    ["everything".into(), "--revisions".into(), names.join(",")]
}

/// Starts a server over HTTP; returns it and its URL.
fn listen(server: Peer) -> (TestProcess, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments(server));
    TestProcess::listening(command.args(["--listen", "127.0.0.1:0"]))
}

async fn check(client: Peer, server: Peer, connected: Result<Client, ClientError>) {
    match (connected, expected(client, server)) {
        (Ok(connected), Some(revision)) => {
            assert_eq!(
                connected.pact().revision(),
                revision,
                "{client:?} {server:?}"
            );
            let echoed = connected.call_tool("echo", json!({"text": "hi"})).await;
            assert_eq!(echoed.unwrap().all_text(), "hi");
            connected.close().await;
        }
        (Err(error), Some(_)) => panic!("{client:?} and {server:?} must agree: {error}"),
        (Ok(_), None) => panic!("{client:?} and {server:?} must not agree"),
        (Err(error), None) => {
            let is_refused = matches!(error, ClientError::Refused { .. });
            assert!(is_refused, "{client:?} {server:?}: {error}");
        }
    }
}

/// Returns every pair of single revisions and of revision families.
fn pairs() -> Vec<(Peer, Peer)> {
    let single = Revision::ALL.map(Peer::Only);
    let mut pairs = Vec::new();
    for peers in [&single[..], &Peer::FAMILIES] {
        for client in peers {
            pairs.extend(peers.iter().map(|server| (*client, *server)));
        }
    }
    pairs
}

/// N15, T1, T2: the results match the compatibility matrix of the specification.
#[tokio::test]
async fn every_pair_negotiates_on_stdio() {
    for (client, server) in pairs() {
        let command = ChildCommand::new(PROGRAM).with_args(arguments(server));
        let builder = client.client().silence_limit(Duration::from_secs(10));
        check(client, server, builder.connect(command).await).await;
    }
}

/// N15, T1, T3, T4: the results match the compatibility matrix of the specification.
#[tokio::test]
async fn every_pair_negotiates_on_http() {
    for (client, server) in pairs() {
        let (_process, url) = listen(server);
        let connected = client.client().connect(url).await;
        check(client, server, connected).await;
    }
}
