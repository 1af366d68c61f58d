//! Another catalog for a gateway that runs.

use std::time::Duration;

use mcpact::client::Watch;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{CATALOG, UNGUARDED, catalog, client, gateway, tools};

/// G19: a new catalog takes effect for clients that are there; they are told, and what did not change
/// goes on undisturbed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_catalog_takes_effect_while_clients_stay() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (gateway, origin) = gateway(CATALOG).await;
        let connected = client(revision).connect(format!("{origin}/mcp")).await;
        let connected = connected.unwrap();
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        assert!(tools(&connected).await.contains(&"new__echo".to_owned()));
        let alone = client(revision).connect(format!("{origin}/servers/old/mcp"));
        let alone = alone.await.unwrap();
        let next = CATALOG.replace("[servers.new]", "[servers.newer]");
        let next = next.replace(
            "tags = [\"calm\"]",
            "tags = [\"calm\"]\nprefix = \"ancient\"",
        );
        let changed = gateway.change(catalog(&next)).unwrap();
        assert_eq!((changed.added.len(), changed.removed.len()), (1, 1));
        assert_eq!(changed.changed.len(), 1);
        let told = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
        assert!(told.unwrap().is_some());
        let after = tools(&connected).await;
        for (name, is_there) in [
            ("newer__echo", true),
            ("new__echo", false),
            ("ancient__echo", true),
            ("old__echo", false),
            ("late__echo", true),
        ] {
            assert_eq!(after.contains(&name.to_owned()), is_there, "{name}");
            let echoed = connected.call_tool(name, json!({"text": name})).await;
            assert_eq!(echoed.is_ok(), is_there, "{name}");
        }
        // Its server has another prefix now.
        let echoed = alone.call_tool("echo", json!({"text": "still here"})).await;
        assert_eq!(echoed.unwrap().all_text(), "still here");
        alone.close().await;
        connected.close().await;
    }
}

/// G19: a catalog that cannot be served changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalog_that_cannot_be_served_changes_nothing() {
    let (gateway, origin) = gateway(CATALOG).await;
    let error = gateway.change(catalog(UNGUARDED)).unwrap_err().to_string();
    assert!(error.contains("server `new` cannot be confined"), "{error}");
    let connected = client(Revision::LATEST)
        .connect(format!("{origin}/mcp"))
        .await;
    assert!(
        tools(&connected.unwrap())
            .await
            .contains(&"new__echo".to_owned())
    );
}
