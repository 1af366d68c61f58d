//! Negotiation log of a client.

use mcpact::client::{Client, EraMode, Revision};
use mcpact::log::{NEGOTIATION, field};
use mcpact::server::Server;
use mcpact_sim::scripted::serve;
use tracing::Level;

use crate::record::Log;

fn served(revisions: &[Revision]) -> mcpact_transport::link::Link {
    serve(Server::new("asked", "3").revisions(revisions))
}

/// A client logs its request, each observation and conclusion, and the result.
#[tokio::test]
async fn fallback_is_logged_step_by_step() {
    let (log, _guard) = Log::start();
    let client = Client::connect(served(&[Revision::V2025_03_26]))
        .await
        .unwrap();
    let steps = log.events(NEGOTIATION);
    let probed = steps.iter().find(|entry| entry.get("message") == "probed");
    assert!(
        probed.unwrap().get("concluded").contains("Legacy"),
        "{steps:?}"
    );
    let ends = log.negotiations("client");
    assert_eq!(ends.len(), 1, "{ends:?}");
    for entry in [&ends[0], &log.spans("client")[0]] {
        assert_eq!(entry.get(field::METHOD), "initialize");
        assert_eq!(entry.get(field::CLIENT_VERSION), "2025-11-25");
        assert_eq!(entry.get(field::REVISION), "2025-03-26");
        assert_eq!(entry.get(field::ERA), "legacy");
        assert_eq!(entry.get(field::SERVER_INFO), "asked 3");
        assert_eq!(entry.get(field::STATUS), "ok");
        assert!(
            entry.get(field::TRANSPORT_ID).starts_with("stream-"),
            "{entry:?}"
        );
        assert!(!entry.get(field::DURATION).is_empty(), "{entry:?}");
    }
    client.close().await;
}

/// A client without a common version warns once, with both offers and advice.
#[tokio::test]
async fn mismatch_is_logged() {
    let (log, _guard) = Log::start();
    let modern = Client::builder("t", "1").mode(EraMode::Modern);
    modern
        .connect(served(&[Revision::V2025_06_18]))
        .await
        .unwrap_err();
    let ends = log.negotiations("client");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].level, Level::WARN);
    assert_eq!(ends[0].get(field::OUTCOME), "refused");
    assert_eq!(ends[0].get(field::CLIENT_VERSION), "2026-07-28");
    assert!(!ends[0].get(field::ADVICE).is_empty(), "{ends:?}");
    assert!(!ends[0].get(field::ERROR).is_empty(), "{ends:?}");
}
