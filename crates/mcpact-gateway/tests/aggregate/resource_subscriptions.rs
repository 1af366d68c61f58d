//! Resources that several servers have under one address, and clients that want to hear of them.

use std::sync::Arc;

use mcpact::client::{Change, Changes, Client, Watch};
use mcpact_config::ToolFilter;
use mcpact_gateway::{Aggregator, Cache, ServerEntry};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::house::{by_http, client, everything, hub, on_lines};
use crate::scripted::PATIENCE;
use crate::wire::Wire;

pub(crate) const WATCHED: &str = "test://watched-resource";

/// A server changes its resource, and a client hears of it under an address.
pub(crate) async fn is_told(
    client: &Client,
    server: &str,
    changes: &mut Changes,
    uri: &str,
    what: &str,
) {
    let trigger = format!("{server}__test_trigger_resource_update");
    client.call_tool(&trigger, json!({})).await.unwrap();
    let uri = uri.to_owned();
    let expected = Some(Change::Updated { uri });
    // A client may be told of lists besides.
    let told = async { while changes.next().await != expected {} };
    let told = tokio::time::timeout(PATIENCE, told).await;
    assert!(told.is_ok(), "{what}");
}

/// AG-08: a client goes on hearing of a resource under the address that it has used, when another
/// server comes that has the same address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_survives_another_server_with_the_same_address() {
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for is_http in [false, true] {
                let what = format!("{revision} at {speaks}, http: {is_http}");
                let old = everything("old", speaks);
                let hub = hub(vec![old.clone()]);
                let connected = match is_http {
                    true => by_http(&hub, client(revision)).await,
                    false => on_lines(&hub, client(revision)).await,
                };
                let watch = Watch::new().resource(WATCHED);
                let mut changes = connected.watch(watch).await.unwrap();
                is_told(&connected, "old", &mut changes, WATCHED, &what).await;

                hub.replace(vec![everything("first", speaks), old], "__");
                let listed = connected.list_resources().await.unwrap();
                let named = format!("mcpact://old/{WATCHED}");
                assert!(listed.iter().any(|one| one.uri == named), "{what}");
                is_told(&connected, "old", &mut changes, WATCHED, &what).await;
                connected.close().await;
            }
        }
    }
}

/// Whoever has subscribed to a resource of a server that is started in another way goes on hearing of it,
/// and is told at once that it may have changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_survives_another_server_of_the_same_name() {
    let named = format!("mcpact://a/{WATCHED}");
    for before in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for after in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
                let what = format!("{revision} at {before}, then {after}");
                let old = everything("a", before);
                let hub = hub(vec![old.clone(), everything("b", before)]);
                let connected = by_http(&hub, client(revision)).await;
                let watch = Watch::new().resource(&named);
                let mut changes = connected.watch(watch).await.unwrap();
                is_told(&connected, "a", &mut changes, &named, &what).await;

                hub.replace(vec![everything("a", after), everything("b", after)], "__");
                old.server().clone().close().await;
                let uri = named.clone();
                let expected = Some(Change::Updated { uri });
                let told = async { while changes.next().await != expected {} };
                let told = tokio::time::timeout(PATIENCE, told).await;
                assert!(told.is_ok(), "{what}: it may have changed");
                is_told(&connected, "a", &mut changes, &named, &what).await;
                connected.close().await;
            }
        }
    }
}

/// Two servers with the same address, and a client that was subscribed to it before the second came.
async fn joined_later() -> (Arc<Aggregator>, Wire) {
    let old = everything("old", Revision::V2025_11_25);
    let hub = hub(vec![old.clone()]);
    let mut before = Wire::legacy(&hub, &json!({})).await;
    let answer = before
        .ask("resources/subscribe", json!({"uri": WATCHED}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    hub.replace(vec![everything("first", Revision::V2026_07_28), old], "__");
    (hub, before)
}

/// AG-08: an address that leaves open which server is meant is not subscribed to, unless the client
/// was before; the refusal says what to use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_open_which_server_is_meant_is_not_subscribed_to() {
    let (hub, mut before) = joined_later().await;
    let plain = json!({"uri": WATCHED});
    for uri in [WATCHED, "test://template/7/data"] {
        let mut after = Wire::legacy(&hub, &json!({})).await;
        let refused = after.ask("resources/subscribe", json!({"uri": uri})).await;
        let told = refused["error"]["message"].as_str().unwrap_or_default();
        for server in ["first", "old"] {
            let named = format!("`mcpact://{server}/{uri}`");
            assert!(told.contains(&named), "{refused}");
            let uri = format!("mcpact://{server}/{uri}");
            let answer = after.ask("resources/subscribe", json!({"uri": uri})).await;
            assert_eq!(answer["result"], json!({}), "{answer}");
        }
    }
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answer = before.ask(method, plain.clone()).await;
        assert_eq!(answer["result"], json!({}), "{method}: {answer}");
    }
    let refused = before.ask("resources/subscribe", plain).await;
    assert!(refused["error"].is_object(), "nothing is left: {refused}");

    let mut modern = Wire::modern(&hub, &json!({}));
    let named = format!("mcpact://old/{WATCHED}");
    let wanted = json!({"resourceSubscriptions": [WATCHED, named]});
    modern
        .begin("subscriptions/listen", json!({"notifications": wanted}))
        .await;
    let agreed = modern.hear().await;
    let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*agreed, json!([named]));
}

/// AG-08: an address that leaves open which server is meant is neither read nor completed, unless the
/// client is subscribed to it: then it means what it meant. The refusal says what to use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_open_which_server_is_meant_is_not_read() {
    let (hub, mut before) = joined_later().await;
    let plain = json!({"uri": WATCHED});
    let template = "test://template/{id}/data";
    let read = |uri: &str| ("resources/read", json!({"uri": uri}));
    let complete = |uri: &str| {
        let reference = json!({"type": "ref/resource", "uri": uri});
        let argument = json!({"name": "id", "value": ""});
        let params = json!({"ref": reference, "argument": argument});
        ("completion/complete", params)
    };
    let legacy = Wire::legacy(&hub, &json!({})).await;
    for mut wire in [legacy, Wire::modern(&hub, &json!({}))] {
        for (uri, asking) in [
            (WATCHED, &read as &dyn Fn(&str) -> (&'static str, Value)),
            ("test://template/7/data", &read),
            (template, &complete),
        ] {
            let (method, params) = asking(uri);
            let refused = wire.ask(method, params).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            let told = refused["error"]["message"].as_str().unwrap_or_default();
            for server in ["first", "old"] {
                let named = format!("mcpact://{server}/{uri}");
                assert!(told.contains(&format!("`{named}`")), "{refused}");
                let (method, params) = asking(&named);
                let answer = wire.ask(method, params).await;
                assert!(answer["result"].is_object(), "{answer}");
                if let Some(contents) = answer["result"].get("contents") {
                    assert_eq!(contents[0]["uri"], named, "as it was asked for");
                }
            }
            let (method, params) = asking(uri);
            let again = wire.ask(method, params).await;
            assert_eq!(again["error"], refused["error"], "nothing has changed");
        }
    }
    let answer = before.ask("resources/read", plain).await;
    let read = &answer["result"]["contents"][0]["uri"];
    assert_eq!(*read, format!("mcpact://old/{WATCHED}"), "{answer}");
}

/// AG-08: what a server does not have is not taken for its own because an error tells of it, and the
/// error tells of what was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_error_tells_of_is_nobodys() {
    let servers = ["a", "b"].map(|name| everything(name, Revision::V2025_11_25));
    let hub = hub(servers.to_vec());
    let mut wire = Wire::legacy(&hub, &json!({})).await;
    for uri in [
        "mcpact://b/zz://q",
        "mcpact://a/zz://q",
        "mcpact://b/zz://q",
    ] {
        let params = json!({"uri": uri});
        let missing = wire.ask("resources/read", params).await;
        assert_eq!(missing["error"]["data"]["uri"], uri, "{missing}");
    }
    let missing = wire.ask("resources/read", json!({"uri": "zz://q"})).await;
    let told = missing["error"]["message"].as_str().unwrap_or_default();
    assert!(told.starts_with("Unknown resource: `zz://q`"), "{missing}");
}

/// AG-08: what a result has in it is shown under an address that leads to its server, also while nobody has
/// listed resources; where one server has resources, it stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_result_has_leads_to_its_server_before_anything_is_listed() {
    let embedded = "test://embedded-resource";
    let servers = ["a", "b"].map(|name| everything(name, Revision::V2025_11_25));
    let together = hub(servers.to_vec());
    let alone = hub(vec![everything("a", Revision::V2025_11_25)]);
    for (hub, server, expected) in [
        (&together, "a", format!("mcpact://a/{embedded}")),
        (&together, "b", format!("mcpact://b/{embedded}")),
        (&alone, "a", embedded.to_owned()),
    ] {
        let mut wire = Wire::legacy(hub, &json!({})).await;
        let tool = format!("{server}__test_embedded_resource");
        let params = json!({"name": tool, "arguments": {}});
        let answer = wire.ask("tools/call", params).await;
        let uri = &answer["result"]["content"][0]["resource"]["uri"];
        assert_eq!(*uri, expected, "{answer}");
    }
}

/// An address that names a server that there is not is refused with those that there are, also where
/// only one server has resources.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_an_unknown_server_is_refused() {
    let hub = hub(vec![everything("only", Revision::V2025_11_25)]);
    for revision in Revision::ALL {
        let connected = on_lines(&hub, client(revision)).await;
        let error = connected.read_resource("mcpact://nosuch/foo://zzz").await;
        let error = error.unwrap_err();
        let code = match revision.era() {
            Era::Legacy => -32002,
            Era::Modern => -32602,
        };
        assert_eq!(error.code(), Some(code), "{revision}: {error}");
        let told = error.to_string();
        assert!(told.contains("asks one of: `only`"), "{revision}: {told}");
        connected.close().await;
    }
}

/// F4: nobody is told that it will hear of a resource that there is nowhere, whatever the server speaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_not_is_not_subscribed_to() {
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let hub = hub(vec![everything("only", speaks)]);
        let mut legacy = Wire::legacy(&hub, &json!({})).await;
        let refused = legacy
            .ask("resources/subscribe", json!({"uri": "zz://q"}))
            .await;
        let code = match speaks.era() {
            Era::Legacy => -32002,
            // What a modern server leaves out it may have or not.
            Era::Modern => -32602,
        };
        let error = &refused["error"];
        assert_eq!(error["code"], code, "{speaks}: {refused}");
        assert_eq!(error["data"]["uri"], "zz://q", "{speaks}: {refused}");
        let answer = legacy
            .ask("resources/subscribe", json!({"uri": WATCHED}))
            .await;
        assert_eq!(answer["result"], json!({}), "{speaks}: {answer}");

        let mut modern = Wire::modern(&hub, &json!({}));
        let wanted = json!({"resourceSubscriptions": ["zz://q", WATCHED]});
        modern
            .begin("subscriptions/listen", json!({"notifications": wanted}))
            .await;
        let agreed = modern.hear().await;
        let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*agreed, json!([WATCHED]), "{speaks}");
    }
}

pub(crate) fn is_update(message: &Value) -> bool {
    message["method"] == "notifications/resources/updated"
}

/// AG-08: what a client has subscribed to before a server got other settings is what it ends afterwards, at the same
/// server and for itself, also when the address leaves open which server is meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_ends_after_other_settings() {
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let old = everything("old", speaks);
        let hub = hub(vec![old.clone()]);
        let mut wire = Wire::legacy(&hub, &json!({})).await;
        let plain = json!({"uri": WATCHED});
        let answer = wire.ask("resources/subscribe", plain.clone()).await;
        assert_eq!(answer["result"], json!({}), "{speaks}: {answer}");

        let cache = Cache::disabled();
        let retuned = ServerEntry::with(
            "old",
            "other",
            Vec::new(),
            ToolFilter::default(),
            Arc::clone(old.server()),
            &cache,
        );
        hub.replace(vec![everything("first", speaks), retuned], "__");
        let trigger = json!({"name": "other__test_trigger_resource_update", "arguments": {}});
        wire.begin("tools/call", trigger.clone()).await;
        let told = async { while !is_update(&wire.hear().await) {} };
        let told = tokio::time::timeout(PATIENCE, told).await;
        assert!(told.is_ok(), "{speaks}: it goes on");
        let answer = wire.ask("resources/unsubscribe", plain).await;
        assert_eq!(answer["result"], json!({}), "{speaks}: {answer}");
        for (method, params) in [("tools/call", trigger), ("ping", json!({}))] {
            let id = wire.begin(method, params).await;
            loop {
                let heard = wire.hear().await;
                assert!(!is_update(&heard), "{speaks}: it has ended");
                if heard["id"] == id {
                    break;
                }
            }
        }
    }
}
