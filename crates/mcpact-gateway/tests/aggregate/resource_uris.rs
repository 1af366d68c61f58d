//! URIs of servers that look like those of the aggregator, for example of a nested gateway, or like web pages.

use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

/// URI of the inner gateway for its own server `a`.
const THEIRS: &str = "mcpact://a/note://x";

/// The same in the outer gateway.
const SHOWN: &str = "mcpact://inner/mcpact://a/note://x";

/// Server with this resource and template; its tool links to the resource.
fn script(era: Era, uri: &str, template: &str, text: &str) -> ScriptedProcess {
    let declared = json!({"tools": {}, "resources": {"subscribe": true}, "completions": {}});
    let script = ScriptedProcess::new(era, &declared);
    let link = json!({"type": "resource_link", "uri": uri, "name": "x"});
    for (method, member, value) in [
        (
            "resources-list",
            "resources",
            json!([{"uri": uri, "name": "x"}]),
        ),
        (
            "resources-templates-list",
            "resourceTemplates",
            json!([{"uriTemplate": template, "name": "t"}]),
        ),
        (
            "resources-read",
            "contents",
            json!([{"uri": uri, "text": text}]),
        ),
        ("tools-call", "content", json!([link])),
        (
            "completion-complete",
            "completion",
            json!({"values": [text]}),
        ),
    ] {
        let answer = json!({"resultType": "complete", member: value});
        script.answers(method, &answer);
    }
    script.answers("resources-subscribe", &json!({}));
    script
}

async fn linked(wire: &mut Wire, server: &str) -> Value {
    let called = json!({"name": format!("{server}__one"), "arguments": {}});
    let answer = wire.ask("tools/call", called).await;
    answer["result"]["content"][0]["uri"].clone()
}

async fn read(wire: &mut Wire, uri: &str) -> Value {
    wire.ask("resources/read", json!({"uri": uri})).await
}

/// AG-08: a URI of a server that names another server is routed back to the server that sent it, in lists, links and
/// completions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_uri_is_routed_to_the_server_that_sent_it() {
    for era in [Era::Legacy, Era::Modern] {
        let own = script(era, "note://x", "own://{id}", "outer");
        let inner = script(era, THEIRS, "mcpact://a/own://{id}", "inner");
        let aggregator = aggregator(vec![own.member("a"), inner.member("inner")]);
        for mut wire in [
            Wire::legacy(&aggregator, &json!({})).await,
            Wire::modern(&aggregator, &json!({})),
        ] {
            assert_eq!(linked(&mut wire, "inner").await, SHOWN, "{era:?}");
            let listed = wire.ask("resources/list", json!({})).await;
            let listed = &listed["result"]["resources"];
            assert_eq!(listed[0]["uri"], "note://x", "{listed}");
            assert_eq!(listed[1]["uri"], SHOWN, "{listed}");
            let templates = wire.ask("resources/templates/list", json!({})).await;
            let template = &templates["result"]["resourceTemplates"][1]["uriTemplate"];
            assert_eq!(*template, "mcpact://inner/mcpact://a/own://{id}");
            assert_eq!(linked(&mut wire, "inner").await, SHOWN, "{era:?}");

            for (uri, text, shown) in [(SHOWN, "inner", SHOWN), (THEIRS, "outer", "note://x")] {
                let answer = read(&mut wire, uri).await;
                let contents = &answer["result"]["contents"][0];
                assert_eq!(contents["text"], text, "{answer}");
                assert_eq!(contents["uri"], shown, "{answer}");
            }
            let reference = json!({"type": "ref/resource", "uri": template});
            let params = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
            let answer = wire.ask("completion/complete", params).await;
            assert_eq!(answer["result"]["completion"]["values"][0], "inner");
        }
    }
}

/// AG-08: the same for subscriptions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_to_a_nested_uri_reaches_the_server_that_sent_it() {
    let era = Era::Legacy;
    let own = script(era, "note://x", "own://{id}", "outer");
    let inner = script(era, THEIRS, "mcpact://a/own://{id}", "inner");
    let aggregator = aggregator(vec![own.member("a"), inner.member("inner")]);
    let mut wire = Wire::legacy(&aggregator, &json!({})).await;
    let params = json!({"uri": SHOWN});
    let answer = wire.ask("resources/subscribe", params).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let received = inner.received("resources/subscribe");
    assert_eq!(received[0]["params"]["uri"], THEIRS);
    assert_eq!(own.received("resources/subscribe").len(), 0);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": THEIRS}});
    inner.put("news", &changed.to_string());
    let called = json!({"name": "inner__one", "arguments": {}});
    wire.begin("tools/call", called).await;
    let message = loop {
        let message = wire.recv().await;
        if message["method"] == "notifications/resources/updated" {
            break message;
        }
    };
    assert_eq!(message["params"]["uri"], SHOWN, "{message}");
}

/// URL of a web page.
const PAGE: &str = "https://w/x";

/// Server that links to the page and lists these resources.
fn linking(era: Era, name: &str, lists: &[&str]) -> ScriptedProcess {
    let script = script(era, PAGE, "own://{id}", name);
    let listed: Vec<Value> = lists
        .iter()
        .map(|uri| json!({"uri": uri, "name": uri}))
        .collect();
    let listed = json!({"resultType": "complete", "resources": listed});
    script.answers("resources-list", &listed);
    script
}

/// AG-08: a web URL in results of two servers stays unchanged for all clients, with and without a list. Reading it is
/// refused with the unambiguous URIs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_url_of_two_servers_is_ambiguous_for_all_clients() {
    for (era, is_modern, is_listed) in [
        (Era::Legacy, false, false),
        (Era::Legacy, true, true),
        (Era::Modern, false, true),
        (Era::Modern, true, false),
    ] {
        let scripts = ["a", "b"].map(|name| linking(era, name, &[]));
        let aggregator = aggregator(vec![scripts[0].member("a"), scripts[1].member("b")]);
        let mut first = Wire::modern(&aggregator, &json!({}));
        if is_listed {
            first.ask("resources/list", json!({})).await;
        }
        assert_eq!(linked(&mut first, "a").await, PAGE);
        let mut second = match is_modern {
            true => Wire::modern(&aggregator, &json!({})),
            false => Wire::legacy(&aggregator, &json!({})).await,
        };
        assert_eq!(linked(&mut second, "b").await, PAGE);
        assert_eq!(linked(&mut first, "a").await, PAGE);
        let refused = read(&mut second, PAGE).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        for server in ["a", "b"] {
            let named = format!("mcpact://{server}/{PAGE}");
            assert!(message.contains(&format!("`{named}`")), "{refused}");
            let answer = read(&mut second, &named).await;
            assert_eq!(answer["result"]["contents"][0]["text"], server, "{answer}");
        }
    }
}

/// AG-08: a web URL is read from the only server that sent or listed it. If several servers list it, the list contains
/// unambiguous URIs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_url_is_read_from_the_only_server_that_has_it() {
    let named = |server: &str| format!("mcpact://{server}/{PAGE}");
    let cells = [
        (
            &[][..],
            &["note://y"][..],
            vec![String::from("note://y")],
            Some("a"),
        ),
        (&[], &[PAGE], vec![PAGE.to_owned()], Some("b")),
        (&[PAGE], &[PAGE], vec![named("a"), named("b")], None),
    ];
    for (one, other, shown, from) in cells {
        let era = Era::Legacy;
        let (one, other) = (linking(era, "a", one), linking(era, "b", other));
        let aggregator = aggregator(vec![one.member("a"), other.member("b")]);
        let mut wire = Wire::legacy(&aggregator, &json!({})).await;
        assert_eq!(linked(&mut wire, "a").await, PAGE);
        let listed = wire.ask("resources/list", json!({})).await;
        let listed = listed["result"]["resources"].as_array().unwrap().iter();
        let listed: Vec<&Value> = listed.map(|resource| &resource["uri"]).collect();
        assert_eq!(listed, shown.iter().collect::<Vec<_>>());
        assert_eq!(linked(&mut wire, "a").await, PAGE);
        let answer = read(&mut wire, PAGE).await;
        let text = answer["result"]["contents"][0]["text"].as_str();
        assert_eq!(text, from, "{answer}");
    }
}
