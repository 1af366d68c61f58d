//! What is demanded of servers and clients, and what a server is told about clients.

use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::{Map, json};

use crate::place::{client, first_message, gateway, tools};

/// A server that lacks a capability that the config demands is not used, and the others are; who
/// asks is told which capability it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_must_have_what_is_required() {
    for era in ["2025-11-25", "2026-07-28"] {
        let text = format!(
            "[servers.fit]\nbuiltin = \"everything\"\nera = \"{era}\"\nrequire = [\"tools\", \"prompts.listChanged\"]\n\
             [servers.unfit]\nbuiltin = \"everything\"\nera = \"{era}\"\nrequire = [\"tools\", \"experimental.magic\"]\n"
        );
        let (_gateway, origin) = gateway(&text).await;
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let what = format!("{revision} at {era}");
            let connected = client(revision).connect(format!("{origin}/mcp")).await;
            let connected = connected.unwrap();
            let all = tools(&connected).await;
            assert!(all.contains(&"fit__echo".to_owned()), "{what}: {all:?}");
            let is_unfit = |name: &String| name.starts_with("unfit");
            assert!(!all.iter().any(is_unfit), "{what}: {all:?}");
            let refused = connected
                .call_tool("unfit__echo", json!({"text": "x"}))
                .await;
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("experimental.magic"), "{what}: {why}");
            connected.close().await;
            let why = first_message(&origin, "/servers/unfit/mcp", revision).await;
            assert!(why.contains("experimental.magic"), "{what}: {why}");
        }
    }
}

/// A client that lacks a capability that the config demands is refused by name, in both eras and at
/// every address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_must_have_what_is_required() {
    let text = "require = [\"elicitation\"]\n[servers.a]\nbuiltin = \"everything\"\n";
    let (_gateway, origin) = gateway(text).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for path in ["/mcp", "/servers/a/mcp"] {
            let url = format!("{origin}{path}");
            let why = first_message(&origin, path, revision).await;
            assert!(why.contains("elicitation"), "{revision} {path}: {why}");
            let able = client(revision).on_elicitation(|_| async { Ok(ElicitResult::decline()) });
            let able = able.connect(url).await.unwrap();
            assert!(!tools(&able).await.is_empty(), "{revision} {path}");
            able.close().await;
        }
    }
}

const ASKS: &str = "test_input_required_result_elicitation";

/// A server that everybody shares is told what the config declares and may ask it; a client that did
/// not declare it is not asked. Without `declare` nobody is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_singleton_is_told_what_is_declared() {
    let text = "[servers.told]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\nstrategy = \"singleton\"\ndeclare = [\"elicitation\"]\n\
                [servers.untold]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\nstrategy = \"singleton\"\n";
    let (_gateway, origin) = gateway(text).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let able = client(revision).on_elicitation(|_| async {
            let answer = Map::from_iter([("name".to_owned(), json!("Ann"))]);
            Ok(ElicitResult::accept(answer))
        });
        let able = able.connect(format!("{origin}/mcp")).await.unwrap();
        let greeted = able.call_tool(&format!("told__{ASKS}"), json!({})).await;
        assert_eq!(greeted.unwrap().all_text(), "Hello, Ann!", "{revision}");
        let unasked = able.call_tool(&format!("untold__{ASKS}"), json!({})).await;
        assert!(unasked.map_or(true, |result| result.failed()), "{revision}");
        let bare = client(revision)
            .connect(format!("{origin}/mcp"))
            .await
            .unwrap();
        let unasked = bare.call_tool(&format!("told__{ASKS}"), json!({})).await;
        assert!(unasked.map_or(true, |result| result.failed()), "{revision}");
        able.close().await;
        bare.close().await;
    }
}
