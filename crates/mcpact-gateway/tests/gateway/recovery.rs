//! A server that dies when it is called.

use std::time::Duration;

use mcpact::client::Client;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{MORTAL, client, gateway, get};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of everything, whose server has died, as the gateway knows.
async fn bereaved(gateway: &Gateway, origin: &str) -> Client {
    let connected = client(Revision::V2025_11_25)
        .connect(format!("{origin}/mcp"))
        .await;
    let connected = connected.unwrap();
    connected.call_tool("m__die", json!({})).await.unwrap_err();
    // A caller is told before it is noted.
    let is_noted = || {
        let status = gateway.status(Some("m")).unwrap();
        status.servers[0].last_error.is_some()
    };
    let noted = async {
        while !is_noted() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.unwrap();
    connected
}

/// G15, G11, O5: who is suspended because it died is named to those who come and to those who call what is
/// not there, with how it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_suspended_is_named() {
    let catalog = format!(
        "{MORTAL}failures = 1\nsuspend_seconds = 600\n[servers.well]\nbuiltin = \"everything\"\n"
    );
    let (gateway, origin) = gateway(&catalog).await;
    let bereaved = bereaved(&gateway, &origin).await;
    let named = "`m` is missing: the server process ended (exit status: 5)";
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let next = client(revision).connect(format!("{origin}/mcp")).await;
        let next = next.unwrap();
        let told = next.instructions().unwrap_or_default().to_owned();
        assert!(told.contains(named), "{revision}: {told}");
    }
    let unknown = bereaved.call_tool("m__nothing", json!({})).await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("exit status: 5"), "{unknown}");
    let ready = get(&origin, "/readyz", "").await;
    assert!(ready.contains("\"state\":\"suspended\""), "{ready}");
}

/// G11, O5: who is suspended is tried again without being called, so that a gateway that is not ready for it
/// becomes ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_suspended_comes_back() {
    let catalog = format!("{MORTAL}failures = 1\nsuspend_seconds = 1\n");
    let (gateway, origin) = gateway(&catalog).await;
    let _bereaved = bereaved(&gateway, &origin).await;
    let ready = async {
        while !get(&origin, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 200")
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.unwrap();
    let starts = gateway.status(None).unwrap().servers[0].starts;
    assert!(starts > 1, "somebody has tried");
}
