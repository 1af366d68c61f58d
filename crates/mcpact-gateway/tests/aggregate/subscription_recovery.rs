//! Servers that go and come back, and clients that have subscribed to what they have.

use std::sync::Arc;

use mcpact::client::{Change, Watch};
use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, Cache, ServerEntry};
use mcpact_spec::{Era, Revision};
use serde_json::json;

use crate::house::{by_http, client, everything, hub};
use crate::mixed_era_subscriptions::{ERAS, Subscriber, subscribable};
use crate::resource_subscriptions::{WATCHED, is_told, is_update};
use crate::scripted::{PATIENCE, Script, Speaks, until};
use crate::wire::Wire;

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Whoever has subscribed to a resource of a server that another config does not have, and a later one has again,
/// goes on hearing of it, and is told that it may have changed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_waits_for_its_server() {
    let named = format!("mcpact://a/{WATCHED}");
    for before in REVISIONS {
        for after in REVISIONS {
            for revision in REVISIONS {
                let what = format!("{revision} at {before}, then {after}");
                let (old, other) = (everything("a", before), everything("b", before));
                let hub = hub(vec![old.clone(), other.clone()]);
                let connected = by_http(&hub, client(revision)).await;
                let watch = Watch::new().resource(&named);
                let mut changes = connected.watch(watch).await.unwrap();
                is_told(&connected, "a", &mut changes, &named, &what).await;

                hub.replace(vec![other.clone()], "__");
                old.server().clone().close().await;
                let gone = connected.read_resource(&named).await;
                assert!(gone.is_err(), "{what}: {gone:?}");
                hub.replace(vec![everything("a", after), other], "__");
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

/// The same for a server that runs on and is not shown for a while, as one that loses a tag and gets it again:
/// what changes meanwhile is told when it is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_waits_for_a_server_that_runs_elsewhere() {
    let named = format!("mcpact://a/{WATCHED}");
    for speaks in REVISIONS {
        for revision in REVISIONS {
            let what = format!("{revision} at {speaks}");
            let (member, other) = (everything("a", speaks), everything("b", speaks));
            let all = vec![member, other.clone()];
            let (part, whole) = (hub(all.clone()), hub(all.clone()));
            let connected = by_http(&part, client(revision)).await;
            let watch = Watch::new().resource(&named);
            let mut changes = connected.watch(watch).await.unwrap();
            part.replace(vec![other], "__");
            let elsewhere = by_http(&whole, client(revision)).await;
            let watch = Watch::new().resource(&named);
            let mut seen = elsewhere.watch(watch).await.unwrap();
            is_told(&elsewhere, "a", &mut seen, &named, &what).await;
            part.replace(all, "__");
            let uri = named.clone();
            let expected = Some(Change::Updated { uri });
            let told = async { while changes.next().await != expected {} };
            let told = tokio::time::timeout(PATIENCE, told).await;
            assert!(told.is_ok(), "{what}: it may have changed");
            is_told(&connected, "a", &mut changes, &named, &what).await;
            is_told(&elsewhere, "a", &mut seen, &named, &what).await;
        }
    }
}

/// Changes the resource of a server, until a client hears of it.
async fn hears_of_change(wire: &mut Wire, what: &str) {
    let trigger = json!({"name": "a__test_trigger_resource_update", "arguments": {}});
    wire.begin("tools/call", trigger).await;
    let told = async { while !is_update(&wire.hear().await) {} };
    let told = tokio::time::timeout(PATIENCE, told).await;
    assert!(told.is_ok(), "{what}");
}

/// A client can end a subscription while its server is away, and it does not come back with the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_while_the_server_is_away_stays_ended() {
    for speaks in REVISIONS {
        let what = speaks.to_string();
        let uri = json!({"uri": format!("mcpact://a/{WATCHED}")});
        let (old, other) = (everything("a", speaks), everything("b", speaks));
        let hub = hub(vec![old.clone(), other.clone()]);
        let mut ending = Wire::legacy(&hub, &json!({})).await;
        let mut staying = Wire::legacy(&hub, &json!({})).await;
        for wire in [&mut ending, &mut staying] {
            let answer = wire.ask("resources/subscribe", uri.clone()).await;
            assert_eq!(answer["result"], json!({}), "{what}: {answer}");
        }
        hub.replace(vec![other.clone()], "__");
        old.server().clone().close().await;
        let answer = ending.ask("resources/unsubscribe", uri.clone()).await;
        assert_eq!(answer["result"], json!({}), "{what}: {answer}");
        let answer = ending.ask("resources/unsubscribe", uri).await;
        assert!(answer["error"].is_object(), "{what}: {answer}");

        hub.replace(vec![everything("a", speaks), other], "__");
        let told = async { while !is_update(&staying.hear().await) {} };
        let told = tokio::time::timeout(PATIENCE, told).await;
        assert!(told.is_ok(), "{what}: it may have changed");
        hears_of_change(&mut staying, &what).await;
        let ping = ending.begin("ping", json!({})).await;
        loop {
            let heard = ending.hear().await;
            assert!(!is_update(&heard), "{what}: it has ended");
            if heard["id"] == ping {
                break;
            }
        }
    }
}

/// Every era of client at every era of server.
fn pairs() -> impl Iterator<Item = (Era, Speaks)> {
    let servers = [Speaks::Handshake, Speaks::Discover];
    ERAS.into_iter()
        .flat_map(move |client| servers.map(|server| (client, server)))
}

fn member(script: &Script) -> Arc<ServerEntry> {
    script.member_run("s", &Cache::disabled(), RunSettings::default())
}

async fn subscribed(
    client: Era,
    script: &Script,
) -> (Arc<Aggregator>, Arc<ServerEntry>, Subscriber) {
    let member = member(script);
    let hub = hub(vec![member.clone()]);
    let subscriber = Subscriber::new(&hub, client).await;
    (hub, member, subscriber)
}

/// A server that comes back and does not start is tried until it does; what clients have subscribed to is
/// subscribed to then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_waits_until_its_server_starts() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (hub, old, mut subscriber) = subscribed(client, &script).await;
        hub.replace(Vec::new(), "__");
        old.server().clone().close().await;
        script.put("broken", "");
        hub.replace(vec![member(&script)], "__");
        until(&what, || script.starts() > 1).await;
        script.remove("broken");
        subscriber.is_told(&what).await;
        subscriber.hears(&script, &what).await;
    }
}

/// A server that dies is subscribed to again, whatever it and the client speak, and the client is told that
/// the resource may have changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_outlives_a_death() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (_hub, _member, mut subscriber) = subscribed(client, &script).await;
        script.kill();
        subscriber.is_told(&what).await;
        subscriber.hears(&script, &what).await;
    }
}

/// F4: a server is not listened to for a client that has gone, whatever it and the client speak.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_gone_is_not_listened_for() {
    for (client, server) in pairs() {
        let what = format!("{client:?} at {server:?}");
        let script = subscribable(server);
        let (hub, _member, subscriber) = subscribed(client, &script).await;
        let ended = match server {
            Speaks::Handshake => "resources/unsubscribe",
            Speaks::Discover => "notifications/cancelled",
        };
        let mut staying = Subscriber::new(&hub, client).await;
        drop(subscriber);
        staying.hears(&script, &what).await;
        if server == Speaks::Handshake {
            assert!(script.heard(ended).is_empty(), "{what}: somebody wants it");
        }
        drop(staying);
        until(&what, || !script.heard(ended).is_empty()).await;
    }
}
