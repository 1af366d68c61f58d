//! MCP Apps: views of several servers, and the calls of a view.

use std::sync::Arc;

use mcpact_gateway::Aggregator;
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

/// Server with a tool that names this view in both keys, and in the result of its calls.
fn app(era: Era, name: &str, view: &str, listed: &[&str]) -> ScriptedProcess {
    let script = ScriptedProcess::new(era, &json!({"tools": {}, "resources": {}}));
    let meta = json!({"ui": {"resourceUri": view, "visibility": ["app"]}, "ui/resourceUri": view});
    let own = format!("only_{name}");
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "_meta": meta});
    let listed: Vec<Value> = listed
        .iter()
        .map(|uri| json!({"uri": uri, "name": uri}))
        .collect();
    let mut answers = [
        ("tools-list", json!({"tools": [tool("show"), tool(&own)]})),
        ("tools-call", json!({"content": [], "_meta": meta})),
        ("resources-list", json!({"resources": listed})),
        ("resources-templates-list", json!({"resourceTemplates": []})),
        (
            "resources-read",
            json!({"contents": [{"uri": view, "mimeType": "text/html;profile=mcp-app", "text": name}]}),
        ),
    ];
    for (file, answer) in &mut answers {
        answer["resultType"] = json!("complete");
        script.answers(file, answer);
    }
    script
}

async fn clients(aggregator: &Arc<Aggregator>) -> [Wire; 2] {
    [
        Wire::legacy(aggregator, &json!({})).await,
        Wire::modern(aggregator, &json!({})),
    ]
}

async fn text(wire: &mut Wire, uri: &str) -> Value {
    let answer = wire.ask("resources/read", json!({"uri": uri})).await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["uri"], uri, "{answer}");
    contents["text"].clone()
}

/// Returns both keys of the view of a tool or result.
fn views(of: &Value) -> [&Value; 2] {
    let meta = &of["_meta"];
    [&meta["ui"]["resourceUri"], &meta["ui/resourceUri"]]
}

/// An unlisted view that a tool or the result of a call names is readable, under its own URI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlisted_views_are_readable() {
    for era in [Era::Legacy, Era::Modern] {
        let (a, b) = (
            app(era, "a", "ui://a/v", &[]),
            app(era, "b", "ui://b/w", &[]),
        );
        let views_of = [("a", "ui://a/v"), ("b", "ui://b/w")];
        let fresh = aggregator(vec![a.member("a"), b.member("b")]);
        for wire in &mut clients(&fresh).await {
            for (server, uri) in views_of {
                assert_eq!(text(wire, uri).await, server, "before any list");
            }
        }
        for wire in &mut clients(&aggregator(vec![a.member("a"), b.member("b")])).await {
            let listed = wire.ask("tools/list", json!({})).await;
            let tools = &listed["result"]["tools"];
            for (at, (server, uri)) in [(0, views_of[0]), (2, views_of[1])] {
                assert_eq!(views(&tools[at]), [uri, uri], "{listed}");
                let called = json!({"name": tools[at]["name"], "arguments": {}});
                let answer = wire.ask("tools/call", called).await;
                assert_eq!(views(&answer["result"]), [uri, uri], "{answer}");
                assert_eq!(text(wire, uri).await, server);
            }
        }
        let named = json!({"content": [], "_meta": {"ui": {"resourceUri": "ui://late"}}});
        b.answers("tools-call", &named);
        let read = json!({"contents": [{"uri": "ui://late", "text": "late"}]});
        b.answers("resources-read", &read);
        for wire in &mut clients(&fresh).await {
            let called = json!({"name": "b__show", "arguments": {}});
            let answer = wire.ask("tools/call", called).await;
            let uri = answer["result"]["_meta"]["ui"]["resourceUri"].clone();
            assert_eq!(text(wire, uri.as_str().unwrap()).await, "late", "{answer}");
        }
    }
}

/// Views of two servers with the same URI are told apart by the server in their URI, in both keys, lists, results and
/// contents, in whatever order the lists are requested and whether they list the views.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_with_the_same_uri_are_told_apart() {
    let shown = ["ui://a/v", "ui://b/v"];
    for (era, listing) in [
        (Era::Legacy, [&["ui://v"][..], &["ui://v"]]),
        (Era::Modern, [&["ui://v"], &[]]),
        (Era::Legacy, [&[], &["ui://v"]]),
        (Era::Modern, [&[], &[]]),
    ] {
        let a = app(era, "a", "ui://v", listing[0]);
        let b = app(era, "b", "ui://v", listing[1]);
        for order in [
            &["tools/list", "resources/list"][..],
            &["resources/list", "tools/list"],
            &["resources/templates/list", "resources/list", "tools/list"],
            &[],
        ] {
            for at in 0..2 {
                let fresh = aggregator(vec![a.member("a"), b.member("b")]);
                let wire = &mut clients(&fresh).await[at];
                for method in order {
                    let answer = wire.ask(method, json!({})).await;
                    let result = &answer["result"];
                    if *method == "tools/list" {
                        assert_eq!(views(&result["tools"][0]), [shown[0]; 2], "{answer}");
                        assert_eq!(views(&result["tools"][2]), [shown[1]; 2], "{answer}");
                    }
                    if *method == "resources/list" {
                        let all = result["resources"].as_array().unwrap().iter();
                        let all: Vec<_> = all.map(|resource| &resource["uri"]).collect();
                        let servers = shown.iter().zip(listing);
                        let expected: Vec<_> = servers
                            .filter(|(_, listed)| !listed.is_empty())
                            .map(|(uri, _)| *uri)
                            .collect();
                        assert_eq!(all, expected, "{order:?} {listing:?}");
                    }
                }
                for (server, uri) in ["a", "b"].into_iter().zip(shown) {
                    assert_eq!(text(wire, uri).await, server, "{order:?}");
                    let called = json!({"name": format!("{server}__show"), "arguments": {}});
                    let answer = wire.ask("tools/call", called).await;
                    assert_eq!(views(&answer["result"]), [uri, uri], "{answer}");
                }
                let refused = wire.ask("resources/read", json!({"uri": "ui://v"})).await;
                let message = refused["error"]["message"].as_str().unwrap();
                assert!(message.contains("`ui://a/v`, `ui://b/v`"), "{refused}");
            }
        }
    }
}

/// A view calls the tools of its own server by their original names. An ambiguous name is refused with the candidates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn original_names_reach_the_only_server_that_has_them() {
    for era in [Era::Legacy, Era::Modern] {
        let (a, b) = (app(era, "a", "ui://v", &[]), app(era, "b", "ui://v", &[]));
        for (round, wire) in
            (1..).zip(&mut clients(&aggregator(vec![a.member("a"), b.member("b")])).await)
        {
            for (name, script) in [("only_a", &a), ("only_b", &b)] {
                let answer = wire
                    .ask("tools/call", json!({"name": name, "arguments": {"x": 1}}))
                    .await;
                assert!(answer.get("error").is_none(), "{answer}");
                let received = script.received("tools/call");
                assert_eq!(received.len(), round, "{received:?}");
                assert_eq!(received[round - 1]["params"]["name"], name);
            }
            let refused = wire
                .ask("tools/call", json!({"name": "show", "arguments": {}}))
                .await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("`a__show`, `b__show`"), "{message}");
        }
    }
}

/// A broken view of one server leaves the lists and views of the others as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_view_does_not_affect_other_servers() {
    let era = Era::Legacy;
    for meta in [
        json!({"ui": 5, "ui/resourceUri": {}}),
        json!({"ui": {"resourceUri": "https://not.a/view"}, "ui/resourceUri": ["ui:"]}),
        json!({"ui": {"resourceUri": "ui:"}}),
        json!("ui://v"),
    ] {
        let (a, b) = (
            app(era, "a", "ui://v", &["ui://v"]),
            app(era, "b", "ui://v", &[]),
        );
        let broken = json!({"name": "show", "inputSchema": {"type": "object"}, "_meta": meta});
        b.answers("tools-list", &json!({"tools": [broken]}));
        b.answers("resources-list", &json!({"resources": "ui://v"}));
        for wire in &mut clients(&aggregator(vec![a.member("a"), b.member("b")])).await {
            let listed = wire.ask("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().unwrap();
            let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
            assert_eq!(names, ["a__show", "a__only_a", "b__show"]);
            assert_eq!(views(&tools[0]), ["ui://v"; 2]);
            assert_eq!(tools[2]["_meta"], meta);
            assert_eq!(text(wire, "ui://v").await, "a");
        }
    }
}
