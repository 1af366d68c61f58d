//! Clients of a server that keeps something of each.

use mcpact::client::Client;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{MORTAL, client, gateway, post};

fn server() -> String {
    format!("{MORTAL}strategy = \"stateful\"\nmax_instances = 3\nqueue = 0\n")
}

async fn who(client: &Client, tool: &str) -> Result<String, String> {
    let told = client.call_tool(tool, json!({})).await;
    told.map(|result| result.all_text())
        .map_err(|error| error.to_string())
}

/// How many instances run.
fn instances(gateway: &Gateway) -> usize {
    let status = gateway.status(None).unwrap();
    let all = status.servers.iter().flat_map(|server| &server.instances);
    all.filter(|instance| instance.state != "stopped").count()
}

/// G12: a client of 2026-07-28 that has neither session nor connection has an instance for itself by the key
/// that it sends, wherever it comes in; those that send none share one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_tells_clients_apart() {
    let (gateway, origin) = gateway(&server()).await;
    let mut told = Vec::new();
    for (path, tool) in [("/mcp", "m__who"), ("/servers/m/mcp", "who")] {
        for key in [Some("ann"), Some("bob"), None, None] {
            let mut builder = client(Revision::V2026_07_28);
            if let Some(key) = key {
                builder = builder.header("Mcpact-Key", key);
            }
            let connected = builder.connect(format!("{origin}{path}")).await.unwrap();
            told.push(who(&connected, tool).await.unwrap());
        }
    }
    let [ann, bob, other] = [0, 1, 2].map(|at| told[at].clone());
    assert!(ann != bob && bob != other && other != ann, "{told:?}");
    assert_eq!(told[3], other, "{told:?}");
    assert_eq!(told[..4], told[4..], "the same at both addresses");
    assert_eq!(instances(&gateway), 3);
}

/// G12, O5: a key that is none is refused, with what a key is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_a_form() {
    let (_gateway, origin) = gateway(&server()).await;
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let long = "k".repeat(129);
    for keys in [&["two words"][..], &["ö"], &[""], &["a", "b"], &[&long]] {
        let keys = keys.iter().map(|key| format!("Mcpact-Key: {key}\r\n"));
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n{}",
            keys.collect::<String>()
        );
        let answer = post(&origin, "/mcp", &headers, &body.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers}: {answer}");
        for words in ["\"id\":7", "`Mcpact-Key`", "128 visible ASCII characters"] {
            assert!(answer.contains(words), "{headers}: {answer}");
        }
    }
}

/// G12: whoever has a WebSocket has an instance for itself, for as long as it stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_tells_clients_apart() {
    let (gateway, origin) = gateway(&format!("websocket = true\n{}", server())).await;
    let url = origin.replace("http://", "ws://") + "/ws";
    let connect = || client(Revision::V2026_07_28).connect(url.clone());
    let ann = connect().await.unwrap();
    let mine = who(&ann, "m__who").await.unwrap();
    for _ in 0..2 * 3 {
        let bob = connect().await.unwrap();
        assert_ne!(who(&bob, "m__who").await.unwrap(), mine);
        bob.close().await;
        let gone = async {
            while instances(&gateway) > 1 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let limit = std::time::Duration::from_secs(60);
        let waited = tokio::time::timeout(limit, gone).await;
        assert!(waited.is_ok(), "{:#?}", gateway.status(None));
    }
    assert_eq!(who(&ann, "m__who").await.unwrap(), mine);
}
