//! Every pair of revisions between processes: the binary as server, the library as client.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcpact::client::{ChildCommand, Client, ClientBuilder, ClientError, EraMode};
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

/// An HTTP server process, killed on drop.
struct Listening {
    process: Child,
    url: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn arguments(server: Peer) -> [String; 3] {
    let names: Vec<&str> = server.revisions().iter().map(|one| one.as_str()).collect();
    ["everything".into(), "--revisions".into(), names.join(",")]
}

fn listen(server: Peer) -> Listening {
    let mut process = Command::new(PROGRAM)
        .args(arguments(server))
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut url).unwrap();
    let url = url.trim().to_owned();
    Listening { process, url }
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
        let listening = listen(server);
        let connected = client.client().connect(listening.url.as_str()).await;
        check(client, server, connected).await;
    }
}
