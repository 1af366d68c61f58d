//! Subscriptions while their server is away.

use std::sync::Arc;

use mcpact::client::{Change, Watch};
use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, Cache, ServerEntry};
use mcpact_spec::{Era, Revision};
use serde_json::json;

use crate::in_process::{aggregator, client, everything, on_http};
use crate::mixed_era_subscriptions::{ERAS, Subscriber, subscribable};
use crate::resource_subscriptions::{WATCHED, expect_update, is_update};
use crate::scripted_process::{PATIENCE, ScriptedProcess, until};
use crate::wire::Wire;

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A subscription survives the removal of its server from the config: when the server is back, the client gets an update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_waits_for_its_server() {
    let named = format!("mcpact://a/{WATCHED}");
    for before in REVISIONS {
        for after in REVISIONS {
            for revision in REVISIONS {
                let what = format!("{revision} at {before}, then {after}");
                let (old, other) = (everything("a", before), everything("b", before));
                let aggregator = aggregator(vec![old.clone(), other.clone()]);
                let connected = on_http(&aggregator, client(revision)).await;
                let watch = Watch::new().resource(&named);
                let mut changes = connected.watch(watch).await.unwrap();
                expect_update(&connected, "a", &mut changes, &named, &what).await;

                aggregator.replace(vec![other.clone()], "__");
                old.server().clone().close().await;
                let gone = connected.read_resource(&named).await;
                assert!(gone.is_err(), "{what}: {gone:?}");
                aggregator.replace(vec![everything("a", after), other], "__");
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

/// The same for a running server that is hidden for a while, for example by a tag: the client gets an update when it is
/// visible again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_waits_for_a_hidden_server() {
    let named = format!("mcpact://a/{WATCHED}");
    for server_revision in REVISIONS {
        for revision in REVISIONS {
            let what = format!("{revision} at {server_revision}");
            let (member, other) = (
                everything("a", server_revision),
                everything("b", server_revision),
            );
            let all = vec![member, other.clone()];
            let (part, whole) = (aggregator(all.clone()), aggregator(all.clone()));
            let connected = on_http(&part, client(revision)).await;
            let watch = Watch::new().resource(&named);
            let mut changes = connected.watch(watch).await.unwrap();
            part.replace(vec![other], "__");
            let elsewhere = on_http(&whole, client(revision)).await;
            let watch = Watch::new().resource(&named);
            let mut seen = elsewhere.watch(watch).await.unwrap();
            expect_update(&elsewhere, "a", &mut seen, &named, &what).await;
            part.replace(all, "__");
            let uri = named.clone();
            let expected = Some(Change::Updated { uri });
            let notified = async { while changes.next().await != expected {} };
            let notified = tokio::time::timeout(PATIENCE, notified).await;
            assert!(notified.is_ok(), "{what}: it may have changed");
            expect_update(&connected, "a", &mut changes, &named, &what).await;
            expect_update(&elsewhere, "a", &mut seen, &named, &what).await;
        }
    }
}

/// Changes the resource of a server and waits for the update.
async fn expect_change(wire: &mut Wire, what: &str) {
    let trigger = json!({"name": "a__test_trigger_resource_update", "arguments": {}});
    wire.begin("tools/call", trigger).await;
    let notified = async { while !is_update(&wire.recv().await) {} };
    let notified = tokio::time::timeout(PATIENCE, notified).await;
    assert!(notified.is_ok(), "{what}");
}

/// A subscription ended while its server is away is not restored with the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_ended_without_its_server_is_not_restored() {
    for server_revision in REVISIONS {
        let what = server_revision.to_string();
        let uri = json!({"uri": format!("mcpact://a/{WATCHED}")});
        let (old, other) = (
            everything("a", server_revision),
            everything("b", server_revision),
        );
        let aggregator = aggregator(vec![old.clone(), other.clone()]);
        let mut ending = Wire::legacy(&aggregator, &json!({})).await;
        let mut staying = Wire::legacy(&aggregator, &json!({})).await;
        for wire in [&mut ending, &mut staying] {
            let answer = wire.ask("resources/subscribe", uri.clone()).await;
            assert_eq!(answer["result"], json!({}), "{what}: {answer}");
        }
        aggregator.replace(vec![other.clone()], "__");
        old.server().clone().close().await;
        let answer = ending.ask("resources/unsubscribe", uri.clone()).await;
        assert_eq!(answer["result"], json!({}), "{what}: {answer}");
        let answer = ending.ask("resources/unsubscribe", uri).await;
        assert!(answer["error"].is_object(), "{what}: {answer}");

        aggregator.replace(vec![everything("a", server_revision), other], "__");
        let notified = async { while !is_update(&staying.recv().await) {} };
        let notified = tokio::time::timeout(PATIENCE, notified).await;
        assert!(notified.is_ok(), "{what}: it may have changed");
        expect_change(&mut staying, &what).await;
        let ping = ending.begin("ping", json!({})).await;
        loop {
            let received = ending.recv().await;
            assert!(!is_update(&received), "{what}: it has ended");
            if received["id"] == ping {
                break;
            }
        }
    }
}

/// All pairs of eras of client and server.
fn pairs() -> impl Iterator<Item = (Era, Era)> {
    let servers = [Era::Legacy, Era::Modern];
    ERAS.into_iter()
        .flat_map(move |client| servers.map(|server| (client, server)))
}

fn member(script: &ScriptedProcess) -> Arc<ServerEntry> {
    script.member_run("s", &Cache::disabled(), RunSettings::default())
}

async fn subscribed(
    client: Era,
    script: &ScriptedProcess,
) -> (Arc<Aggregator>, Arc<ServerEntry>, Subscriber) {
    let member = member(script);
    let aggregator = aggregator(vec![member.clone()]);
    let subscriber = Subscriber::new(&aggregator, client).await;
    (aggregator, member, subscriber)
}

/// A server that is back but fails to start is started again until it succeeds, and is then subscribed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_waits_until_its_server_starts() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (aggregator, old, mut subscriber) = subscribed(client, &script).await;
        aggregator.replace(Vec::new(), "__");
        old.server().clone().close().await;
        script.put("broken", "");
        aggregator.replace(vec![member(&script)], "__");
        until(&what, || script.starts() > 1).await;
        script.remove("broken");
        subscriber.expect_update(&what).await;
        subscriber.expect_update_of(&script, &what).await;
    }
}

/// A subscription is restored after its server was killed, in all combinations of eras, and the client gets an update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_survives_a_killed_server() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (_hub, _member, mut subscriber) = subscribed(client, &script).await;
        script.kill();
        subscriber.expect_update(&what).await;
        subscriber.expect_update_of(&script, &what).await;
    }
}

/// F4: the subscription of a disconnected client ends at the server, in all combinations of eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_ends_with_its_client() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (aggregator, _member, subscriber) = subscribed(client, &script).await;
        let ended = match server {
            Era::Legacy => "resources/unsubscribe",
            Era::Modern => "notifications/cancelled",
        };
        let mut staying = Subscriber::new(&aggregator, client).await;
        drop(subscriber);
        staying.expect_update_of(&script, &what).await;
        if server == Era::Legacy {
            assert!(
                script.received(ended).is_empty(),
                "{what}: one subscriber is left"
            );
        }
        drop(staying);
        until(&what, || !script.received(ended).is_empty()).await;
    }
}
