//! Servers that worked, and do not say a word any more.

use std::sync::Arc;

use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache, ServerEntry};
use serde_json::{Value, json};

use crate::scripted::{PATIENCE, SHORT, Script, Speaks, until};
use crate::wire::Wire;

/// A hub that does not wait long.
fn impatient(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        introduction_wait: SHORT,
        list_wait: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// A server that is given up soon.
fn member(script: &Script) -> Arc<ServerEntry> {
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

/// Lists until this is what there is.
async fn until_listed(wire: &mut Wire, expected: &[&str]) {
    let listed = async { while tools(wire).await != expected {} };
    let listed = tokio::time::timeout(PATIENCE, listed).await;
    assert!(listed.is_ok(), "{expected:?}");
}

async fn call(wire: &mut Wire, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}});
    wire.ask("tools/call", params).await
}

fn told(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

/// What somebody was shown of a server that is stuck is shown to others meanwhile, and its tools stay
/// what they are: who calls one is told that the server does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_a_stuck_server_stay_known() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let script = Script::new(era, &json!({"tools": {}}));
        let hub = impatient(vec![member(&script)]);
        let mut first = Wire::modern(&hub, &json!({}));
        until_listed(&mut first, &["s__one"]).await;
        assert_eq!(told(&call(&mut first, "s__one").await), "", "{era:?}");
        script.put("hold", "");
        // They declare something else, so that the server may have other tools for them.
        let mut second = Wire::modern(&hub, &json!({"roots": {}}));
        let mut third = Wire::legacy(&hub, &json!({"sampling": {}})).await;
        for wire in [&mut second, &mut third, &mut first] {
            assert_eq!(tools(wire).await, ["s__one"], "{era:?}");
            let answer = call(wire, "s__one").await;
            assert!(told(&answer).contains("`s`: "), "{era:?}: {answer}");
            assert!(!told(&answer).contains("Unknown"), "{era:?}: {answer}");
        }
        script.remove("hold");
    }
}

/// A name with the prefix of a server that cannot say what it has is answered with the server, its state, the
/// cause and what to do; whatever else is not there is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_a_server_that_is_not_well_is_told_with_its_trouble() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let quick = Script::new(era, &json!({"tools": {}}));
        let late = Script::new(era, &json!({"tools": {}}));
        late.put("tools-list", "never");
        let broken = Script::new(era, &json!({"tools": {}}));
        broken.put("broken", "");
        let members = vec![quick.member("q"), member(&late), broken.member("b")];
        let hub = impatient(members.clone());
        let legacy = Wire::legacy(&hub, &json!({})).await;
        for mut wire in [legacy, Wire::modern(&hub, &json!({}))] {
            until_listed(&mut wire, &["q__one"]).await;
            until("they are judged", || {
                members[0].lacking().is_empty()
                    && !members[1].lacking().is_empty()
                    && members[2].failure().is_some()
            })
            .await;
            for (name, server, cause) in [
                ("s__two", "`s`: the server", "`tools/list`"),
                ("b__one", "`b`: the server", "exit status: 3"),
            ] {
                let answer = call(&mut wire, name).await;
                assert_eq!(answer["error"]["code"], -32603, "{era:?}: {answer}");
                let reason = &answer["error"]["data"]["reason"];
                assert_eq!(reason, "upstream_missing", "{era:?}: {answer}");
                for words in [server, name, cause, "(state: ", "`mcpact status "] {
                    assert!(told(&answer).contains(words), "{era:?}: {answer}");
                }
            }
            let answer = call(&mut wire, "q__two").await;
            assert_eq!(answer["error"]["code"], -32602, "{era:?}: {answer}");
            for words in ["Unknown tool: `q__two`", "`q__one`", "`s` (", "`b` ("] {
                assert!(told(&answer).contains(words), "{era:?}: {answer}");
            }
        }
    }
}
