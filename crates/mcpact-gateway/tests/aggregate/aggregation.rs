//! Several servers as one, case by case, down to what is on the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact::client::Watch;
use mcpact_gateway::{Aggregator, AggregatorSettings};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::house::{client, hub, on_lines};
use crate::scripted::{PATIENCE, Script, Speaks, impatient};
use crate::wire::Wire;

const ERAS: [Speaks; 2] = [Speaks::Handshake, Speaks::Discover];

/// The names of what is in a list, page after page.
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

/// A client of each era.
async fn both(hub: &Arc<Aggregator>, capabilities: &Value) -> [Wire; 2] {
    [
        Wire::legacy(hub, capabilities).await,
        Wire::modern(hub, capabilities),
    ]
}

/// AG-01, P21: a tool that two servers of the same name have has two names, which are in order, short and plain, stay as they
/// are when they are asked for again, and lead back to their servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_tool_at_two_servers() {
    for era in ERAS {
        let scripts = [
            Script::new(era, &json!({"tools": {}})),
            Script::new(era, &json!({"tools": {}})),
        ];
        let long = "x".repeat(100);
        for script in &scripts {
            script.tools(&["search", &long, "a b/\u{e4}"]);
        }
        let members = vec![scripts[0].member("a"), scripts[1].member("b")];
        let hub = hub(members);
        for mut wire in both(&hub, &json!({})).await {
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
                let heard = scripts[at / 3].heard("tools/call");
                let own = ["search", &long, "a b/\u{e4}"][at % 3];
                let last = &heard.last().unwrap()["params"];
                assert_eq!(
                    (&last["name"], &last["arguments"]["at"]),
                    (&json!(own), &json!(at))
                );
            }
        }
    }
}

/// AG-02: changes are told if one server tells of them, and those of a server that does not are found by
/// asking it again, without anybody's doing, as long as it is awake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_nobody_tells() {
    for era in ERAS {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let telling = Script::new(era, &json!({"tools": {"listChanged": true}}));
            let silent = Script::new(era, &json!({"tools": {}}));
            let awake = mcpact_config::RunSettings::default();
            let nowhere = mcpact_gateway::Cache::disabled();
            let silent_member = silent.member_run("b", &nowhere, awake);
            let hub = impatient(vec![telling.member("a"), silent_member.clone()]);
            let connected = on_lines(&hub, client(revision)).await;
            let tells = mcpact_spec::Capability::ToolsListChanged;
            assert!(connected.pact().declares(tells));
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(connected.list_tools().await.unwrap().len(), 2);
            silent.tools(&["one", "two"]);
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{revision} of {era:?}");
            assert_eq!(connected.list_tools().await.unwrap().len(), 3);
            assert_eq!(silent.starts(), 1);
        }
    }
}

/// AG-03: pages of servers and of the hub are followed to the end; a cursor of another list, of another
/// hub or of nobody is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_followed() {
    for era in ERAS {
        let paged = Script::new(era, &json!({"tools": {}}));
        let mut first = paged.page(&["a", "b"]);
        first["nextCursor"] = json!("two");
        paged.answers("tools-list", &first);
        paged.answers("tools-list-two", &paged.page(&["c", "d"]));
        let other = Script::new(era, &json!({"tools": {}}));
        other.tools(&["e", "f", "g"]);
        let mut settings = AggregatorSettings::default();
        settings.front.page_size = 3;
        let members = || vec![paged.member("p"), other.member("o")];
        let hub = Aggregator::new(members(), settings.clone()).unwrap();
        let elsewhere = Aggregator::new(vec![other.member("o")], settings).unwrap();
        for mut wire in both(&hub, &json!({})).await {
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

/// AG-04, P14: a page of several servers holds for as short a time as that of the strictest, and for the client
/// alone, even if every server says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_strictest_hint_holds() {
    let hinted = |ttl: u64, scope: &str| {
        let script = Script::new(Speaks::Discover, &json!({"tools": {}}));
        let mut page = script.page(&["one"]);
        page["ttlMs"] = json!(ttl);
        page["cacheScope"] = json!(scope);
        script.answers("tools-list", &page);
        script
    };
    let legacy = Script::new(Speaks::Handshake, &json!({"tools": {}}));
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
        let hub = hub(members.collect());
        let mut wire = Wire::modern(&hub, &json!({}));
        let page = wire.ask("tools/list", json!({})).await;
        assert_eq!(page["result"]["ttlMs"], ttl, "{page}");
        assert_eq!(page["result"]["cacheScope"], "private", "{page}");
    }
}

/// AG-05: a server is told of what the client declared for this request, and of nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_told_what_the_client_declared() {
    let declared = json!({"elicitation": {"form": {}}});
    let modern = Script::new(Speaks::Discover, &json!({"tools": {}}));
    let legacy = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    let hub = hub(vec![modern.member("m"), legacy.member("l")]);
    for mut wire in both(&hub, &declared).await {
        wire.ask("tools/list", json!({})).await;
        for tool in ["m__one", "l__one"] {
            let called = wire.ask("tools/call", json!({"name": tool})).await;
            assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
        }
        let heard = modern.heard("tools/call");
        let meta = &heard.last().unwrap()["params"]["_meta"];
        let told = &meta["io.modelcontextprotocol/clientCapabilities"];
        let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["elicitation"], "{told}");
    }
    let mut nobody = Wire::modern(&hub, &json!({}));
    let called = nobody.ask("tools/call", json!({"name": "m__one"})).await;
    assert_eq!(called["result"]["content"][0]["text"], "done", "{called}");
    let heard = modern.heard("tools/call");
    let meta = &heard.last().unwrap()["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    // Whoever asks only who is there declares nothing on anybody's behalf.
    let told: BTreeSet<String> = legacy
        .heard("initialize")
        .iter()
        .map(|heard| heard["params"]["capabilities"].to_string())
        .collect();
    for told in &told {
        let told: Value = serde_json::from_str(told).unwrap();
        let others = told
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "elicitation");
        assert_eq!(others.count(), 0, "{told}");
    }
}

/// AG-08: the same address at two servers is two addresses, each of which leads to its own; the bare one
/// leads to neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_address_at_two_servers() {
    for era in ERAS {
        let scripts = ["a", "b"].map(|name| {
            let script = Script::new(era, &json!({"resources": {}}));
            let listed = json!([{"uri": "note://x", "name": "x"}, {"uri": format!("note://{name}"), "name": name}]);
            script.answers("resources-list", &json!({"resultType": "complete", "resources": listed}));
            script.answers("resources-templates-list", &json!({"resultType": "complete", "resourceTemplates": []}));
            let contents = json!([{"uri": "note://x", "text": name}]);
            script.answers("resources-read", &json!({"resultType": "complete", "contents": contents}));
            script
        });
        let hub = hub(vec![scripts[0].member("a"), scripts[1].member("b")]);
        for mut wire in both(&hub, &json!({})).await {
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

/// What is advertised beyond the lists is what a server has and the hub can route; what one of them has not declared is
/// refused on the wire for its things, and it never hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_declared_is_forwarded() {
    for era in ERAS {
        let with = Script::new(
            era,
            &json!({"prompts": {}, "completions": {}, "resources": {"subscribe": true}}),
        );
        let without = Script::new(
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
        let hub = hub(vec![with.member("w"), without.member("o")]);
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "w", "version": "1"},
        });
        let mut wire = Wire::modern(&hub, &json!({}));
        let discovered = wire.ask("server/discover", json!({})).await;
        let mut handshake = Wire::unmet(&hub);
        let shaken = handshake.ask("initialize", params).await;
        for (told, is_shaken) in [(&discovered, false), (&shaken, true)] {
            let told = told["result"]["capabilities"].as_object().unwrap();
            let keys: BTreeSet<&str> = told.keys().map(String::as_str).collect();
            let mut expected = BTreeSet::from(["completions", "prompts", "resources", "tools"]);
            // Tools of a modern server run as tasks that the gateway keeps.
            if is_shaken && era == Speaks::Discover {
                expected.insert("tasks");
            }
            assert_eq!(keys, expected, "{era:?}");
        }
        for mut wire in both(&hub, &json!({})).await {
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
            let nobodys = wire.ask("logging/setLevel", json!({"level": "info"})).await;
            assert_eq!(nobodys["error"]["code"], -32601, "{nobodys}");
        }
        assert_eq!(without.heard("completion/complete").len(), 0);
    }
}

/// A server that declares a list and does not know it keeps the rest, and so do the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_was_declared_in_vain() {
    for era in ERAS {
        let boastful = Script::new(era, &json!({"tools": {}, "prompts": {}, "resources": {}}));
        let honest = Script::new(era, &json!({"tools": {}, "prompts": {}}));
        honest.answers(
            "prompts-list",
            &json!({"resultType": "complete", "prompts": [{"name": "p"}]}),
        );
        let members = vec![boastful.member("b"), honest.member("h")];
        let hub = hub(members.clone());
        for mut wire in both(&hub, &json!({})).await {
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

/// Errors of the protocol cross with their code and data, and whatever comes of a call, it was made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_cross_and_nothing_is_done_twice() {
    let script = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    let hub = hub(vec![script.member("s")]);
    let mut wire = Wire::legacy(&hub, &json!({"elicitation": {"form": {}, "url": {}}})).await;
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
        assert_eq!(script.heard("tools/call").len(), calls + 1);
    }
}
