//! Subscriptions to resources with the same URI at several servers.

use std::sync::Arc;

use mcpact::client::{Change, Changes, Client, Watch};
use mcpact_config::ToolFilter;
use mcpact_gateway::{Aggregator, Cache, ServerEntry};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::in_process::{aggregator, client, everything, on_http, on_stdio};
use crate::scripted_process::PATIENCE;
use crate::wire::Wire;

pub(crate) const WATCHED: &str = "test://watched-resource";

/// Makes a server change its resource, and waits for the update with this URI.
pub(crate) async fn expect_update(
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
    // List changes may come before it.
    let notified = async { while changes.next().await != expected {} };
    let notified = tokio::time::timeout(PATIENCE, notified).await;
    assert!(notified.is_ok(), "{what}");
}

/// AG-08: a subscription keeps its URI when another server with the same URI is added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_survives_another_server_with_the_same_uri() {
    for server_revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for is_http in [false, true] {
                let what = format!("{revision} at {server_revision}, http: {is_http}");
                let old = everything("old", server_revision);
                let aggregator = aggregator(vec![old.clone()]);
                let connected = match is_http {
                    true => on_http(&aggregator, client(revision)).await,
                    false => on_stdio(&aggregator, client(revision)).await,
                };
                let watch = Watch::new().resource(WATCHED);
                let mut changes = connected.watch(watch).await.unwrap();
                expect_update(&connected, "old", &mut changes, WATCHED, &what).await;

                aggregator.replace(vec![everything("first", server_revision), old], "__");
                let listed = connected.list_resources().await.unwrap();
                let named = format!("mcpact://old/{WATCHED}");
                assert!(listed.iter().any(|one| one.uri == named), "{what}");
                expect_update(&connected, "old", &mut changes, WATCHED, &what).await;
                connected.close().await;
            }
        }
    }
}

/// A subscription survives the replacement of its server by another one of the same name, with an immediate update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_survives_the_replacement_of_its_server() {
    let named = format!("mcpact://a/{WATCHED}");
    for before in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for after in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
                let what = format!("{revision} at {before}, then {after}");
                let old = everything("a", before);
                let aggregator = aggregator(vec![old.clone(), everything("b", before)]);
                let connected = on_http(&aggregator, client(revision)).await;
                let watch = Watch::new().resource(&named);
                let mut changes = connected.watch(watch).await.unwrap();
                expect_update(&connected, "a", &mut changes, &named, &what).await;

                aggregator.replace(vec![everything("a", after), everything("b", after)], "__");
                old.server().clone().close().await;
                let uri = named.clone();
                let expected = Some(Change::Updated { uri });
                let notified = async { while changes.next().await != expected {} };
                let notified = tokio::time::timeout(PATIENCE, notified).await;
                assert!(notified.is_ok(), "{what}: it may have changed");
                expect_update(&connected, "a", &mut changes, &named, &what).await;
                connected.close().await;
            }
        }
    }
}

/// Returns two servers with the same URI, and a client that subscribed to it before the second was added.
async fn joined_later() -> (Arc<Aggregator>, Wire) {
    let old = everything("old", Revision::V2025_11_25);
    let aggregator = aggregator(vec![old.clone()]);
    let mut before = Wire::legacy(&aggregator, &json!({})).await;
    let answer = before
        .ask("resources/subscribe", json!({"uri": WATCHED}))
        .await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    aggregator.replace(vec![everything("first", Revision::V2026_07_28), old], "__");
    (aggregator, before)
}

/// AG-08: a subscription to an ambiguous URI is refused with the unambiguous URIs, unless the client subscribed before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_to_an_ambiguous_uri_is_refused() {
    let (aggregator, mut before) = joined_later().await;
    let plain = json!({"uri": WATCHED});
    for uri in [WATCHED, "test://template/7/data"] {
        let mut after = Wire::legacy(&aggregator, &json!({})).await;
        let refused = after.ask("resources/subscribe", json!({"uri": uri})).await;
        let text = refused["error"]["message"].as_str().unwrap_or_default();
        for server in ["first", "old"] {
            let named = format!("`mcpact://{server}/{uri}`");
            assert!(text.contains(&named), "{refused}");
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
    assert!(
        refused["error"].is_object(),
        "no subscription is left: {refused}"
    );

    let mut modern = Wire::modern(&aggregator, &json!({}));
    let named = format!("mcpact://old/{WATCHED}");
    let wanted = json!({"resourceSubscriptions": [WATCHED, named]});
    modern
        .begin("subscriptions/listen", json!({"notifications": wanted}))
        .await;
    let acknowledged = modern.recv().await;
    let acknowledged = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*acknowledged, json!([named]));
}

/// AG-08: reading and completing an ambiguous URI is refused with the unambiguous URIs, unless the client is subscribed to
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_an_ambiguous_uri_is_refused() {
    let (aggregator, mut before) = joined_later().await;
    let plain = json!({"uri": WATCHED});
    let template = "test://template/{id}/data";
    let read = |uri: &str| ("resources/read", json!({"uri": uri}));
    let complete = |uri: &str| {
        let reference = json!({"type": "ref/resource", "uri": uri});
        let argument = json!({"name": "id", "value": ""});
        let params = json!({"ref": reference, "argument": argument});
        ("completion/complete", params)
    };
    let legacy = Wire::legacy(&aggregator, &json!({})).await;
    for mut wire in [legacy, Wire::modern(&aggregator, &json!({}))] {
        for (uri, asking) in [
            (WATCHED, &read as &dyn Fn(&str) -> (&'static str, Value)),
            ("test://template/7/data", &read),
            (template, &complete),
        ] {
            let (method, params) = asking(uri);
            let refused = wire.ask(method, params).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            let text = refused["error"]["message"].as_str().unwrap_or_default();
            for server in ["first", "old"] {
                let named = format!("mcpact://{server}/{uri}");
                assert!(text.contains(&format!("`{named}`")), "{refused}");
                let (method, params) = asking(&named);
                let answer = wire.ask(method, params).await;
                assert!(answer["result"].is_object(), "{answer}");
                if let Some(contents) = answer["result"].get("contents") {
                    assert_eq!(contents[0]["uri"], named, "the requested URI");
                }
            }
            let (method, params) = asking(uri);
            let again = wire.ask(method, params).await;
            assert_eq!(
                again["error"], refused["error"],
                "the second error is the same"
            );
        }
    }
    let answer = before.ask("resources/read", plain).await;
    let read = &answer["result"]["contents"][0]["uri"];
    assert_eq!(*read, format!("mcpact://old/{WATCHED}"), "{answer}");
}

/// AG-08: a URI in an error does not assign the URI to a server, and the error contains the requested URI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uri_in_an_error_is_not_assigned_to_a_server() {
    let servers = ["a", "b"].map(|name| everything(name, Revision::V2025_11_25));
    let aggregator = aggregator(servers.to_vec());
    let mut wire = Wire::legacy(&aggregator, &json!({})).await;
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
    let text = missing["error"]["message"].as_str().unwrap_or_default();
    assert!(text.starts_with("Unknown resource: `zz://q`"), "{missing}");
}

/// AG-08: URIs in results name their server, also before the first list. With one server they stay unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uri_in_a_result_names_its_server_before_the_first_list() {
    let embedded = "test://embedded-resource";
    let servers = ["a", "b"].map(|name| everything(name, Revision::V2025_11_25));
    let together = aggregator(servers.to_vec());
    let alone = aggregator(vec![everything("a", Revision::V2025_11_25)]);
    for (aggregator, server, expected) in [
        (&together, "a", format!("mcpact://a/{embedded}")),
        (&together, "b", format!("mcpact://b/{embedded}")),
        (&alone, "a", embedded.to_owned()),
    ] {
        let mut wire = Wire::legacy(aggregator, &json!({})).await;
        let tool = format!("{server}__test_embedded_resource");
        let params = json!({"name": tool, "arguments": {}});
        let answer = wire.ask("tools/call", params).await;
        let uri = &answer["result"]["content"][0]["resource"]["uri"];
        assert_eq!(*uri, expected, "{answer}");
    }
}

/// A URI with an unknown server name is refused with the valid names, also if only one server has resources.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uri_of_an_unknown_server_is_refused() {
    let aggregator = aggregator(vec![everything("only", Revision::V2025_11_25)]);
    for revision in Revision::ALL {
        let connected = on_stdio(&aggregator, client(revision)).await;
        let error = connected.read_resource("mcpact://nosuch/foo://zzz").await;
        let error = error.unwrap_err();
        let code = match revision.era() {
            Era::Legacy => -32002,
            Era::Modern => -32602,
        };
        assert_eq!(error.code(), Some(code), "{revision}: {error}");
        let text = error.to_string();
        assert!(text.contains("servers: `only`"), "{revision}: {text}");
        connected.close().await;
    }
}

/// F4: a subscription to an unknown resource is not acknowledged, for servers of each era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_to_an_unknown_resource_is_refused() {
    for server_revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let aggregator = aggregator(vec![everything("only", server_revision)]);
        let mut legacy = Wire::legacy(&aggregator, &json!({})).await;
        let refused = legacy
            .ask("resources/subscribe", json!({"uri": "zz://q"}))
            .await;
        let code = match server_revision.era() {
            Era::Legacy => -32002,
            // A modern server leaves it out of the acknowledgement.
            Era::Modern => -32602,
        };
        let error = &refused["error"];
        assert_eq!(error["code"], code, "{server_revision}: {refused}");
        assert_eq!(
            error["data"]["uri"], "zz://q",
            "{server_revision}: {refused}"
        );
        let answer = legacy
            .ask("resources/subscribe", json!({"uri": WATCHED}))
            .await;
        assert_eq!(answer["result"], json!({}), "{server_revision}: {answer}");

        let mut modern = Wire::modern(&aggregator, &json!({}));
        let wanted = json!({"resourceSubscriptions": ["zz://q", WATCHED]});
        modern
            .begin("subscriptions/listen", json!({"notifications": wanted}))
            .await;
        let acknowledged = modern.recv().await;
        let acknowledged = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*acknowledged, json!([WATCHED]), "{server_revision}");
    }
}

pub(crate) fn is_update(message: &Value) -> bool {
    message["method"] == "notifications/resources/updated"
}

/// AG-08: a client can end a subscription after the settings of the server changed, also if the URI is now ambiguous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_can_be_ended_after_a_settings_change() {
    for server_revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let old = everything("old", server_revision);
        let aggregator = aggregator(vec![old.clone()]);
        let mut wire = Wire::legacy(&aggregator, &json!({})).await;
        let plain = json!({"uri": WATCHED});
        let answer = wire.ask("resources/subscribe", plain.clone()).await;
        assert_eq!(answer["result"], json!({}), "{server_revision}: {answer}");

        let cache = Cache::disabled();
        let retuned = ServerEntry::with(
            "old",
            "other",
            Vec::new(),
            ToolFilter::default(),
            Arc::clone(old.server()),
            &cache,
        );
        aggregator.replace(vec![everything("first", server_revision), retuned], "__");
        let trigger = json!({"name": "other__test_trigger_resource_update", "arguments": {}});
        wire.begin("tools/call", trigger.clone()).await;
        let notified = async { while !is_update(&wire.recv().await) {} };
        let notified = tokio::time::timeout(PATIENCE, notified).await;
        assert!(notified.is_ok(), "{server_revision}: updates continue");
        let answer = wire.ask("resources/unsubscribe", plain).await;
        assert_eq!(answer["result"], json!({}), "{server_revision}: {answer}");
        for (method, params) in [("tools/call", trigger), ("ping", json!({}))] {
            let id = wire.begin(method, params).await;
            loop {
                let received = wire.recv().await;
                assert!(!is_update(&received), "{server_revision}: it has ended");
                if received["id"] == id {
                    break;
                }
            }
        }
    }
}
