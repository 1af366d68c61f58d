//! Servers whose lists are not as they should be.

use mcpact_config::ToolFilter;
use mcpact_gateway::ServerEntry;
use serde_json::{Value, json};

use crate::house::hub;
use crate::scripted::{Script, Speaks};
use crate::wire::Wire;

/// A tool as servers list it.
fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// What the servers answer to `tools/list`, what of it can be used, and what is told of the rest.
fn cases() -> [(&'static str, Value, &'static [&'static str], &'static str); 6] {
    let mixed = json!([tool("a"), tool("a"), {"name": 5}, {}, "text", null, tool("b")]);
    [
        (
            "none",
            json!({"tools": "none"}),
            &[],
            "its `tools/list` is missing: the answer has no list `tools`",
        ),
        (
            "nothing",
            json!(null),
            &[],
            "its `tools/list` is missing: the answer has no list `tools`",
        ),
        (
            "circle",
            json!({"tools": [tool("a")], "nextCursor": "same"}),
            &["a"],
            "`tools/list` does not end: the cursor `same` occurs again after 2 pages",
        ),
        (
            "number",
            json!({"tools": [tool("a")], "nextCursor": 2}),
            &["a"],
            "the `nextCursor` on page 1 of `tools/list` is not a string; later pages are left out",
        ),
        (
            "mixed",
            json!({"tools": mixed}),
            &["a", "b"],
            "left out of `tools/list`: 2 items that are not objects, 2 items without a `name`, duplicates of `a`",
        ),
        ("whole", json!({"tools": [tool("a")]}), &["a"], ""),
    ]
}

fn script(era: Speaks, answer: &Value) -> Script {
    let script = Script::new(era, &json!({"tools": {}, "prompts": {}}));
    let mut answer = answer.clone();
    if era == Speaks::Discover && answer.is_object() {
        answer["resultType"] = json!("complete");
    }
    script.answers("tools-list", &answer);
    script.answers("tools-list-same", &answer);
    script.answers(
        "prompts-list",
        &json!({"prompts": [], "resultType": "complete"}),
    );
    script
}

/// Of a list that is broken in part the rest is served, a list that does not end is not followed for ever,
/// and what is left out is told: to whoever watches, and in the instructions for clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_list_is_told_and_the_rest_is_served() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let servers: Vec<_> = cases()
            .into_iter()
            .map(|(name, answer, tools, told)| (name, script(era, &answer), tools, told))
            .collect();
        let members: Vec<_> = servers
            .iter()
            .map(|(name, script, ..)| script.member(name))
            .collect();
        let hub = hub(members.clone());
        let mut modern = Wire::modern(&hub, &json!({}));
        let mut legacy = Wire::legacy(&hub, &json!({})).await;
        let expected: Vec<String> = servers
            .iter()
            .flat_map(|(name, _, tools, _)| tools.iter().map(move |tool| format!("{name}__{tool}")))
            .collect();
        for wire in [&mut modern, &mut legacy] {
            let listed = wire.ask("tools/list", json!({})).await;
            let listed = listed["result"]["tools"].as_array().unwrap();
            let names: Vec<&str> = listed
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, expected, "{era:?}");
            // A list that is whole does not hide that another one is not.
            wire.ask("prompts/list", json!({})).await;
        }
        let mut later = Wire::unmet(&hub);
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "l", "version": "1"}});
        let hello = later.ask("initialize", hello).await;
        let instructions = hello["result"]["instructions"].as_str().unwrap();
        for ((name, _, _, told), member) in servers.iter().zip(&members) {
            told_of(member, told);
            let words = format!("`{name}` is incomplete: {told}");
            let is_told = instructions.contains(&words);
            assert_eq!(is_told, !told.is_empty(), "{era:?} {instructions}");
        }
        let circle = &servers[2].1;
        assert!(circle.heard("tools/list").len() <= 4, "{era:?}");
    }
}

fn told_of(member: &ServerEntry, words: &str) {
    let lacking = member.lacking().join("; ");
    assert!(
        lacking.starts_with(words) && lacking.is_empty() == words.is_empty(),
        "{lacking}"
    );
    assert_eq!(member.failure(), None);
}

/// Once the list is whole, nothing is told any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_becomes_whole_is_not_complained_about() {
    let script = script(Speaks::Handshake, &json!({"tools": 7}));
    let member = script.member("s");
    let hub = hub(vec![std::sync::Arc::clone(&member)]);
    let mut wire = Wire::legacy(&hub, &json!({})).await;
    let listed = wire.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"], json!([]));
    assert_eq!(member.lacking().len(), 1);
    script.tools(&["one"]);
    let listed = wire.ask("tools/list", json!({})).await;
    assert_eq!(
        listed["result"]["tools"][0]["name"], "s__one",
        "asked again"
    );
    assert_eq!(member.lacking(), Vec::<String>::new());
}

/// A config that names none of the tools that there are is told of: to whoever watches, and in the instructions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_choice_of_tools_that_fits_none_is_told() {
    for (only, told) in [
        ("ecko", "`tools` in the config names none of its 2 tools"),
        ("ec*", ""),
    ] {
        let answer = json!({"tools": [tool("echo"), tool("add")]});
        let script = script(Speaks::Handshake, &answer);
        let member = script.member("s");
        member.server().serve_tools(ToolFilter {
            only: vec![only.to_owned()],
            ..ToolFilter::default()
        });
        let hub = hub(vec![std::sync::Arc::clone(&member)]);
        let mut wire = Wire::legacy(&hub, &json!({})).await;
        let listed = wire.ask("tools/list", json!({})).await;
        let listed = listed["result"]["tools"].as_array().unwrap().len();
        assert_eq!(listed, usize::from(told.is_empty()));
        told_of(&member, told);
        let mut later = Wire::unmet(&hub);
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "l", "version": "1"}});
        let hello = later.ask("initialize", hello).await;
        let instructions = hello["result"]["instructions"].as_str().unwrap();
        let is_told = instructions.contains("names none of its 2 tools");
        assert_eq!(is_told, !told.is_empty(), "{instructions}");
    }
}

/// What a server gives back that is no result is an error that names the server, and goes to nobody as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_none_is_an_error() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let script = Script::new(era, &json!({"tools": {}}));
        let hub = hub(vec![script.member("s")]);
        let mut wires = [
            Wire::modern(&hub, &json!({})),
            Wire::legacy(&hub, &json!({})).await,
        ];
        for nonsense in [json!("text"), json!(null), json!([]), json!(7)] {
            script.answers("tools-call", &nonsense);
            for wire in &mut wires {
                let answer = wire.ask("tools/call", json!({"name": "s__one"})).await;
                let told = answer["error"]["message"].as_str().unwrap_or_default();
                let words = "protocol violation by the server: its answer to `tools/call` should be `object`";
                assert!(told.contains(words), "{era:?} {answer}");
                assert!(told.starts_with('`'), "{era:?} {answer}");
            }
        }
    }
}
