//! Malformed lists of servers.

use mcpact_config::ToolFilter;
use mcpact_gateway::ServerEntry;
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

/// Tool in a list.
fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Name, result of `tools/list`, usable tools and reported problem of each server.
fn cases() -> [(&'static str, Value, &'static [&'static str], &'static str); 6] {
    let mixed = json!([tool("a"), tool("a"), {"name": 5}, {}, "text", null, tool("b")]);
    [
        (
            "none",
            json!({"tools": "none"}),
            &[],
            "`tools/list` failed: the result has no array `tools`",
        ),
        (
            "nothing",
            json!(null),
            &[],
            "`tools/list` failed: the result has no array `tools`",
        ),
        (
            "circle",
            json!({"tools": [tool("a")], "nextCursor": "same"}),
            &["a"],
            "`tools/list` repeats the cursor `same` after 2 pages",
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

fn script(era: Era, answer: &Value) -> ScriptedProcess {
    let script = ScriptedProcess::new(era, &json!({"tools": {}, "prompts": {}}));
    let mut answer = answer.clone();
    if era == Era::Modern && answer.is_object() {
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

/// Valid items of a malformed list are served, and an endless list is cut off. The status and the instructions report
/// what is left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_items_are_served_and_problems_are_reported() {
    for era in [Era::Legacy, Era::Modern] {
        let servers: Vec<_> = cases()
            .into_iter()
            .map(|(name, answer, tools, problem)| (name, script(era, &answer), tools, problem))
            .collect();
        let members: Vec<_> = servers
            .iter()
            .map(|(name, script, ..)| script.member(name))
            .collect();
        let aggregator = aggregator(members.clone());
        let mut modern = Wire::modern(&aggregator, &json!({}));
        let mut legacy = Wire::legacy(&aggregator, &json!({})).await;
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
            // A valid list does not hide the problem of another one.
            wire.ask("prompts/list", json!({})).await;
        }
        let hello = Wire::initialize(&aggregator, "2025-06-18").await;
        let instructions = hello["result"]["instructions"].as_str().unwrap();
        for ((name, _, _, problem), member) in servers.iter().zip(&members) {
            assert_reported(member, problem);
            let words = format!("`{name}` is incomplete: {problem}");
            let is_reported = instructions.contains(&words);
            assert_eq!(is_reported, !problem.is_empty(), "{era:?} {instructions}");
        }
        let circle = &servers[2].1;
        assert!(circle.received("tools/list").len() <= 4, "{era:?}");
    }
}

fn assert_reported(member: &ServerEntry, words: &str) {
    let lacking = member.lacking().join("; ");
    assert!(
        lacking.starts_with(words) && lacking.is_empty() == words.is_empty(),
        "{lacking}"
    );
    assert_eq!(member.failure(), None);
}

/// The problem of a list is no longer reported when the list is valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repaired_list_is_not_reported() {
    let script = script(Era::Legacy, &json!({"tools": 7}));
    let member = script.member("s");
    let aggregator = aggregator(vec![std::sync::Arc::clone(&member)]);
    let mut wire = Wire::legacy(&aggregator, &json!({})).await;
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

/// The status and the instructions report a tool filter that matches no tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_filter_without_matches_is_reported() {
    for (only, problem) in [
        ("ecko", "`tools` in the config names none of its 2 tools"),
        ("ec*", ""),
    ] {
        let answer = json!({"tools": [tool("echo"), tool("add")]});
        let script = script(Era::Legacy, &answer);
        let member = script.member("s");
        member.server().serve_tools(ToolFilter {
            only: vec![only.to_owned()],
            ..ToolFilter::default()
        });
        let aggregator = aggregator(vec![std::sync::Arc::clone(&member)]);
        let mut wire = Wire::legacy(&aggregator, &json!({})).await;
        let listed = wire.ask("tools/list", json!({})).await;
        let listed = listed["result"]["tools"].as_array().unwrap().len();
        assert_eq!(listed, usize::from(problem.is_empty()));
        assert_reported(&member, problem);
        let hello = Wire::initialize(&aggregator, "2025-06-18").await;
        let instructions = hello["result"]["instructions"].as_str().unwrap();
        let is_reported = instructions.contains("names none of its 2 tools");
        assert_eq!(is_reported, !problem.is_empty(), "{instructions}");
    }
}

/// A result that is not an object becomes an error that names the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn result_that_is_not_an_object_is_an_error() {
    for era in [Era::Legacy, Era::Modern] {
        let script = ScriptedProcess::new(era, &json!({"tools": {}}));
        let aggregator = aggregator(vec![script.member("s")]);
        let mut wires = [
            Wire::modern(&aggregator, &json!({})),
            Wire::legacy(&aggregator, &json!({})).await,
        ];
        for nonsense in [json!("text"), json!(null), json!([]), json!(7)] {
            script.answers("tools-call", &nonsense);
            for wire in &mut wires {
                let answer = wire.ask("tools/call", json!({"name": "s__one"})).await;
                let text = answer["error"]["message"].as_str().unwrap_or_default();
                let words = "protocol violation by the server: the result of `tools/call` must be an object";
                assert!(text.contains(words), "{era:?} {answer}");
                assert!(text.starts_with('`'), "{era:?} {answer}");
            }
        }
    }
}
