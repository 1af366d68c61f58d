//! Clients of a server that keeps state per client.

use std::time::Duration;

use mcpact::client::Client;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{MORTAL, client, gateway, modern_mortal, post};

fn server() -> String {
    stateful(MORTAL)
}

fn stateful(program: &str) -> String {
    format!("{program}strategy = \"stateful\"\nmax_instances = 3\nqueue = 0\n")
}

async fn who(client: &Client, tool: &str) -> Result<String, String> {
    let told = client.call_tool(tool, json!({})).await;
    told.map(|result| result.all_text())
        .map_err(|error| error.to_string())
}

/// Returns the number of running instances.
fn instances(gateway: &Gateway) -> usize {
    let status = gateway.status(None).unwrap();
    let all = status.servers.iter().flat_map(|server| &server.instances);
    all.filter(|instance| !matches!(instance.state.as_str(), "stopped" | "failed"))
        .count()
}

/// A client of 2026-07-28 without session or connection gets its own instance by the key that it sends, at every
/// endpoint; clients without a key share one. Servers of both eras behave alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_key_selects_the_instance() {
    for program in [MORTAL, &modern_mortal()] {
        let (gateway, origin) = gateway(&stateful(program)).await;
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
}

/// A client with a session gets its own instance of a server of either era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_has_its_own_instance() {
    for program in [MORTAL, &modern_mortal()] {
        for (path, tool) in [("/mcp", "m__who"), ("/servers/m/mcp", "who")] {
            let (_gateway, origin) = gateway(&stateful(program)).await;
            let connect = || client(Revision::V2025_11_25).connect(format!("{origin}{path}"));
            let [ann, bob] = [connect().await.unwrap(), connect().await.unwrap()];
            let mut told = Vec::new();
            for one in [&ann, &bob, &ann, &bob] {
                told.push(who(one, tool).await.unwrap());
            }
            assert_ne!(told[0], told[1], "{told:?}");
            assert_eq!(told[..2], told[2..], "each comes back to its own");
        }
    }
}

/// An invalid key is rejected with a description of valid keys, also for clients with a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_client_keys_are_rejected() {
    let (_gateway, origin) = gateway(&server()).await;
    let info = json!({"name": "raw", "version": "1"});
    let modern = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": info,
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let legacy = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let long = "k".repeat(129);
    for keys in [&["two words"][..], &["ö"], &[""], &["a", "b"], &[&long]] {
        let keys = keys.iter().map(|key| format!("Mcpact-Key: {key}\r\n"));
        let keys = keys.collect::<String>();
        for (headers, body) in [(headers, &modern), ("", &legacy)] {
            let headers = format!("{headers}{keys}");
            let answer = post(&origin, "/mcp", &headers, &body.to_string()).await;
            assert!(answer.starts_with("HTTP/1.1 400"), "{headers}: {answer}");
            for words in ["\"id\":7", "`Mcpact-Key`", "128 visible ASCII characters"] {
                assert!(answer.contains(words), "{headers}: {answer}");
            }
        }
    }
}

/// A WebSocket client keeps its own instance while it is connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_websocket_has_its_own_instance() {
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
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, gone).await;
        assert!(waited.is_ok(), "{:#?}", gateway.status(None));
    }
    assert_eq!(who(&ann, "m__who").await.unwrap(), mine);
}

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills the process that answered and waits until the gateway notices.
async fn kill(gateway: &Gateway, process: &str) {
    let sent = std::process::Command::new("kill")
        .args(["-KILL", process])
        .status();
    assert!(sent.unwrap().success());
    let noted = async {
        while instances(gateway) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let noted = tokio::time::timeout(PATIENCE, noted).await;
    assert!(noted.is_ok(), "{:#?}", gateway.status(None));
}

/// After an unexpected end of its instance a client learns once that its state is lost: by the call that was lost, or else
/// by the next call, which is not sent. The call after that starts afresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_loss_is_reported_once() {
    let fast = "backoff_seconds = 0.01\nbackoff_max_seconds = 0.01\nfailures = 1000\n";
    let (old, new) = (Revision::V2025_06_18, Revision::V2026_07_28);
    let modern = modern_mortal();
    let programs = [(MORTAL, old), (MORTAL, new), (&modern, old), (&modern, new)];
    for (at, (program, revision)) in programs.into_iter().enumerate() {
        for (path, prefix) in [("/mcp", "m__"), ("/servers/m/mcp", "")] {
            let what = format!("{at}: {revision} at {path}");
            let server = format!("{program}strategy = \"stateful\"\n{fast}");
            let (gateway, origin) = gateway(&server).await;
            let builder = client(revision).header("Mcpact-Key", "ann");
            let ann = builder.connect(format!("{origin}{path}")).await.unwrap();
            let [who_tool, die_tool] = ["who", "die"].map(|tool| format!("{prefix}{tool}"));
            let first = who(&ann, &who_tool).await.unwrap();
            kill(&gateway, &first).await;
            // A call without state does not consume the report.
            ann.list_tools().await.unwrap();
            let error = ann.call_tool(&who_tool, json!({})).await.unwrap_err();
            let told = error.to_string();
            for words in [
                "the state of this client on the server is lost; the call was not sent",
                "call again; it starts with empty state",
            ] {
                assert!(told.contains(words), "{what}: {told}");
            }
            let second = who(&ann, &who_tool).await.unwrap();
            assert_ne!(first, second, "{what}");
            let told = who(&ann, &die_tool).await.unwrap_err();
            let lost = "the call and the state of this client on the server are lost";
            assert!(told.contains(lost), "{what}: {told}");
            let third = who(&ann, &who_tool).await.unwrap();
            assert_ne!(second, third, "{what}: it knows");
        }
    }
}

/// Clients of a shared instance have no state in it and get no report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_instances_report_no_state_loss() {
    let (gateway, origin) = gateway(&format!("{MORTAL}strategy = \"stateful\"\n")).await;
    let connected = client(Revision::V2026_07_28);
    let connected = connected.connect(format!("{origin}/mcp")).await.unwrap();
    let first = who(&connected, "m__who").await.unwrap();
    kill(&gateway, &first).await;
    assert_ne!(who(&connected, "m__who").await.unwrap(), first);
}

/// A request state is valid only with the key it was issued for; a rejected attempt does not invalidate it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_state_is_bound_to_the_client_key() {
    for strategy in ["stateful", "stateless"] {
        let text = format!(
            "[servers.m]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\nstrategy = \"{strategy}\"\n"
        );
        let (_gateway, origin) = gateway(&text).await;
        let name = "test_input_required_result_elicitation";
        let call = async |key: Option<&str>, more: &serde_json::Value| {
            let mut params = json!({"name": name, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
            for (member, value) in more.as_object().unwrap() {
                params[member] = value.clone();
            }
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let key = key.map(|key| format!("Mcpact-Key: {key}\r\n"));
            let headers = format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n{}",
                key.unwrap_or_default()
            );
            post(&origin, "/servers/m/mcp", &headers, &body.to_string()).await
        };
        let asked = call(Some("ann"), &json!({})).await;
        let message = asked.lines().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<serde_json::Value>(line)
                .ok()
                .filter(|one| one.is_object())
        });
        let result = message.unwrap_or_else(|| panic!("{asked}"))["result"].clone();
        let requests = result["inputRequests"].as_object().unwrap();
        let (question, _) = requests.iter().next().unwrap();
        let answer = json!({"action": "accept", "content": {"name": "Ann"}});
        let more =
            json!({"requestState": result["requestState"], "inputResponses": {question: answer}});
        for key in [Some("bob"), None] {
            let refused = call(key, &more).await;
            assert!(refused.contains("-32602"), "{strategy} {key:?}: {refused}");
        }
        let done = call(Some("ann"), &more).await;
        assert!(done.contains("Hello, Ann!"), "{strategy}: {done}");
    }
}
