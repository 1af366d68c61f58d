//! Servers whose own addresses look like the hub's, such as those of a gateway behind a gateway, or like those of
//! others, such as those of the web.

use serde_json::{Value, json};

use crate::house::hub;
use crate::scripted::{Script, Speaks};
use crate::wire::Wire;

/// What the inner gateway shows of its own server `a`.
const THEIRS: &str = "mcpact://a/note://x";

/// The same, as the outer one shows it.
const SHOWN: &str = "mcpact://inner/mcpact://a/note://x";

/// A server with this resource and this template, whose tool links to the resource.
fn script(era: Speaks, uri: &str, template: &str, text: &str) -> Script {
    let declared = json!({"tools": {}, "resources": {"subscribe": true}, "completions": {}});
    let script = Script::new(era, &declared);
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

/// AG-08: an address that a server gives in the form that names a server leads back to whoever gave it, in
/// lists, links and completions; nobody gets the addresses of another server by this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_names_a_server_leads_to_whoever_gave_it() {
    for era in [Speaks::Handshake, Speaks::Discover] {
        let own = script(era, "note://x", "own://{id}", "outer");
        let inner = script(era, THEIRS, "mcpact://a/own://{id}", "inner");
        let hub = hub(vec![own.member("a"), inner.member("inner")]);
        for mut wire in [
            Wire::legacy(&hub, &json!({})).await,
            Wire::modern(&hub, &json!({})),
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
async fn a_subscription_to_an_address_that_names_a_server_reaches_whoever_gave_it() {
    let era = Speaks::Handshake;
    let own = script(era, "note://x", "own://{id}", "outer");
    let inner = script(era, THEIRS, "mcpact://a/own://{id}", "inner");
    let hub = hub(vec![own.member("a"), inner.member("inner")]);
    let mut wire = Wire::legacy(&hub, &json!({})).await;
    let params = json!({"uri": SHOWN});
    let answer = wire.ask("resources/subscribe", params).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let heard = inner.heard("resources/subscribe");
    assert_eq!(heard[0]["params"]["uri"], THEIRS);
    assert_eq!(own.heard("resources/subscribe").len(), 0);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": THEIRS}});
    inner.put("news", &changed.to_string());
    let called = json!({"name": "inner__one", "arguments": {}});
    wire.begin("tools/call", called).await;
    let told = loop {
        let message = wire.hear().await;
        if message["method"] == "notifications/resources/updated" {
            break message;
        }
    };
    assert_eq!(told["params"]["uri"], SHOWN, "{told}");
}

/// The address of a page, which clients open by themselves.
const PAGE: &str = "https://w/x";

/// A server that links to the page, and lists it or nothing.
fn linking(era: Speaks, name: &str, lists: &[&str]) -> Script {
    let script = script(era, PAGE, "own://{id}", name);
    let listed: Vec<Value> = lists
        .iter()
        .map(|uri| json!({"uri": uri, "name": uri}))
        .collect();
    let listed = json!({"resultType": "complete", "resources": listed});
    script.answers("resources-list", &listed);
    script
}

/// AG-08: an address of the web that results of two servers have in them stays as it is for everybody, whatever is
/// listed, and is read from neither by itself, whoever called first; the refusal says what to use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_client_was_shown_does_not_decide_for_another() {
    for (era, is_modern, is_listed) in [
        (Speaks::Handshake, false, false),
        (Speaks::Handshake, true, true),
        (Speaks::Discover, false, true),
        (Speaks::Discover, true, false),
    ] {
        let scripts = ["a", "b"].map(|name| linking(era, name, &[]));
        let hub = hub(vec![scripts[0].member("a"), scripts[1].member("b")]);
        let mut first = Wire::modern(&hub, &json!({}));
        if is_listed {
            first.ask("resources/list", json!({})).await;
        }
        assert_eq!(linked(&mut first, "a").await, PAGE);
        let mut second = match is_modern {
            true => Wire::modern(&hub, &json!({})),
            false => Wire::legacy(&hub, &json!({})).await,
        };
        assert_eq!(linked(&mut second, "b").await, PAGE);
        assert_eq!(linked(&mut first, "a").await, PAGE);
        let refused = read(&mut second, PAGE).await;
        let told = refused["error"]["message"].as_str().unwrap_or_default();
        for server in ["a", "b"] {
            let named = format!("mcpact://{server}/{PAGE}");
            assert!(told.contains(&format!("`{named}`")), "{refused}");
            let answer = read(&mut second, &named).await;
            assert_eq!(answer["result"]["contents"][0]["text"], server, "{answer}");
        }
    }
}

/// AG-08: such an address of one server is read from it, and one that a server lists from that one, whoever else
/// mentions it; where several list it, their lists tell them apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_read_from_whoever_has_it() {
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
        let era = Speaks::Handshake;
        let (one, other) = (linking(era, "a", one), linking(era, "b", other));
        let hub = hub(vec![one.member("a"), other.member("b")]);
        let mut wire = Wire::legacy(&hub, &json!({})).await;
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
