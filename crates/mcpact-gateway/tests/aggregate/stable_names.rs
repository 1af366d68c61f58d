//! Names that mean what they meant, whoever comes and goes.

use std::sync::Arc;

use mcpact::model::ToolResult;
use mcpact::server::{NoArgs, Server};
use mcpact_config::ToolFilter;
use mcpact_gateway::{
    Aggregator, Cache, Local, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_spec::Era;
use mcpact_transport::memory;
use serde_json::{Value, json};

use crate::house::hub;
use crate::mixed_era_subscriptions::ERAS;
use crate::scripted::{PATIENCE, Script, Speaks, impatient};
use crate::wire::Wire;

/// A server that says its name.
fn script(era: Speaks, name: &str) -> Script {
    let script = Script::new(era, &json!({"tools": {}, "prompts": {}}));
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

/// It under its own names.
fn flat(script: &Script, name: &str) -> Arc<ServerEntry> {
    script.member_called(name, "")
}

async fn wire_of(hub: &Arc<Aggregator>, era: Era) -> Wire {
    match era {
        Era::Legacy => Wire::legacy(hub, &json!({})).await,
        Era::Modern => Wire::modern(hub, &json!({})),
    }
}

async fn listed(wire: &mut Wire, kind: &str) -> Vec<String> {
    let answer = wire.ask(&format!("{kind}/list"), json!({})).await;
    let things = answer["result"][kind].as_array().unwrap().iter();
    things
        .map(|thing| thing["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Lists tools until it is so.
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

/// Who answers to the name of a tool; the error if nobody does.
async fn answering(wire: &mut Wire, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    let answer = wire.ask("tools/call", params).await;
    let told = &answer["result"]["content"][0]["text"];
    let told = told
        .as_str()
        .or_else(|| answer["error"]["message"].as_str());
    told.unwrap_or_default().to_owned()
}

async fn prompting(wire: &mut Wire, prompt: &str) -> Value {
    let answer = wire.ask("prompts/get", json!({"name": prompt})).await;
    answer["result"]["messages"][0]["content"]["text"].clone()
}

/// A server that comes later does not get the names that clients hold, whoever lists first then: it is marked,
/// and both can be used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_later_does_not_get_the_names_that_clients_hold() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        for client in ERAS {
            let (late, early) = (script(era, "late"), script(era, "early"));
            late.put("broken", "");
            let hub = hub(vec![flat(&late, "a"), flat(&early, "b")]);
            let mut first = wire_of(&hub, client).await;
            assert_eq!(listed(&mut first, "tools").await, ["one"]);
            assert_eq!(listed(&mut first, "prompts").await, ["one"]);
            assert_eq!(answering(&mut first, "one").await, "early");
            late.remove("broken");

            let mut second = Wire::modern(&hub, &json!({"roots": {}}));
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

/// A name whose tool is gone does not lead to the tool of another server that has come by the same name, and leads
/// to its own when that is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_whose_tool_is_gone_leads_to_no_other() {
    let (one, other) = (script(Speaks::Discover, "a"), script(Speaks::Discover, "b"));
    other.tools(&["two"]);
    let hub = impatient(vec![flat(&one, "a"), flat(&other, "b")]);
    let mut wire = Wire::modern(&hub, &json!({}));
    assert_eq!(listed(&mut wire, "tools").await, ["one", "two"]);
    one.tools(&["three"]);
    other.tools(&["one"]);
    let is_changed = |tools: &[String]| tools[0] == "three" && tools[1] != "two";
    let tools = until_listed(&mut wire, is_changed).await;
    assert!(tools[1].starts_with("one_"), "{tools:?}");
    assert_eq!(answering(&mut wire, &tools[1]).await, "b");
    let told = answering(&mut wire, "one").await;
    assert!(told.starts_with("Unknown tool: `one`"), "{told}");
    assert!(told.contains(&tools[1]), "{told}");
    one.tools(&["one"]);
    let back = until_listed(&mut wire, |tools| tools[0] != "three").await;
    assert_eq!(back, ["one", &tools[1]]);
    assert_eq!(answering(&mut wire, "one").await, "a");
}

/// Names of a server that leaves the config are given anew, and nobody is led elsewhere before it was told that
/// the lists are others; whoever stays keeps its names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_given_anew_after_that_was_told() {
    let scripts = ["a", "b", "c"].map(|name| script(Speaks::Discover, name));
    let [a, b, c] = [0, 1, 2].map(|at: usize| flat(&scripts[at], ["a", "b", "c"][at]));
    let hub = hub(vec![a, Arc::clone(&b)]);
    let mut wire = Wire::legacy(&hub, &json!({})).await;
    let before = listed(&mut wire, "tools").await;
    assert_eq!(answering(&mut wire, "one").await, "a");
    hub.replace(vec![Arc::clone(&b), c], "__");
    let params = json!({"name": "one", "arguments": {}});
    let id = wire.begin("tools/call", params).await;
    let mut is_told = false;
    let answer = loop {
        let heard = wire.hear().await;
        is_told |= heard["method"] == "notifications/tools/list_changed";
        if heard["id"] == id {
            break heard;
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "c", "{answer}");
    assert!(is_told, "before anything is answered by another server");
    assert_eq!(listed(&mut wire, "tools").await, [&*before[1], "one"]);
    hub.replace(vec![b], "__");
    let told = answering(&mut wire, "one").await;
    assert!(told.starts_with("Unknown tool: `one`"), "{told}");
    assert_eq!(answering(&mut wire, &before[1]).await, "b");
}

/// A name that ends in a hash, from before the gateway was started anew, is what it was, though nobody has listed
/// anything yet; so is one that only looks like it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marked_name_is_known_before_anything_is_listed() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let [one, other] = ["a", "b"].map(|name| script(era, name));
        let long = "x".repeat(80);
        one.tools(&["a/b", &long, "on_20260728"]);
        let members = || vec![one.member("a"), other.member("b")];
        let mut wire = Wire::modern(&hub(members()), &json!({}));
        let tools = listed(&mut wire, "tools").await;
        assert_eq!(&tools[2..], ["a__on_20260728", "b__one"]);
        for tool in &tools[..3] {
            let heard = one.heard("tools/call").len();
            let mut wire = Wire::modern(&hub(members()), &json!({}));
            assert_eq!(answering(&mut wire, tool).await, "a", "{tool}");
            let calls = one.heard("tools/call");
            assert_eq!(calls.len(), heard + 1, "{tool}");
        }
        let calls = one.heard("tools/call");
        let called: Vec<&Value> = calls.iter().map(|call| &call["params"]["name"]).collect();
        assert_eq!(called, ["a/b", &*long, "on_20260728"]);
    }
}

/// A server in this process under its own names, whose tool tells its name.
fn local(name: &'static str) -> Arc<ServerEntry> {
    let target = Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        let tells = move |_: NoArgs, _| async move { Ok(ToolResult::text(name)) };
        let server = Server::new(name, "1").tool(name, "Tells its name", tells);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    })));
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let (tools, nowhere) = (ToolFilter::default(), Cache::disabled());
    ServerEntry::with(name, "", Vec::new(), tools, bridge, &nowhere)
}

/// Whoever calls while another server of the same name takes a server's place finds it, also where nothing but
/// lists can tell whose a name is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn names_are_found_while_servers_are_replaced() {
    let stays = local("stays");
    let hub = hub(vec![Arc::clone(&stays), local("turns")]);
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for caller in 0..4 {
        let (hub, answered) = (Arc::clone(&hub), answered.clone());
        tokio::spawn(async move {
            let era = [Era::Legacy, Era::Modern][caller % 2];
            let mut wire = wire_of(&hub, era).await;
            for call in 0..200 {
                let tool = ["stays", "turns"][call % 2];
                let told = answering(&mut wire, tool).await;
                // Nobody listens any more once something is wrong.
                let _ = answered.send((tool, told));
            }
        });
    }
    drop(answered);
    while let Some((tool, told)) = answers.recv().await {
        assert_eq!(told, tool);
        hub.replace(vec![Arc::clone(&stays), local("turns")], "__");
    }
}
