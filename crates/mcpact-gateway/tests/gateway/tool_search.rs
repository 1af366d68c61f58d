//! Search mode: few listed tools, and the others by search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpact::client::{CallOptions, Client, TaskOptions};
use mcpact::model::ElicitResult;
use mcpact_sim::scripted::message::initialize;
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

use crate::harness::{client, gateway, post, tools};

const OWN: [&str; 3] = ["search_tools", "describe_tool", "call_tool"];

const TEXT: &str = "[gateway.tools]\npinned = [\"a__greet\"]\n\
    [servers.a]\nbuiltin = \"everything\"\ntags = [\"x\"]\n\
    [servers.b]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\nhidden_tools = [\"echo\"]\n";

/// Tool of the demo server that asks for a name.
const ASKS: &str = "test_input_required_result_elicitation";

/// Calls a tool of the gateway; returns its text.
async fn said(client: &Client, tool: &str, arguments: Value) -> String {
    client.call_tool(tool, arguments).await.unwrap().all_text()
}

async fn connect(revision: Revision, url: String, headers: &[(&str, &str)]) -> Client {
    let builder = headers
        .iter()
        .fold(client(revision), |builder, (name, value)| {
            builder.header(*name, *value)
        });
    builder.connect(url).await.unwrap()
}

/// Header and URL select search; every tool is found, described and callable, by `call_tool` and by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlisted_tools_are_found_and_called() {
    let (_gateway, origin) = gateway(TEXT).await;
    for revision in Revision::ALL {
        let ways: [(_, &[(&str, &str)]); 4] = [
            ("/mcp", &[("Mcpact-Tools", "search")]),
            ("/mcp?tools=search", &[]),
            ("/tags/x/mcp", &[("Mcpact-Tools", "search")]),
            ("/tags/x/mcp?tools=search", &[("Mcpact-Tools", "search")]),
        ];
        for (path, headers) in ways {
            let what = format!("{revision} {path}");
            let client = connect(revision, format!("{origin}{path}"), headers).await;
            let listed = tools(&client).await;
            assert_eq!(listed[..3], OWN, "{what}");
            assert_eq!(listed[3..], ["a__greet"], "{what}");
            let found = said(&client, "search_tools", json!({"query": "echoes a text"})).await;
            let echo = found.lines().find(|line| line.starts_with("a__echo(text)"));
            assert!(echo.is_some(), "{what}: {found}");
            assert!(found.lines().count() <= 5, "{what}: {found}");
            let found = json!({"query": "echo", "limit": 1});
            let found = said(&client, "search_tools", found).await;
            assert_eq!(found.lines().count(), 1, "{what}: {found}");
            let described = said(&client, "describe_tool", json!({"name": "a__echo"})).await;
            let described: Value = serde_json::from_str(&described).unwrap();
            assert_eq!(described["name"], "a__echo", "{what}");
            let properties = &described["inputSchema"]["properties"];
            assert!(properties["text"].is_object(), "{what}: {described}");
            let call = json!({"name": "a__echo", "arguments": {"text": "Hi"}});
            assert_eq!(said(&client, "call_tool", call).await, "Hi", "{what}");
            let direct = said(&client, "a__echo", json!({"text": "Ho"})).await;
            assert_eq!(direct, "Ho", "{what}");
            client.close().await;
        }
        let all = connect(revision, format!("{origin}/mcp?tools=all"), &[]).await;
        let listed = tools(&all).await;
        assert!(!listed.contains(&OWN[0].to_owned()), "{listed:?}");
        assert!(listed.contains(&"a__echo".to_owned()), "{listed:?}");
        let unknown = all.call_tool(OWN[0], json!({"query": "echo"})).await;
        assert!(unknown.is_err(), "{unknown:?}");
        all.close().await;
    }
}

/// What holds for a direct call holds for one by `call_tool`: hidden tools, required capabilities, errors, questions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indirect_calls_are_treated_as_direct_ones() {
    let text = format!("{TEXT}needs = {{ \"greet\" = [\"elicitation\"] }}\n");
    let (_gateway, origin) = gateway(&text).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let url = format!("{origin}/mcp?tools=search");
        let bare = connect(revision, url.clone(), &[]).await;
        for name in ["b__echo", "b__greet"] {
            let query = json!({"query": "b greet echo", "limit": 50});
            let found = said(&bare, "search_tools", query).await;
            assert!(
                found.contains("b__") && found.contains("a__echo("),
                "{found}"
            );
            assert!(!found.contains(&format!("{name}(")), "{found}");
            let described = bare.call_tool("describe_tool", json!({"name": name})).await;
            let described = described.unwrap_err().to_string();
            assert!(described.contains("Unknown tool"), "{described}");
        }
        for name in ["b__echo", "b__greet", "a__nothing", "nothing"] {
            let direct = bare.call_tool(name, json!({})).await;
            let indirect = bare.call_tool("call_tool", json!({"name": name})).await;
            let (direct, indirect) = (direct.unwrap_err(), indirect.unwrap_err());
            assert_eq!(direct.to_string(), indirect.to_string(), "{revision}");
        }
        for (tool, arguments) in [
            ("search_tools", json!({})),
            ("search_tools", json!({"query": "x", "limit": 0})),
            ("search_tools", json!({"query": "x", "limit": "5"})),
            ("describe_tool", json!({"query": "x"})),
            ("call_tool", json!({"tool": "a__echo"})),
            ("call_tool", json!({"name": "a__echo", "arguments": "{}"})),
            ("call_tool", json!({"name": "call_tool"})),
        ] {
            let invalid = bare.call_tool(tool, arguments.clone()).await.unwrap();
            assert!(invalid.failed(), "{tool} {arguments}: {invalid:?}");
        }
        bare.close().await;
        let able = client(revision).on_elicitation(|_| async {
            let answer = Map::from_iter([("name".to_owned(), json!("Ann"))]);
            Ok(ElicitResult::accept(answer))
        });
        let able = able.connect(url).await.unwrap();
        for server in ["a", "b"] {
            let call = json!({"name": format!("{server}__{ASKS}")});
            let greeted = said(&able, "call_tool", call).await;
            assert_eq!(greeted, "Hello, Ann!", "{revision} {server}");
        }
        let query = json!({"query": "b__greet", "limit": 50});
        let found = said(&able, "search_tools", query).await;
        assert!(found.contains("b__greet("), "{found}");
        able.close().await;
    }
}

/// The config sets the mode of clients that choose none; a legacy session keeps that of its `initialize`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_keep_their_mode() {
    for (usual, other) in [("all", "search"), ("search", "all")] {
        let text = TEXT.replace("pinned", &format!("mode = \"{usual}\"\npinned"));
        let (_gateway, origin) = gateway(&text).await;
        for (chosen, path) in [
            (usual, "/mcp".to_owned()),
            (other, format!("/mcp?tools={other}")),
            (other, format!("/tags/x/mcp?tools={other}")),
        ] {
            let hello = initialize(1, "2025-11-25", json!({})).to_string();
            let answer = post(&origin, &path, "", &hello).await;
            let lower = answer.to_ascii_lowercase();
            let mut lines = lower.lines();
            let id = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
            let id = id.unwrap().trim();
            let plain = path.split('?').next().unwrap();
            for header in [String::new(), format!("Mcpact-Tools: {usual}\r\n")] {
                let headers =
                    format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n{header}");
                let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
                let listed = post(&origin, plain, &headers, list).await;
                let is_search = listed.contains("\"search_tools\"");
                assert_eq!(is_search, chosen == "search", "{path} {header}: {listed}");
                assert!(listed.contains("\"a__greet\""), "{listed}");
            }
        }
    }
}

/// Invalid modes are refused with the valid ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_modes_are_refused() {
    let (_gateway, origin) = gateway(TEXT).await;
    let hello = initialize(1, "2025-11-25", json!({})).to_string();
    for (path, headers) in [
        ("/mcp?tools=few", ""),
        ("/mcp", "Mcpact-Tools: Search\r\n"),
        ("/mcp?tools=all", "Mcpact-Tools: search\r\n"),
        ("/tags/x/mcp?tools=", ""),
        ("/servers/a/mcp?tools=search", ""),
    ] {
        let refused = post(&origin, path, headers, &hello).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{path}: {refused}");
        assert!(refused.contains("tools_unclear"), "{path}: {refused}");
        assert!(refused.contains("search"), "{path}: {refused}");
    }
}

/// Progress and tasks of an indirect call reach the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indirect_calls_have_progress_and_tasks() {
    let (_gateway, origin) = gateway(TEXT).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder = match revision {
            Revision::V2026_07_28 => client(revision).tasks(),
            _ => client(revision),
        };
        let connected = builder.connect(format!("{origin}/mcp?tools=search")).await;
        let connected = connected.unwrap();
        for server in ["a", "b"] {
            let what = format!("{revision} {server}");
            let seen = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&seen);
            let options = CallOptions::new().on_progress(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
            let call = json!({"name": format!("{server}__test_tool_with_progress")});
            let called = connected.call_tool_with("call_tool", call, options).await;
            assert!(!called.unwrap().failed(), "{what}");
            assert!(seen.load(Ordering::Relaxed) > 0, "{what}");
            let slow = format!("{server}__slow_compute");
            let slow = json!({"name": slow, "arguments": {"seconds": 0.05}});
            let task = connected.call_tool_as_task("call_tool", slow, TaskOptions::new());
            let task = task.await.unwrap();
            assert!(task.task().is_some(), "{what}");
            let computed = task.result().await.unwrap().all_text();
            assert_eq!(computed, "Computed for 0.05 seconds.", "{what}");
        }
        connected.close().await;
    }
}
