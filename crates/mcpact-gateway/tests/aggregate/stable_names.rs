//! Public names stay stable when servers are added, removed or replaced.

use std::sync::Arc;

use mcpact::model::ToolResult;
use mcpact::server::{NoArgs, Server};
use mcpact_config::ToolFilter;
use mcpact_gateway::{Aggregator, Cache, ServerEntry};
use mcpact_sim::scripted::serve;
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::mixed_era_subscriptions::ERAS;
use crate::scripted_process::{PATIENCE, ScriptedProcess, impatient};
use crate::targets::{in_memory, upstream};
use crate::wire::Wire;

/// Server with a tool and a prompt that return its name.
fn script(era: Era, name: &str) -> ScriptedProcess {
    let script = ScriptedProcess::new(era, &json!({"tools": {}, "prompts": {}}));
    let text = json!({"type": "text", "text": name});
    let complete = |member: &str, value: Value| json!({"resultType": "complete", member: value});
    script.answers("tools-call", &complete("content", json!([&text])));
    script.answers(
        "prompts-list",
        &complete("prompts", json!([{"name": "one"}])),
    );
    let said = json!([{"role": "user", "content": text}]);
    script.answers("prompts-get", &complete("messages", said));
    script
}

/// Entry of a server without a name prefix.
fn flat(script: &ScriptedProcess, name: &str) -> Arc<ServerEntry> {
    script.member_called(name, "")
}

async fn wire_of(aggregator: &Arc<Aggregator>, era: Era) -> Wire {
    match era {
        Era::Legacy => Wire::legacy(aggregator, &json!({})).await,
        Era::Modern => Wire::modern(aggregator, &json!({})),
    }
}

async fn listed(wire: &mut Wire, kind: &str) -> Vec<String> {
    let answer = wire.ask(&format!("{kind}/list"), json!({})).await;
    let things = answer["result"][kind].as_array().unwrap().iter();
    things
        .map(|thing| thing["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Lists tools until the condition holds.
async fn until_listed(wire: &mut Wire, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
    let listing = async {
        loop {
            let tools = listed(wire, "tools").await;
            if is_so(&tools) {
                return tools;
            }
        }
    };
    tokio::time::timeout(PATIENCE, listing).await.unwrap()
}

/// Calls a tool; returns the text of the result or the error.
async fn answering(wire: &mut Wire, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    let answer = wire.ask("tools/call", params).await;
    let message = &answer["result"]["content"][0]["text"];
    let message = message
        .as_str()
        .or_else(|| answer["error"]["message"].as_str());
    message.unwrap_or_default().to_owned()
}

async fn prompting(wire: &mut Wire, prompt: &str) -> Value {
    let answer = wire.ask("prompts/get", json!({"name": prompt})).await;
    answer["result"]["messages"][0]["content"]["text"].clone()
}

/// A server that becomes available later does not take over names in use: its names get a hash, and both servers can be
/// used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_server_does_not_take_over_names_in_use() {
    for era in [Era::Legacy, Era::Modern] {
        for client in ERAS {
            let (late, early) = (script(era, "late"), script(era, "early"));
            late.put("broken", "");
            let aggregator = aggregator(vec![flat(&late, "a"), flat(&early, "b")]);
            let mut first = wire_of(&aggregator, client).await;
            assert_eq!(listed(&mut first, "tools").await, ["one"]);
            assert_eq!(listed(&mut first, "prompts").await, ["one"]);
            assert_eq!(answering(&mut first, "one").await, "early");
            late.remove("broken");

            let mut second = Wire::modern(&aggregator, &json!({"roots": {}}));
            let tools = until_listed(&mut second, |tools| tools.len() == 2).await;
            assert!(tools[0].starts_with("one_"), "{tools:?}");
            assert_eq!(tools[1], "one");
            let prompts = listed(&mut second, "prompts").await;
            for wire in [&mut first, &mut second] {
                assert_eq!(answering(wire, &tools[0]).await, "late", "{client:?}");
                assert_eq!(answering(wire, "one").await, "early", "{client:?}");
                assert_eq!(prompting(wire, "one").await, "early", "{client:?}");
                assert_eq!(prompting(wire, &prompts[0]).await, "late", "{client:?}");
            }
        }
    }
}

/// The name of a removed tool is not given to a new tool of another server; it is valid again when the tool is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_of_a_removed_tool_is_not_reused() {
    let (one, other) = (script(Era::Modern, "a"), script(Era::Modern, "b"));
    other.tools(&["two"]);
    let aggregator = impatient(vec![flat(&one, "a"), flat(&other, "b")]);
    let mut wire = Wire::modern(&aggregator, &json!({}));
    assert_eq!(listed(&mut wire, "tools").await, ["one", "two"]);
    one.tools(&["three"]);
    other.tools(&["one"]);
    let is_changed = |tools: &[String]| tools[0] == "three" && tools[1] != "two";
    let tools = until_listed(&mut wire, is_changed).await;
    assert!(tools[1].starts_with("one_"), "{tools:?}");
    assert_eq!(answering(&mut wire, &tools[1]).await, "b");
    let message = answering(&mut wire, "one").await;
    assert!(message.starts_with("Unknown tool: `one`"), "{message}");
    assert!(message.contains(&tools[1]), "{message}");
    one.tools(&["one"]);
    let back = until_listed(&mut wire, |tools| tools[0] != "three").await;
    assert_eq!(back, ["one", &tools[1]]);
    assert_eq!(answering(&mut wire, "one").await, "a");
}

/// Names of a server that is removed from the config may be reused, but not before clients are notified of changed lists.
/// Other servers keep their names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_of_a_removed_server_is_reused_after_a_notification() {
    let scripts = ["a", "b", "c"].map(|name| script(Era::Modern, name));
    let [a, b, c] = [0, 1, 2].map(|at: usize| flat(&scripts[at], ["a", "b", "c"][at]));
    let aggregator = aggregator(vec![a, Arc::clone(&b)]);
    let mut wire = Wire::legacy(&aggregator, &json!({})).await;
    let before = listed(&mut wire, "tools").await;
    assert_eq!(answering(&mut wire, "one").await, "a");
    aggregator.replace(vec![Arc::clone(&b), c], "__");
    let params = json!({"name": "one", "arguments": {}});
    let id = wire.begin("tools/call", params).await;
    let mut is_notified = false;
    let answer = loop {
        let received = wire.recv().await;
        is_notified |= received["method"] == "notifications/tools/list_changed";
        if received["id"] == id {
            break received;
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "c", "{answer}");
    assert!(
        is_notified,
        "the notification comes before the result of another server"
    );
    assert_eq!(listed(&mut wire, "tools").await, [&*before[1], "one"]);
    aggregator.replace(vec![b], "__");
    let message = answering(&mut wire, "one").await;
    assert!(message.starts_with("Unknown tool: `one`"), "{message}");
    assert_eq!(answering(&mut wire, &before[1]).await, "b");
}

/// A name with a hash is valid after a restart of the gateway before the first list; so is a tool name that looks like one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_with_a_hash_is_valid_before_the_first_list() {
    for era in [Era::Legacy, Era::Modern] {
        let [one, other] = ["a", "b"].map(|name| script(era, name));
        let long = "x".repeat(80);
        one.tools(&["a/b", &long, "on_20260728"]);
        let members = || vec![one.member("a"), other.member("b")];
        let mut wire = Wire::modern(&aggregator(members()), &json!({}));
        let tools = listed(&mut wire, "tools").await;
        assert_eq!(&tools[2..], ["a__on_20260728", "b__one"]);
        for tool in &tools[..3] {
            let received = one.received("tools/call").len();
            let mut wire = Wire::modern(&aggregator(members()), &json!({}));
            assert_eq!(answering(&mut wire, tool).await, "a", "{tool}");
            let calls = one.received("tools/call");
            assert_eq!(calls.len(), received + 1, "{tool}");
        }
        let calls = one.received("tools/call");
        let called: Vec<&Value> = calls.iter().map(|call| &call["params"]["name"]).collect();
        assert_eq!(called, ["a/b", &*long, "on_20260728"]);
    }
}

/// Server in this process without a name prefix; its tool returns its name.
fn local(name: &'static str) -> Arc<ServerEntry> {
    let target = in_memory(move || {
        let returns_name = move |_: NoArgs, _| async move { Ok(ToolResult::text(name)) };
        serve(Server::new(name, "1").tool(name, "Returns its name", returns_name))
    });
    let (tools, cache) = (ToolFilter::default(), Cache::disabled());
    ServerEntry::with(name, "", Vec::new(), tools, upstream(target), &cache)
}

/// Calls succeed while a server is replaced by another one of the same name, also if only the lists assign a name to a
/// server.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_succeed_while_servers_are_replaced() {
    let stays = local("stays");
    let aggregator = aggregator(vec![Arc::clone(&stays), local("turns")]);
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for caller in 0..4 {
        let (aggregator, answered) = (Arc::clone(&aggregator), answered.clone());
        tokio::spawn(async move {
            let era = [Era::Legacy, Era::Modern][caller % 2];
            let mut wire = wire_of(&aggregator, era).await;
            for call in 0..200 {
                let tool = ["stays", "turns"][call % 2];
                let message = answering(&mut wire, tool).await;
                // The receiver is dropped after a failure.
                let _ = answered.send((tool, message));
            }
        });
    }
    drop(answered);
    while let Some((tool, message)) = answers.recv().await {
        assert_eq!(message, tool);
        aggregator.replace(vec![Arc::clone(&stays), local("turns")], "__");
    }
}
