//! Required capabilities of servers and clients, and declared capabilities of clients.

use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::{Map, json};

use crate::harness::{client, first_message, gateway, tools};

/// A server without a required capability is not used, and errors name the capability; other servers are not affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_a_required_capability_are_not_used() {
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

/// A client without a required capability is refused by name, in both eras and at every endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_without_a_required_capability_are_refused() {
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

/// A shared server receives the capabilities that `declare` lists and may ask for them; a client that did not declare
/// them is not asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singletons_receive_the_declared_capabilities() {
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
