//! `mcpact tools`, `resources` and `prompts`.

use serde_json::Value;

use crate::harness::{Harness, MCPACT};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tools_are_listed_with_their_arguments() {
    let harness = Harness::new();
    harness.everywhere("tools", &[], |seen| {
        let out = seen.ok();
        assert!(
            out.contains("add                           a=<number> b=<number>\n"),
            "{out}"
        );
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    });
    insta::assert_snapshot!(harness.at_stdio(&["tools"]).shown());
}

#[test]
fn one_tool_is_shown_with_its_schema() {
    let harness = Harness::new();
    insta::assert_snapshot!(
        harness
            .at_stdio(&["tools", "json_schema_2020_12_tool"])
            .shown()
    );
}

#[test]
fn lists_as_json_are_the_objects_of_the_protocol() {
    let harness = Harness::new();
    for (command, key, name, expected) in [
        ("tools", "tools", "name", "echo"),
        ("prompts", "prompts", "name", "test_simple_prompt"),
        ("resources", "resources", "uri", "test://static-text"),
        (
            "resources",
            "resourceTemplates",
            "uriTemplate",
            "test://template/{id}/data",
        ),
    ] {
        harness.everywhere(command, &["--json"], |seen| {
            let all = json(&seen.ok());
            let all = all[key].as_array().unwrap();
            assert!(all.iter().any(|one| one[name] == expected), "{all:?}");
        });
    }
    let tool = harness.at_stdio(&["tools", "add", "--json"]).ok();
    assert_eq!(
        json(&tool)["inputSchema"]["required"],
        serde_json::json!(["a", "b"])
    );
}

#[test]
fn resources_and_prompts_are_listed_and_shown() {
    let harness = Harness::new();
    let all = [
        &["resources"][..],
        &["resources", "test://static-text"],
        &["prompts"],
        &["prompts", "test_prompt_with_arguments"],
    ];
    let shown = all.map(|args| harness.at_stdio(args).shown());
    insta::assert_snapshot!(shown.join("\n"));
}

/// Exit code 5, with similar names.
#[test]
fn unknown_names_list_similar_ones() {
    let harness = Harness::new();
    for (command, given, similar) in [
        ("tools", "ecko", "did you mean `echo`?"),
        ("call", "ecko", "did you mean `echo`?"),
        (
            "prompt",
            "test_simple_promt",
            "did you mean `test_simple_prompt`?",
        ),
        (
            "resources",
            "test://static-txt",
            "did you mean `test://static-text`?",
        ),
    ] {
        let stderr = harness.at_stdio(&[command, given]).failed(5);
        assert!(stderr.contains(similar), "{stderr}");
    }
}

/// Exit code 6: the pact does not allow the request.
#[test]
fn missing_capability_is_named() {
    let harness = Harness::new();
    harness.write(
        "server.sh",
        concat!(
            "read -r line\n",
            "printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":\"mcpact-open-1\",\"result\":{\"protocolVersion\":\"2025-11-25\",",
            "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}'\n",
            "while read -r line; do :; done\n",
        ),
    );
    let seen = harness.run(&["prompts", "--era", "2025-11-25", "--", "sh", "server.sh"]);
    let stderr = seen.failed(6);
    assert!(stderr.contains("prompts"), "{stderr}");
}

/// A name of a config and a command are both possible, but not together.
#[test]
fn superfluous_arguments_are_usage_errors() {
    let harness = Harness::new();
    for args in [
        &["tools", "http://127.0.0.1:9/mcp", "a", "b"][..],
        &["tools", "a", "b", "--", MCPACT, "everything"],
        &["read", "--", MCPACT, "everything"],
        &["call", "http://127.0.0.1:9/mcp"],
        &["complete", "http://127.0.0.1:9/mcp", "prompt:x"],
        &["tasks", "http://127.0.0.1:9/mcp", "get"],
        &["tasks", "http://127.0.0.1:9/mcp", "gett", "1"],
        &["tools", "--timeout", "x", "--", MCPACT, "everything"],
        &["tools", "--log-level", "loud", "--", MCPACT, "everything"],
    ] {
        harness.run(args).failed(2);
    }
}
