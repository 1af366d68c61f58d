//! Lists of stopped servers.

use std::fs;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, Watch};
use mcpact::model::ToolResult;
use mcpact::server::{NoArgs, Server};
use mcpact_config::{RunSettings, ToolFilter};
use mcpact_gateway::{
    AggregatorSettings, Cache, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_sim::scripted::connect;
use mcpact_spec::{Capability, Era, LogLevel, Revision};
use serde_json::{Value, json};

use crate::in_process::{aggregator, client, on_http, on_stdio};
use crate::scripted_process::{PATIENCE, ScriptedProcess, files, impatient, until, until_asleep};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const CLIENTS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Lists and new clients do not start a known server; a call does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_do_not_start_a_stopped_server() {
    for era in ERAS {
        let script = ScriptedProcess::new(
            era,
            &json!({"tools": {"listChanged": true}, "resources": {}}),
        );
        script.answers(
            "resources-list",
            &json!({"resources": [], "resultType": "complete"}),
        );
        let member = script.member("s");
        let aggregator = impatient(vec![member.clone()]);
        let mut known = Vec::new();
        for revision in CLIENTS {
            let connected = on_stdio(&aggregator, client(revision)).await;
            assert_eq!(tools(&connected).await, ["s__one"], "{era:?}");
            connected.list_resources().await.unwrap();
            known.push(connected);
        }
        until_asleep(&member).await;
        let starts = script.starts();
        for revision in CLIENTS {
            for connected in [
                on_stdio(&aggregator, client(revision)).await,
                on_http(&aggregator, client(revision)).await,
            ] {
                for _ in 0..3 {
                    assert_eq!(tools(&connected).await, ["s__one"], "{era:?} {revision}");
                    assert!(connected.list_resources().await.unwrap().is_empty());
                    assert!(connected.list_prompts().await.unwrap().is_empty());
                    // The list is older than its limit, and the server is not started for it.
                    tokio::time::sleep(crate::scripted_process::SHORT).await;
                }
            }
        }
        assert_eq!(script.starts(), starts, "{era:?}");
        let called = known[0].call_tool("s__one", json!({})).await.unwrap();
        assert_eq!(called.all_text(), "done");
        assert_eq!(script.starts(), starts + 1, "{era:?}");
    }
}

/// Connects a client to one server alone.
async fn alone(member: &ServerEntry, builder: ClientBuilder) -> Client {
    builder.connect(connect(member.server())).await.unwrap()
}

/// At its own URL a known server is started neither for new clients nor for their log levels. It gets the levels with the
/// next call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_server_is_started_by_calls_only() {
    for era in ERAS {
        let script = ScriptedProcess::new(era, &json!({"tools": {}, "logging": {}}));
        script.answers("logging-setLevel", &json!({"resultType": "complete"}));
        let member = script.member("s");
        let [legacy, modern] = CLIENTS;
        let old = alone(&member, client(legacy)).await;
        assert_eq!(tools(&old).await, ["one"], "{era:?}");
        until_asleep(&member).await;
        let starts = script.starts();
        let new = alone(&member, client(legacy)).await;
        let passing = alone(&member, client(modern)).await;
        for (connected, level) in [
            (&old, LogLevel::Error),
            (&new, LogLevel::Warning),
            (&passing, LogLevel::Info),
        ] {
            assert!(connected.pact().declares(Capability::Tools), "{era:?}");
            connected.set_log_level(level).await.unwrap();
        }
        assert_eq!(script.starts(), starts, "{era:?}");
        for (connected, level) in [(&new, "warning"), (&old, "error"), (&passing, "info")] {
            let called = connected.call_tool("one", json!({})).await.unwrap();
            assert_eq!(called.all_text(), "done", "{era:?}");
            let levels = match era {
                Era::Legacy => script.received("logging/setLevel"),
                Era::Modern => script.received("tools/call"),
            };
            let levels = levels.iter().map(|message| &message["params"]);
            let is_set = |params: &Value| {
                let tag = "io.modelcontextprotocol/logLevel";
                params["level"] == level || params["_meta"][tag] == level
            };
            assert!(levels.clone().any(is_set), "{era:?} {level}");
        }
        assert!(script.starts() > starts, "{era:?}");
    }
}

/// The lists and capabilities of a started server are refreshed: connected clients are notified of changes, and new
/// clients get the new state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn started_server_is_refreshed() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let script = ScriptedProcess::new(era, &json!({"tools": {}}));
            let member = script.member("s");
            let aggregator = aggregator(vec![member.clone()]);
            let connected = on_stdio(&aggregator, client(revision)).await;
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(tools(&connected).await, ["s__one"], "{what}");
            until_asleep(&member).await;
            script.introduce(&json!({"tools": {}, "prompts": {}}));
            script.tools(&["one", "two"]);
            assert_eq!(tools(&connected).await, ["s__one"], "{what}: it is stopped");
            connected.call_tool("s__one", json!({})).await.unwrap();
            let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(notified.unwrap().is_some(), "{what}");
            assert_eq!(tools(&connected).await, ["s__one", "s__two"], "{what}");
            let later = on_stdio(&aggregator, client(revision)).await;
            assert!(later.pact().declares(Capability::Prompts), "{what}");
        }
    }
}

/// A tool that is missing after the start of its server is refused by its public name, with the valid names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_missing_after_a_start_is_refused_with_the_valid_names() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let script = ScriptedProcess::new(era, &json!({"tools": {}}));
            let member = script.member("s");
            let aggregator = aggregator(vec![member.clone()]);
            let connected = on_stdio(&aggregator, client(revision)).await;
            assert_eq!(tools(&connected).await, ["s__one"], "{what}");
            until_asleep(&member).await;
            script.tools(&["two"]);
            let unknown = r#"error {"code":-32602,"message":"Unknown tool: one"}"#;
            script.put("tools-call", unknown);
            let refused = connected.call_tool("s__one", json!({})).await.unwrap_err();
            assert_eq!(refused.code(), Some(-32602), "{what}");
            let message = refused.to_string();
            let expected = "Unknown tool: `s__one`. Available: `s__two`";
            assert!(message.contains(expected), "{what}: {message}");
            // The error for an existing tool is passed on unchanged.
            let refused = connected.call_tool("s__two", json!({})).await.unwrap_err();
            assert!(refused.to_string().contains("Unknown tool: one"), "{what}");
        }
    }
}

/// P21: after a restart of the gateway, lists and new clients are served from the cache with the same names. With a damaged
/// cache file the server is started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_cached_across_restarts() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::in_dir(folder.path().join("servers"));
            let script = ScriptedProcess::new(era, &json!({"tools": {}, "prompts": {}}));
            script.answers("prompts-list", &json!({"prompts": [{"name": "p"}]}));
            let run = async |expected: usize| {
                let member = script.member_kept("s", &cache);
                let aggregator = aggregator(vec![member.clone()]);
                let connected = on_stdio(&aggregator, client(revision)).await;
                assert!(connected.pact().declares(Capability::Prompts), "{what}");
                assert_eq!(tools(&connected).await, ["s__one"], "{what}");
                let prompts = connected.list_prompts().await.unwrap();
                assert_eq!(prompts[0].name, "s__p", "{what}");
                assert_eq!(script.starts(), expected, "{what}");
                let called = connected.call_tool("s__one", json!({})).await;
                assert_eq!(called.unwrap().all_text(), "done", "{what}");
                until_asleep(&member).await;
                // The tool list is written last.
                let kept = || {
                    let mut kept = fs::read_dir(folder.path().join("servers")).ok()?;
                    fs::read_to_string(kept.next()?.ok()?.path()).ok()
                };
                until("it is cached", || {
                    kept().is_some_and(|kept| {
                        kept.contains("prompts/list") && kept.contains("tools/list")
                    })
                })
                .await;
            };
            run(1).await;
            let before = script.starts();
            run(before).await;
            assert_eq!(files(&folder.path().join("servers")), 1, "{what}");
            let mut kept = fs::read_dir(folder.path().join("servers")).unwrap();
            fs::write(kept.next().unwrap().unwrap().path(), "{\"version\":1,").unwrap();
            let before = script.starts();
            run(before + 1).await;
        }
    }
}

/// A list that has changed is removed from the cache.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_list_is_removed_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_dir(folder.path());
    let script = ScriptedProcess::new(Era::Legacy, &json!({"tools": {"listChanged": true}}));
    let kept = || {
        let mut files = fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        // A file has another name while it is written.
        let whole = files.find(|path| path.extension().is_none_or(|end| end != "tmp"));
        whole.map_or_else(String::new, |path| fs::read_to_string(path).unwrap())
    };
    let run = RunSettings::default();
    let first = aggregator(vec![script.member_run("s", &cache, run)]);
    let connected = on_stdio(&first, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&connected).await, ["s__one"]);
    until("it is cached", || {
        files(folder.path()) == 1 && kept().contains("tools/list")
    })
    .await;
    script.tools(&["two"]);
    script.put(
        "news",
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    connected.call_tool("s__one", json!({})).await.unwrap();
    until("it is not cached", || !kept().contains("\\\"one\\\"")).await;
    let second = aggregator(vec![script.member_kept("s", &cache)]);
    let connected = on_stdio(&second, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&connected).await, ["s__two"]);
}

/// Servers that fail to start or are slow do not delay the others. Clients are notified when they are available; until
/// then the instructions report the cause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_servers_are_announced() {
    for (era, revision) in [(Era::Legacy, CLIENTS[1]), (Era::Modern, CLIENTS[0])] {
        let quick = ScriptedProcess::new(era, &json!({"tools": {}}));
        let slow = ScriptedProcess::new(era, &json!({"tools": {}}));
        let broken = ScriptedProcess::new(era, &json!({"tools": {}}));
        slow.put("hold", "");
        broken.put("broken", "");
        let members = vec![quick.member("q"), slow.member("s"), broken.member("b")];
        let short = crate::scripted_process::SHORT;
        let settings = AggregatorSettings {
            introduction_wait: short,
            list_wait: short,
            list_age: short,
            ..AggregatorSettings::default()
        };
        let aggregator = mcpact_gateway::Aggregator::new(members.clone(), settings).unwrap();
        let connected = on_stdio(&aggregator, client(revision)).await;
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        until("the quick server has answered", || {
            members[0].failure().is_none()
        })
        .await;
        let listed = async || tools(&connected).await;
        let all = tokio::time::timeout(PATIENCE, async { while listed().await != ["q__one"] {} });
        assert!(all.await.is_ok(), "the others are not waited for");
        until("it failed", || members[2].failure().is_some()).await;
        let later = on_stdio(&aggregator, client(revision)).await;
        let message = later.instructions().unwrap_or_default().to_owned();
        assert!(message.contains("`b` is unavailable"), "{message}");
        slow.remove("hold");
        broken.remove("broken");
        members[2].server().forgive();
        let joined = async {
            loop {
                assert!(changes.next().await.is_some());
                let all = listed().await;
                if all == ["q__one", "s__one", "b__one"] {
                    return;
                }
            }
        };
        let joined = tokio::time::timeout(PATIENCE, joined).await;
        assert!(joined.is_ok(), "{:?}", listed().await);
        for member in &members {
            assert_eq!(member.failure(), None);
        }
    }
}

/// The cached list of a remote server is refreshed after a restart, and clients that got it are notified of the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_list_of_a_remote_server_is_refreshed() {
    for server_revision in CLIENTS {
        for revision in CLIENTS {
            let what = format!("{revision} at {server_revision}");
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::in_dir(folder.path());
            let nothing = || async { Ok(ToolResult::text("x")) };
            let server = |tool: &str| {
                let server = Server::new("remote", "1").revisions(&[server_revision]);
                server.tool(tool, "A tool", move |_: NoArgs, _| nothing())
            };
            let listening = server("one").listen(([127, 0, 0, 1], 0).into()).await;
            let listening = listening.unwrap();
            let address = listening.address();
            let url = listening.url();
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let first = tokio::spawn(listening.run(async move { drop(stopped.await) }));
            let member = || {
                let target = Target::url(url.clone());
                // Lists of an instance for one client are not cached.
                let settings = UpstreamSettings {
                    run: RunSettings::default(),
                    ..UpstreamSettings::default()
                };
                let bridge = UpstreamServer::new(target, settings).unwrap();
                ServerEntry::with("r", "r", Vec::new(), ToolFilter::default(), bridge, &cache)
            };
            let before = aggregator(vec![member()]);
            let connected = on_stdio(&before, client(revision)).await;
            assert_eq!(tools(&connected).await, ["r__one"], "{what}");
            connected.close().await;
            until("it is cached", || {
                let file = fs::read_dir(folder.path()).unwrap().next();
                let text = file.and_then(|file| fs::read_to_string(file.unwrap().path()).ok());
                text.is_some_and(|text| text.contains("tools/list"))
            })
            .await;
            drop(before);
            stop.send(()).unwrap();
            first.await.unwrap().unwrap();
            let listening = server("two").listen(address).await.unwrap();
            tokio::spawn(listening.run(std::future::pending()));
            let after = aggregator(vec![member()]);
            let connected = on_stdio(&after, client(revision)).await;
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(tools(&connected).await, ["r__one"], "{what}");
            let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(notified.unwrap().is_some(), "{what}");
            assert_eq!(tools(&connected).await, ["r__two"], "{what}");
        }
    }
}

const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// Returns list change notifications for all streams of a modern server.
fn changed(script: &ScriptedProcess) -> String {
    let streams = script.received("subscriptions/listen");
    let notifications = streams.iter().map(|asked| {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
        let method = "notifications/tools/list_changed";
        json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}).to_string()
    });
    notifications.collect::<Vec<_>>().join("\n")
}

/// A legacy client that only listens to a modern server is notified when another client starts the server, and while it
/// runs. The server is not started for listeners.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_is_notified_of_a_server_that_others_start() {
    let script = ScriptedProcess::new(Era::Modern, &json!({"tools": {"listChanged": true}}));
    script.put("subscriptions-listen", ACKNOWLEDGED);
    let run = RunSettings {
        idle: Duration::from_secs(1),
        ..RunSettings::default()
    };
    let member = script.member_run("s", &Cache::disabled(), run);
    let aggregator = aggregator(vec![member.clone()]);
    let other = on_stdio(&aggregator, client(Revision::V2026_07_28)).await;
    let old = alone(&member, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&old).await, ["one"]);
    let mut listening = vec![old.watch(Watch::new().lists()).await.unwrap()];
    let mut clients = vec![old];
    for turn in 1..=3 {
        until_asleep(&member).await;
        assert_eq!(script.starts(), turn, "it is not started for listeners");
        let late = alone(&member, client(Revision::V2025_11_25)).await;
        listening.push(late.watch(Watch::new().lists()).await.unwrap());
        clients.push(late);
        other.call_tool("s__one", json!({})).await.unwrap();
        for (at, changes) in listening.iter_mut().enumerate() {
            let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(notified.unwrap().is_some(), "{at} when it starts: {turn}");
        }
        script.put("news", &changed(&script));
        other.call_tool("s__one", json!({})).await.unwrap();
        for (at, changes) in listening.iter_mut().enumerate() {
            let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(notified.unwrap().is_some(), "{at} while it runs: {turn}");
        }
    }
}
