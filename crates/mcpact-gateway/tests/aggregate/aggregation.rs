//! Several servers as one, checked on the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact::client::Watch;
use mcpact_gateway::{Aggregator, AggregatorSettings};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::in_process::{aggregator, client, on_stdio};
use crate::scripted_process::{PATIENCE, ScriptedProcess, impatient};
use crate::wire::Wire;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Returns the names in all pages of a list.
async fn names(wire: &mut Wire, method: &str, member: &str, key: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let answer = wire.ask(method, params).await;
        let page = answer["result"][member].as_array().unwrap();
        names.extend(
            page.iter()
                .map(|item| item[key].as_str().unwrap().to_owned()),
        );
        match answer["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return names,
        }
    }
}

async fn tools(wire: &mut Wire) -> Vec<String> {
    names(wire, "tools/list", "tools", "name").await
}

/// Connects a client of each era.
async fn both(aggregator: &Arc<Aggregator>, capabilities: &Value) -> [Wire; 2] {
    [
        Wire::legacy(aggregator, capabilities).await,
        Wire::modern(aggregator, capabilities),
    ]
}

/// AG-01, P21: the same tool at two servers has two names. Names are ordered, short, stable and valid, and are routed to
/// their servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_tool_at_two_servers_has_two_names() {
    for era in ERAS {
        let scripts = [
            ScriptedProcess::new(era, &json!({"tools": {}})),
            ScriptedProcess::new(era, &json!({"tools": {}})),
        ];
        let long = "x".repeat(100);
        for script in &scripts {
            script.tools(&["search", &long, "a b/\u{e4}"]);
        }
        let members = vec![scripts[0].member("a"), scripts[1].member("b")];
        let aggregator = aggregator(members);
        for mut wire in both(&aggregator, &json!({})).await {
            let listed = tools(&mut wire).await;
            assert_eq!(listed, tools(&mut wire).await);
            assert_eq!(
                (listed[0].as_str(), listed[3].as_str()),
                ("a__search", "b__search")
            );
            let different: BTreeSet<&String> = listed.iter().collect();
            assert_eq!(different.len(), 6, "{listed:?}");
            for (at, name) in listed.iter().enumerate() {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
                assert!(name.len() <= 64 && name.chars().all(is_plain), "{name}");
                let params = json!({"name": name, "arguments": {"at": at}});
                let called = wire.ask("tools/call", params).await;
                assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
                let received = scripts[at / 3].received("tools/call");
                let own = ["search", &long, "a b/\u{e4}"][at % 3];
                let last = &received.last().unwrap()["params"];
                assert_eq!(
                    (&last["name"], &last["arguments"]["at"]),
                    (&json!(own), &json!(at))
                );
            }
        }
    }
}

/// AG-02: list changes are declared if one server declares them. Lists of a running server without notifications are
/// polled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_changes_are_found_by_polling() {
    for era in ERAS {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let telling = ScriptedProcess::new(era, &json!({"tools": {"listChanged": true}}));
            let silent = ScriptedProcess::new(era, &json!({"tools": {}}));
            let awake = mcpact_config::RunSettings::default();
            let nowhere = mcpact_gateway::Cache::disabled();
            let silent_member = silent.member_run("b", &nowhere, awake);
            let aggregator = impatient(vec![telling.member("a"), silent_member.clone()]);
            let connected = on_stdio(&aggregator, client(revision)).await;
            let tells = mcpact_spec::Capability::ToolsListChanged;
            assert!(connected.pact().declares(tells));
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(connected.list_tools().await.unwrap().len(), 2);
            silent.tools(&["one", "two"]);
            let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(notified.unwrap().is_some(), "{revision} of {era:?}");
            assert_eq!(connected.list_tools().await.unwrap().len(), 3);
            assert_eq!(silent.starts(), 1);
        }
    }
}

/// AG-03: pages of servers and of the aggregator are followed to the end. A cursor of another list or aggregator, or an
/// invalid one, is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_followed_and_foreign_cursors_refused() {
    for era in ERAS {
        let paged = ScriptedProcess::new(era, &json!({"tools": {}}));
        let mut first = paged.page(&["a", "b"]);
        first["nextCursor"] = json!("two");
        paged.answers("tools-list", &first);
        paged.answers("tools-list-two", &paged.page(&["c", "d"]));
        let other = ScriptedProcess::new(era, &json!({"tools": {}}));
        other.tools(&["e", "f", "g"]);
        let mut settings = AggregatorSettings::default();
        settings.front.page_size = 3;
        let members = || vec![paged.member("p"), other.member("o")];
        let aggregator = Aggregator::new(members(), settings.clone()).unwrap();
        let elsewhere = Aggregator::new(vec![other.member("o")], settings).unwrap();
        for mut wire in both(&aggregator, &json!({})).await {
            let expected = ["p__a", "p__b", "p__c", "p__d", "o__e", "o__f", "o__g"];
            assert_eq!(tools(&mut wire).await, expected, "{era:?}");
            let page = wire.ask("tools/list", json!({})).await;
            assert_eq!(page["result"]["tools"].as_array().unwrap().len(), 3);
            let mut stranger = Wire::modern(&elsewhere, &json!({}));
            stranger.ask("tools/list", json!({})).await;
            let cursor = page["result"]["nextCursor"].clone();
            let refused = stranger.ask("tools/list", json!({"cursor": cursor})).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            for cursor in [
                json!("two"),
                json!(""),
                json!("zzz"),
                json!("0-0"),
                json!(7),
            ] {
                let refused = wire.ask("tools/list", json!({"cursor": cursor})).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
            }
        }
    }
}

/// AG-04, P14: a merged page has the shortest lifetime of its parts and is always private.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_page_has_the_strictest_cache_hint() {
    let hinted = |ttl: u64, scope: &str| {
        let script = ScriptedProcess::new(Era::Modern, &json!({"tools": {}}));
        let mut page = script.page(&["one"]);
        page["ttlMs"] = json!(ttl);
        page["cacheScope"] = json!(scope);
        script.answers("tools-list", &page);
        script
    };
    let legacy = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    let (public, short) = (hinted(5000, "public"), hinted(1000, "public"));
    let private = hinted(1000, "private");
    for (members, ttl) in [
        (vec![&public, &private], 1000),
        (vec![&public, &short], 1000),
        (vec![&public], 5000),
        (vec![&public, &legacy], 0),
    ] {
        let members = members.iter().enumerate();
        let members = members.map(|(at, script)| script.member(&format!("s{at}")));
        let aggregator = aggregator(members.collect());
        let mut wire = Wire::modern(&aggregator, &json!({}));
        let page = wire.ask("tools/list", json!({})).await;
        assert_eq!(page["result"]["ttlMs"], ttl, "{page}");
        assert_eq!(page["result"]["cacheScope"], "private", "{page}");
    }
}

/// AG-05: a server gets exactly the capabilities that the client declared for the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_get_the_capabilities_of_the_client() {
    let declared = json!({"elicitation": {"form": {}}});
    let modern = ScriptedProcess::new(Era::Modern, &json!({"tools": {}}));
    let legacy = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    let aggregator = aggregator(vec![modern.member("m"), legacy.member("l")]);
    for mut wire in both(&aggregator, &declared).await {
        wire.ask("tools/list", json!({})).await;
        for tool in ["m__one", "l__one"] {
            let called = wire.ask("tools/call", json!({"name": tool})).await;
            assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
        }
        let received = modern.received("tools/call");
        let meta = &received.last().unwrap()["params"]["_meta"];
        let declared = &meta["io.modelcontextprotocol/clientCapabilities"];
        let keys: Vec<&String> = declared.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["elicitation"], "{declared}");
    }
    let mut bare = Wire::modern(&aggregator, &json!({}));
    let called = bare.ask("tools/call", json!({"name": "m__one"})).await;
    assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
    let received = modern.received("tools/call");
    let meta = &received.last().unwrap()["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    // Handshakes without a client declare nothing.
    let declared: BTreeSet<String> = legacy
        .received("initialize")
        .iter()
        .map(|received| received["params"]["capabilities"].to_string())
        .collect();
    for declared in &declared {
        let declared: Value = serde_json::from_str(declared).unwrap();
        let others = declared
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "elicitation");
        assert_eq!(others.count(), 0, "{declared}");
    }
}

/// AG-08: the same URI at two servers becomes two URIs, each routed to its server; the original one is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_uri_at_two_servers_becomes_two_uris() {
    for era in ERAS {
        let scripts = ["a", "b"].map(|name| {
            let script = ScriptedProcess::new(era, &json!({"resources": {}}));
            let listed = json!([{"uri": "note://x", "name": "x"}, {"uri": format!("note://{name}"), "name": name}]);
            script.answers("resources-list", &json!({"resultType": "complete", "resources": listed}));
            script.answers("resources-templates-list", &json!({"resultType": "complete", "resourceTemplates": []}));
            let contents = json!([{"uri": "note://x", "text": name}]);
            script.answers("resources-read", &json!({"resultType": "complete", "contents": contents}));
            script
        });
        let aggregator = aggregator(vec![scripts[0].member("a"), scripts[1].member("b")]);
        for mut wire in both(&aggregator, &json!({})).await {
            let listed = names(&mut wire, "resources/list", "resources", "uri").await;
            let expected = [
                "mcpact://a/note://x",
                "note://a",
                "mcpact://b/note://x",
                "note://b",
            ];
            assert_eq!(listed, expected, "{era:?}");
            for name in ["a", "b"] {
                let uri = format!("mcpact://{name}/note://x");
                let read = wire.ask("resources/read", json!({"uri": uri})).await;
                let contents = &read["result"]["contents"][0];
                assert_eq!(
                    (&contents["text"], &contents["uri"]),
                    (&json!(name), &json!(uri))
                );
            }
            let bare = wire.ask("resources/read", json!({"uri": "note://x"})).await;
            assert_eq!(bare["error"]["code"], -32602, "{bare}");
        }
    }
}

/// Capabilities besides the lists are declared if a server has them and they can be routed. A request for a server that
/// has not declared the capability is refused and not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undeclared_requests_are_not_forwarded() {
    for era in ERAS {
        let with = ScriptedProcess::new(
            era,
            &json!({"prompts": {}, "completions": {}, "resources": {"subscribe": true}}),
        );
        let without = ScriptedProcess::new(
            era,
            &json!({"prompts": {}, "tools": {}, "experimental": {"x": {}}}),
        );
        for script in [&with, &without] {
            script.answers(
                "prompts-list",
                &json!({"resultType": "complete", "prompts": [{"name": "p"}]}),
            );
        }
        let completion = json!({"values": ["v"], "hasMore": false});
        with.answers(
            "completion-complete",
            &json!({"resultType": "complete", "completion": completion}),
        );
        let aggregator = aggregator(vec![with.member("w"), without.member("o")]);
        let mut wire = Wire::modern(&aggregator, &json!({}));
        let discovered = wire.ask("server/discover", json!({})).await;
        let initialized = Wire::initialize(&aggregator, "2025-11-25").await;
        for (answer, is_legacy) in [(&discovered, false), (&initialized, true)] {
            let declared = answer["result"]["capabilities"].as_object().unwrap();
            let keys: BTreeSet<&str> = declared.keys().map(String::as_str).collect();
            let mut expected = BTreeSet::from(["completions", "prompts", "resources", "tools"]);
            // Tools of a modern server run as tasks that the gateway keeps.
            if is_legacy && era == Era::Modern {
                expected.insert("tasks");
            }
            assert_eq!(keys, expected, "{era:?}");
        }
        for mut wire in both(&aggregator, &json!({})).await {
            names(&mut wire, "prompts/list", "prompts", "name").await;
            let argument = json!({"name": "a", "value": "v"});
            let of = |prompt: &str| json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": argument});
            let completed = wire.ask("completion/complete", of("w__p")).await;
            assert_eq!(
                completed["result"]["completion"]["values"],
                json!(["v"]),
                "{completed}"
            );
            let refused = wire.ask("completion/complete", of("o__p")).await;
            assert_eq!(refused["error"]["code"], -32601, "{refused}");
            let undeclared = wire.ask("logging/setLevel", json!({"level": "info"})).await;
            assert_eq!(undeclared["error"]["code"], -32601, "{undeclared}");
        }
        assert_eq!(without.received("completion/complete").len(), 0);
    }
}

/// A declared list that the server does not know affects neither its other lists nor other servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_but_unknown_list_is_left_out() {
    for era in ERAS {
        let incomplete =
            ScriptedProcess::new(era, &json!({"tools": {}, "prompts": {}, "resources": {}}));
        let complete = ScriptedProcess::new(era, &json!({"tools": {}, "prompts": {}}));
        complete.answers(
            "prompts-list",
            &json!({"resultType": "complete", "prompts": [{"name": "p"}]}),
        );
        let members = vec![incomplete.member("b"), complete.member("h")];
        let aggregator = aggregator(members.clone());
        for mut wire in both(&aggregator, &json!({})).await {
            let prompts = names(&mut wire, "prompts/list", "prompts", "name").await;
            assert_eq!(prompts, ["h__p"], "{era:?}");
            assert_eq!(
                names(&mut wire, "resources/list", "resources", "uri")
                    .await
                    .len(),
                0
            );
            assert_eq!(tools(&mut wire).await, ["b__one", "h__one"], "{era:?}");
            let called = wire.ask("tools/call", json!({"name": "b__one"})).await;
            assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
        }
        assert_eq!(members[0].failure(), None);
    }
}

/// Protocol errors keep their code and data, and the failed call is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_passed_on_and_calls_sent_once() {
    let script = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    let aggregator = aggregator(vec![script.member("s")]);
    let mut wire = Wire::legacy(
        &aggregator,
        &json!({"elicitation": {"form": {}, "url": {}}}),
    )
    .await;
    wire.ask("tools/list", json!({})).await;
    let visit =
        json!({"mode": "url", "elicitationId": "e", "url": "https://host/", "message": "Sign in"});
    for (calls, (code, data)) in [
        (-32042, json!({"elicitations": [visit]})),
        (-32602, json!({"field": "x"})),
        (-32603, json!("why")),
        (-32099, json!([1, null])),
    ]
    .into_iter()
    .enumerate()
    {
        let error = json!({"code": code, "message": "No", "data": data});
        script.put("tools-call", &format!("error {error}"));
        let answer = wire.ask("tools/call", json!({"name": "s__one"})).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["error"]["data"], data, "{answer}");
        assert_eq!(script.received("tools/call").len(), calls + 1);
    }
}
