//! Reload of a running gateway.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpact::client::{Change, Watch};
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{
    CATALOG, MORTAL, UNGUARDED, catalog, client, first_message, gateway, get, tools,
};

/// A new catalog takes effect for connected clients, which are notified; unchanged servers are not disturbed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_takes_effect_for_connected_clients() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (gateway, origin) = gateway(CATALOG).await;
        let connected = client(revision).connect(format!("{origin}/mcp")).await;
        let connected = connected.unwrap();
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        assert!(tools(&connected).await.contains(&"new__echo".to_owned()));
        let alone = client(revision).connect(format!("{origin}/servers/old/mcp"));
        let alone = alone.await.unwrap();
        let next = CATALOG.replace("[servers.new]", "[servers.newer]");
        let next = next.replace(
            "tags = [\"calm\"]",
            "tags = [\"calm\"]\nprefix = \"ancient\"",
        );
        let changed = gateway.change(catalog(&next)).unwrap();
        assert_eq!((changed.added.len(), changed.removed.len()), (1, 1));
        assert_eq!(changed.changed.len(), 1);
        let told = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
        assert!(told.unwrap().is_some());
        let after = tools(&connected).await;
        for (name, is_there) in [
            ("newer__echo", true),
            ("new__echo", false),
            ("ancient__echo", true),
            ("old__echo", false),
            ("late__echo", true),
        ] {
            assert_eq!(after.contains(&name.to_owned()), is_there, "{name}");
            let echoed = connected.call_tool(name, json!({"text": name})).await;
            assert_eq!(echoed.is_ok(), is_there, "{name}");
        }
        // The prefix of the server has changed.
        let echoed = alone.call_tool("echo", json!({"text": "still here"})).await;
        assert_eq!(echoed.unwrap().all_text(), "still here");
        alone.close().await;
        connected.close().await;
    }
}

/// A client that connected before any server existed, or while servers had only tools, is notified of added servers and
/// can use all their features.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_see_servers_that_are_added_later() {
    for revision in Revision::ALL {
        for (before, count) in [("", 0), (MORTAL, 2)] {
            let (gateway, origin) = gateway(before).await;
            let connected = client(revision).connect(format!("{origin}/mcp")).await;
            let connected = connected.unwrap();
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(tools(&connected).await.len(), count, "{revision}");
            assert!(connected.list_prompts().await.unwrap().is_empty());
            assert!(connected.list_resources().await.unwrap().is_empty());
            gateway
                .change(catalog(&format!("{before}{CATALOG}")))
                .unwrap();
            let mut untold = BTreeSet::from(["tools", "prompts", "resources"]);
            let hearing = async {
                while !untold.is_empty() {
                    untold.remove(match changes.next().await.unwrap() {
                        Change::Tools => "tools",
                        Change::Prompts => "prompts",
                        Change::Resources => "resources",
                        Change::Updated { .. } => continue,
                    });
                }
            };
            let heard = tokio::time::timeout(Duration::from_secs(20), hearing).await;
            assert!(heard.is_ok(), "{revision}: {untold:?}");
            assert!(tools(&connected).await.contains(&"new__echo".to_owned()));
            let prompts = connected.list_prompts().await.unwrap();
            assert!(
                prompts
                    .iter()
                    .any(|prompt| prompt.name.starts_with("new__"))
            );
            assert!(!connected.list_resources().await.unwrap().is_empty());
            connected.close().await;
        }
    }
}

/// A tag that no server has is refused with the known tags, even if it was used before; clients with a session stay
/// connected and see servers that get the tag again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_tags_are_refused() {
    let (gateway, origin) = gateway(CATALOG).await;
    let path = "/tags/calm/mcp";
    let stays = client(Revision::V2025_11_25).connect(format!("{origin}{path}"));
    let stays = stays.await.unwrap();
    let expected = ["old__echo".to_owned(), "late__echo".to_owned()];
    let before = tools(&stays).await;
    assert!(expected.iter().all(|name| before.contains(name)));
    let revisions = [Revision::V2025_11_25, Revision::V2026_07_28];
    for revision in revisions {
        let answer = first_message(&origin, path, revision).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    let next = CATALOG.replace("calm", "quiet");
    gateway.change(catalog(&next)).unwrap();
    for revision in revisions {
        let answer = first_message(&origin, path, revision).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        for words in ["no_such_tag", "`quiet`", "`wild`"] {
            assert!(answer.contains(words), "{answer}");
        }
    }
    stays.ping().await.unwrap();
    let why = stays.list_tools().await.unwrap_err().to_string();
    assert!(
        why.contains("no server has all of these tags: calm"),
        "{why}"
    );

    gateway.change(catalog(CATALOG)).unwrap();
    assert_eq!(tools(&stays).await, before);
    for revision in revisions {
        let answer = first_message(&origin, path, revision).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    stays.close().await;
}

/// One combination of tags too many is refused with an error that does not deny its tags.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tag_combinations_are_limited() {
    let tags: Vec<String> = (0..9).map(|tag| format!("t{tag}")).collect();
    let many = format!("tags = {tags:?}");
    let (_gateway, origin) = gateway(&CATALOG.replace("tags = [\"calm\", \"wild\"]", &many)).await;
    for choice in 1..=257 {
        let chosen = tags
            .iter()
            .enumerate()
            .filter(|(at, _)| choice >> at & 1 == 1);
        let chosen: Vec<&str> = chosen.map(|(_, tag)| &**tag).collect();
        let path = format!("/tags/{}/mcp", chosen.join(","));
        let answer = first_message(&origin, &path, Revision::V2026_07_28).await;
        let expected = if choice <= 256 {
            "HTTP/1.1 200"
        } else {
            "HTTP/1.1 404"
        };
        assert!(answer.starts_with(expected), "{choice}: {answer}");
        assert_eq!(
            answer.contains("too many different combinations of tags"),
            choice > 256
        );
        assert!(
            !answer.contains("no server has all of these tags"),
            "{answer}"
        );
    }
}

/// Instances of a removed or replaced server are in the status until they end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_servers_are_in_the_status() {
    let patient = "tags = [\"calm\", \"wild\"]\ndrain_seconds = 60";
    let first = CATALOG.replace("tags = [\"calm\", \"wild\"]", patient);
    let (gateway, origin) = gateway(&first).await;
    let seen = || {
        let status = gateway.status(None).unwrap();
        let late = status.servers.iter().find(|server| server.name == "late");
        late.map(|late| {
            let draining = late.instances.iter().filter(|one| one.state == "draining");
            (late.state.clone(), draining.count(), late.in_flight)
        })
    };
    let until = async |expected: Option<(&str, usize, usize)>| {
        let expected = expected.map(|(state, draining, calls)| (state.to_owned(), draining, calls));
        let waiting = async {
            while seen() != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "{expected:?}: {:?}", seen());
    };
    let client = client(Revision::V2025_11_25)
        .connect(format!("{origin}/mcp"))
        .await;
    let client = client.unwrap();
    let slow = json!({"seconds": 3600});
    let call = |client: mcpact::client::Client| async move {
        client.call_tool("late__slow_compute", slow).await
    };
    let call = tokio::spawn(call(client.clone()));
    until(Some(("busy", 0, 1))).await;
    let next = first.replace("2025-11-25", "2025-06-18");
    gateway.change(catalog(&next)).unwrap();
    until(Some(("asleep", 1, 1))).await;
    let metrics = get(&origin, "/metrics", "").await;
    for figure in [
        "mcpact_instances{server=\"late\",state=\"draining\"} 1",
        "mcpact_in_flight{server=\"late\"} 1",
    ] {
        assert!(metrics.contains(figure), "{figure}: {metrics}");
    }
    let next = first.replace("[servers.late]", "[servers.later]");
    gateway.change(catalog(&next)).unwrap();
    until(Some(("draining", 1, 1))).await;
    call.abort();
    until(None).await;
}

/// A catalog that cannot be served changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_catalogs_change_nothing() {
    let (gateway, origin) = gateway(CATALOG).await;
    let error = gateway.change(catalog(UNGUARDED)).unwrap_err().to_string();
    assert!(error.contains("server `new` cannot be confined"), "{error}");
    let connected = client(Revision::V2026_07_28)
        .connect(format!("{origin}/mcp"))
        .await;
    assert!(
        tools(&connected.unwrap())
            .await
            .contains(&"new__echo".to_owned())
    );
}

/// A catalog that cannot be served leaves the other servers as they are, also those that it would change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_catalog_does_not_change_other_servers() {
    let (gateway, origin) = gateway(CATALOG).await;
    let hidden = "tags = [\"calm\", \"wild\"]\nhidden_tools = [\"echo\"]";
    let next = CATALOG.replace("tags = [\"calm\", \"wild\"]", hidden);
    let next = next.split("[servers.new]").next().unwrap();
    gateway
        .change(catalog(&format!("{next}{UNGUARDED}")))
        .unwrap_err();
    let connected = client(Revision::V2026_07_28)
        .connect(format!("{origin}/servers/late/mcp"))
        .await
        .unwrap();
    assert!(tools(&connected).await.contains(&"echo".to_owned()));
    gateway.change(catalog(next)).unwrap();
    assert!(!tools(&connected).await.contains(&"echo".to_owned()));
}

/// Lists and calls complete however often the config changes meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_complete_during_continuous_reloads() {
    let (gateway, origin) = gateway(CATALOG).await;
    let client = client(Revision::V2025_11_25);
    let client = client.connect(format!("{origin}/mcp")).await.unwrap();
    assert!(!tools(&client).await.is_empty());
    let others = ["__", "-"].map(|mark| catalog(&format!("separator = \"{mark}\"\n{CATALOG}")));
    let changing = tokio::spawn(async move {
        for other in others.iter().cycle() {
            gateway.change(other.clone()).unwrap();
            tokio::task::yield_now().await;
        }
    });
    let answered = async {
        let listed = client.list_tools().await.map(|_| ());
        let called = client.call_tool("nothing", json!({})).await.map(|_| ());
        [listed, called]
    };
    let answered = tokio::time::timeout(Duration::from_secs(60), answered).await;
    changing.abort();
    let [listed, called] = answered.unwrap();
    if let Err(error) = listed {
        let why = error.to_string();
        assert!(why.contains("changed too often"), "{why}");
    }
    assert!(called.is_err());
}

/// Returns the numbers of the running instances.
fn running(gateway: &Gateway) -> Vec<u64> {
    let servers = gateway.status(None).unwrap().servers;
    let instances = servers.into_iter().flat_map(|server| server.instances);
    let running = instances.filter(|one| matches!(one.state.as_str(), "ready" | "busy"));
    running.map(|one| one.id).collect()
}

async fn until(gateway: &Gateway, is_so: impl Fn(&[u64]) -> bool) {
    let waiting = async {
        while !is_so(&running(gateway)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(waited.is_ok(), "{:#?}", gateway.status(None));
}

/// Changed limits and health checks apply to running instances: surplus instances stop, and an old check interval is
/// not awaited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_limits_apply_to_running_instances() {
    let rare = "health_seconds = 3600\n";
    let (gateway, _origin) = gateway(&format!("{MORTAL}{rare}min_ready = 3\n")).await;
    until(&gateway, |running| running.len() == 3).await;
    let first = running(&gateway);
    let change = |more: &str| gateway.change(catalog(&format!("{MORTAL}{more}"))).unwrap();
    change(&format!("{rare}max_instances = 1\n"));
    until(&gateway, |running| running.len() == 1).await;
    assert_eq!(running(&gateway), first[..1], "the oldest stays");
    change("health = \"tool:die\"\nhealth_seconds = 0.05\nmax_instances = 1\n");
    until(&gateway, |running| !running.contains(&first[0])).await;
}
