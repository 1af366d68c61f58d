//! Cache of server eras.

use std::time::Duration;

use mcpact::client::{Client, ClientError, EraCache};
use mcpact_sim::scripted::message::initialize_result;
use serde_json::{Value, json};

use crate::http_server::{HttpServer, Reply};

async fn legacy_server() -> HttpServer {
    HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET" | "DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "server/discover") => Reply::error(seen, 400, -32000, Value::Null),
        (_, "initialize") => Reply::result(seen, initialize_result("2025-11-25", json!({}))),
        _ => Reply::accepted(),
    })
    .await
}

/// The era is probed once, by one of several concurrent clients, and stored in a file.
#[tokio::test]
async fn era_is_probed_once() {
    let server = legacy_server().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verdicts.json");
    let verdicts = EraCache::in_file(&file).unwrap();
    let connecting = (0..5).map(|_| {
        let builder = Client::builder("t", "1").era_cache(verdicts.clone());
        builder.connect(&server.url)
    });
    for client in futures_util::future::join_all(connecting).await {
        client.unwrap().close().await;
    }
    assert_eq!(server.of("server/discover").len(), 1);
    assert_eq!(server.of("initialize").len(), 5);
    drop(verdicts);

    let again = EraCache::in_file(&file).unwrap();
    let builder = Client::builder("t", "1").era_cache(again.clone());
    builder.connect(&server.url).await.unwrap();
    assert_eq!(server.of("server/discover").len(), 1);
    // Another credential may select another server behind the same URL.
    let builder = Client::builder("t", "1")
        .era_cache(again)
        .header("Authorization", "Bearer secret");
    builder.connect(&server.url).await.unwrap();
    assert_eq!(server.of("server/discover").len(), 2);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("secret"));
}

/// Eras that are learned at the same time are all saved, although not each causes a write.
#[tokio::test]
async fn eras_learned_at_the_same_time_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verdicts.json");
    let verdicts = EraCache::in_file(&file).unwrap();
    for _ in 0..3 {
        let server = legacy_server().await;
        let builder = Client::builder("t", "1").era_cache(verdicts.clone());
        builder.connect(&server.url).await.unwrap().close().await;
    }
    let saved = || {
        let text = std::fs::read_to_string(&file).unwrap();
        let saved: Value = serde_json::from_str(&text).unwrap();
        saved.as_object().unwrap().len()
    };
    let all = async {
        while saved() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .unwrap();
}

/// An unreachable server leaves no entry, and the next client may probe it.
#[tokio::test]
async fn unreachable_server_leaves_no_entry() {
    let verdicts = EraCache::new();
    let server = HttpServer::start(|_| Reply::Empty(503, Vec::new())).await;
    for asked in 1..3 {
        let builder = Client::builder("t", "1").era_cache(verdicts.clone());
        let failed = builder.connect(&server.url).await.unwrap_err();
        assert!(matches!(failed, ClientError::Refused { .. }), "{failed:?}");
        assert_eq!(server.seen().len(), asked);
    }
}
