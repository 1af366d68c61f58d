//! Client capabilities that no table knows.

use mcpact_sim::scripted::{TestClient, message::tool};
use mcpact_spec::Revision;
use serde_json::json;

use crate::scripted_server::{Role, ScriptedServer};
use crate::upstream;

use Revision::{V2025_06_18, V2025_11_25};

/// N18, N22: experimental and unknown capabilities of clients of both eras reach a legacy server; an experimental `true`
/// becomes an object.
#[tokio::test(start_paused = true)]
async fn experimental_and_unknown_capabilities_reach_legacy_servers() {
    let declared = json!({
        "roots": {}, "experimental": {"x": {"a": 1}, "y": true}, "vendor": {"z": [1, 2]},
    });
    let mut expected = declared.clone();
    expected["experimental"]["y"] = json!({});
    for server in [V2025_06_18, V2025_11_25] {
        for client in [Some("2025-06-18"), Some("2025-11-25"), None] {
            let mut scripted = ScriptedServer::lines(Role::new(server));
            let bridge = upstream(&scripted);
            let mut peer = match client {
                Some(version) => TestClient::legacy(&bridge, version, declared.clone()).await,
                None => TestClient::modern(&bridge, declared.clone()),
            };
            peer.request(1, "tools/call", tool("t")).await;
            scripted.expect("tools/call").await.text("done");
            let handshakes = scripted.handshakes();
            let opening = handshakes
                .iter()
                .find(|said| said["method"] == "initialize");
            let shown = &opening.unwrap()["params"]["capabilities"];
            assert_eq!(shown, &expected, "{client:?} before {server}");
        }
    }
}
