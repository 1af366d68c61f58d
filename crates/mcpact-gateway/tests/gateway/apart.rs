//! Clients of a server that keeps something of each.

use std::time::Duration;

use mcpact::client::Client;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{MORTAL, client, gateway, modern_mortal, post};

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

/// How many instances run.
fn instances(gateway: &Gateway) -> usize {
    let status = gateway.status(None).unwrap();
    let all = status.servers.iter().flat_map(|server| &server.instances);
    all.filter(|instance| !matches!(instance.state.as_str(), "stopped" | "failed"))
        .count()
}

/// A client of 2026-07-28 that has neither session nor connection has an instance for itself by the key
/// that it sends, wherever it comes in; those that send none share one. A program of either era serves it so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_tells_clients_apart() {
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

/// A client that has a session has an instance for itself, of a program of either era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_tells_clients_apart() {
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

/// A key that is none is refused, with what a key is; for clients that have a session, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_a_form() {
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

/// Whoever has a WebSocket has an instance for itself, for as long as it stays.
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
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, gone).await;
        assert!(waited.is_ok(), "{:#?}", gateway.status(None));
    }
    assert_eq!(who(&ann, "m__who").await.unwrap(), mine);
}

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills the process that answered, and waits until the gateway knows.
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

/// A client whose instance has ended by itself is told once that what was in it is gone: by the call that was
/// lost with it, or else by the next one, which is not made. The call after that starts afresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_that_its_state_is_gone() {
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
            // What does not rest on it does not count as told.
            ann.list_tools().await.unwrap();
            let error = ann.call_tool(&who_tool, json!({})).await.unwrap_err();
            let told = error.to_string();
            for words in [
                "what the server kept for this client is gone, and this call was not made",
                "call again to start afresh",
            ] {
                assert!(told.contains(words), "{what}: {told}");
            }
            let second = who(&ann, &who_tool).await.unwrap();
            assert_ne!(first, second, "{what}");
            let told = who(&ann, &die_tool).await.unwrap_err();
            let lost = "what the server kept for this client is gone, and the call is lost";
            assert!(told.contains(lost), "{what}: {told}");
            let third = who(&ann, &who_tool).await.unwrap();
            assert_ne!(second, third, "{what}: it knows");
        }
    }
}

/// Who shares an instance has nothing in it, and is told nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_shares_an_instance_loses_nothing_with_it() {
    let (gateway, origin) = gateway(&format!("{MORTAL}strategy = \"stateful\"\n")).await;
    let connected = client(Revision::V2026_07_28);
    let connected = connected.connect(format!("{origin}/mcp")).await.unwrap();
    let first = who(&connected, "m__who").await.unwrap();
    kill(&gateway, &first).await;
    assert_ne!(who(&connected, "m__who").await.unwrap(), first);
}

/// A state is good for whoever sends the key that it was given out under, and for nobody else: neither for another
/// key nor for none. Whoever it belongs to can still use it after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_belongs_to_its_key() {
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
