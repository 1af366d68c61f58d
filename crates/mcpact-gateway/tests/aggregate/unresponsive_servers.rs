//! Servers that stopped responding.

use std::sync::Arc;

use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache, ServerEntry};
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::scripted_process::{PATIENCE, SHORT, ScriptedProcess, until};
use crate::wire::Wire;

/// Aggregator with short waits.
fn impatient(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        introduction_wait: SHORT,
        list_wait: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// Server with a short timeout.
fn member(script: &ScriptedProcess) -> Arc<ServerEntry> {
    let run = RunSettings {
        call_timeout: SHORT * 40,
        start_timeout: SHORT * 40,
        ..RunSettings::default()
    };
    script.member_run("s", &Cache::disabled(), run)
}

async fn tools(wire: &mut Wire) -> Vec<String> {
    let listed = wire.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Lists tools until the result is as expected.
async fn until_listed(wire: &mut Wire, expected: &[&str]) {
    let listed = async { while tools(wire).await != expected {} };
    let listed = tokio::time::timeout(PATIENCE, listed).await;
    assert!(listed.is_ok(), "{expected:?}");
}

async fn call(wire: &mut Wire, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    wire.ask("tools/call", params).await
}

fn error_message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

/// The tools of an unresponsive server stay in the lists of all clients. A call fails with an error that names the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_an_unresponsive_server_stay_listed() {
    for era in [Era::Legacy, Era::Modern] {
        let script = ScriptedProcess::new(era, &json!({"tools": {}}));
        let aggregator = impatient(vec![member(&script)]);
        let mut first = Wire::modern(&aggregator, &json!({}));
        until_listed(&mut first, &["s__one"]).await;
        assert_eq!(
            error_message(&call(&mut first, "s__one").await),
            "",
            "{era:?}"
        );
        script.put("hold", "");
        // Clients with other capabilities may get other tools.
        let mut second = Wire::modern(&aggregator, &json!({"roots": {}}));
        let mut third = Wire::legacy(&aggregator, &json!({"sampling": {}})).await;
        for wire in [&mut second, &mut third, &mut first] {
            assert_eq!(tools(wire).await, ["s__one"], "{era:?}");
            let answer = call(wire, "s__one").await;
            assert!(
                error_message(&answer).contains("`s`: "),
                "{era:?}: {answer}"
            );
            assert!(
                !error_message(&answer).contains("Unknown"),
                "{era:?}: {answer}"
            );
        }
        script.remove("hold");
    }
}

/// A call with the prefix of an unavailable server fails with the server, its state, the cause and a hint; other names
/// are unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_for_a_name_of_an_unavailable_server_names_the_cause() {
    for era in [Era::Legacy, Era::Modern] {
        let quick = ScriptedProcess::new(era, &json!({"tools": {}}));
        let late = ScriptedProcess::new(era, &json!({"tools": {}}));
        late.put("tools-list", "never");
        let broken = ScriptedProcess::new(era, &json!({"tools": {}}));
        broken.put("broken", "");
        let members = vec![quick.member("q"), member(&late), broken.member("b")];
        let aggregator = impatient(members.clone());
        let legacy = Wire::legacy(&aggregator, &json!({})).await;
        for mut wire in [legacy, Wire::modern(&aggregator, &json!({}))] {
            until_listed(&mut wire, &["q__one"]).await;
            until("the failures are known", || {
                members[0].lacking().is_empty()
                    && !members[1].lacking().is_empty()
                    && members[2].failure().is_some()
            })
            .await;
            for (name, server, cause) in [
                ("s__two", "server `s`", "`tools/list`"),
                ("b__one", "server `b`", "exit status: 3"),
            ] {
                let answer = call(&mut wire, name).await;
                assert_eq!(answer["error"]["code"], -32603, "{era:?}: {answer}");
                let reason = &answer["error"]["data"]["reason"];
                assert_eq!(reason, "upstream_missing", "{era:?}: {answer}");
                for words in [server, name, cause, "(state: ", "`mcpact status "] {
                    assert!(error_message(&answer).contains(words), "{era:?}: {answer}");
                }
            }
            let answer = call(&mut wire, "q__two").await;
            assert_eq!(answer["error"]["code"], -32602, "{era:?}: {answer}");
            for words in ["Unknown tool: `q__two`", "`q__one`", "`s` (", "`b` ("] {
                assert!(error_message(&answer).contains(words), "{era:?}: {answer}");
            }
        }
    }
}
