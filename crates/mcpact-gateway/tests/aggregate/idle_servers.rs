//! Lists of servers that do not run.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, Watch};
use mcpact::model::ToolResult;
use mcpact::server::{NoArgs, Server};
use mcpact_config::{RunSettings, ToolFilter};
use mcpact_gateway::{
    AggregatorSettings, Cache, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_spec::{Capability, LogLevel, Revision};
use mcpact_transport::memory;
use serde_json::{Value, json};

use crate::house::{by_http, client, hub, on_lines};
use crate::scripted::{PATIENCE, Script, Speaks, files, impatient, until, until_asleep};

const ERAS: [Speaks; 2] = [Speaks::Handshake, Speaks::Discover];
const CLIENTS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Once a server is known, neither lists nor new clients start it; a call does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_do_not_wake_anybody() {
    for era in ERAS {
        let script = Script::new(
            era,
            &json!({"tools": {"listChanged": true}, "resources": {}}),
        );
        script.answers(
            "resources-list",
            &json!({"resources": [], "resultType": "complete"}),
        );
        let member = script.member("s");
        let hub = impatient(vec![member.clone()]);
        let mut known = Vec::new();
        for revision in CLIENTS {
            let connected = on_lines(&hub, client(revision)).await;
            assert_eq!(tools(&connected).await, ["s__one"], "{era:?}");
            connected.list_resources().await.unwrap();
            known.push(connected);
        }
        until_asleep(&member).await;
        let starts = script.starts();
        for revision in CLIENTS {
            for connected in [
                on_lines(&hub, client(revision)).await,
                by_http(&hub, client(revision)).await,
            ] {
                for _ in 0..3 {
                    assert_eq!(tools(&connected).await, ["s__one"], "{era:?} {revision}");
                    assert!(connected.list_resources().await.unwrap().is_empty());
                    assert!(connected.list_prompts().await.unwrap().is_empty());
                    // Older than a list may be, and still nobody is woken for it.
                    tokio::time::sleep(crate::scripted::SHORT).await;
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
    let (ours, theirs) = memory::pair();
    let bridge = Arc::clone(member.server());
    tokio::spawn(async move { bridge.serve(theirs).await });
    builder.connect(ours).await.unwrap()
}

/// At its own address a server that is known is started neither for new clients nor for the log levels that they
/// set; it is told of those when it is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_sleeps_until_it_is_needed() {
    for era in ERAS {
        let script = Script::new(era, &json!({"tools": {}, "logging": {}}));
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
            let told = match era {
                Speaks::Handshake => script.heard("logging/setLevel"),
                Speaks::Discover => script.heard("tools/call"),
            };
            let told = told.iter().map(|message| &message["params"]);
            let is_told = |params: &Value| {
                let tag = "io.modelcontextprotocol/logLevel";
                params["level"] == level || params["_meta"][tag] == level
            };
            assert!(told.clone().any(is_told), "{era:?} {level}");
        }
        assert!(script.starts() > starts, "{era:?}");
    }
}

/// A server that wakes up is looked at again. If it has other tools or declares something
/// else, clients that are there are told, and clients that come are told what is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wakes_up_is_looked_at_again() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let script = Script::new(era, &json!({"tools": {}}));
            let member = script.member("s");
            let hub = hub(vec![member.clone()]);
            let connected = on_lines(&hub, client(revision)).await;
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(tools(&connected).await, ["s__one"], "{what}");
            until_asleep(&member).await;
            script.introduce(&json!({"tools": {}, "prompts": {}}));
            script.tools(&["one", "two"]);
            assert_eq!(tools(&connected).await, ["s__one"], "{what}: it sleeps");
            connected.call_tool("s__one", json!({})).await.unwrap();
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{what}");
            assert_eq!(tools(&connected).await, ["s__one", "s__two"], "{what}");
            let later = on_lines(&hub, client(revision)).await;
            assert!(later.pact().declares(Capability::Prompts), "{what}");
        }
    }
}

/// A tool that its server does not have any more when it wakes up is refused under the name that clients know,
/// with what there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_vanished_while_its_server_slept_is_told_with_what_there_is() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let script = Script::new(era, &json!({"tools": {}}));
            let member = script.member("s");
            let hub = hub(vec![member.clone()]);
            let connected = on_lines(&hub, client(revision)).await;
            assert_eq!(tools(&connected).await, ["s__one"], "{what}");
            until_asleep(&member).await;
            script.tools(&["two"]);
            let unknown = r#"error {"code":-32602,"message":"Unknown tool: one"}"#;
            script.put("tools-call", unknown);
            let refused = connected.call_tool("s__one", json!({})).await.unwrap_err();
            assert_eq!(refused.code(), Some(-32602), "{what}");
            let told = refused.to_string();
            let expected = "Unknown tool: `s__one`. There are: `s__two`";
            assert!(told.contains(expected), "{what}: {told}");
            // What its server says of a tool that it has is passed on as it is.
            let refused = connected.call_tool("s__two", json!({})).await.unwrap_err();
            assert!(refused.to_string().contains("Unknown tool: one"), "{what}");
        }
    }
}

/// P21: after a restart of the gateway everything is known under the same names, and nothing is started for lists and new
/// clients; a file that is damaged costs a start and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_forgets_nothing() {
    for era in ERAS {
        for revision in CLIENTS {
            let what = format!("{revision} at {era:?}");
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::in_dir(folder.path().join("servers"));
            let script = Script::new(era, &json!({"tools": {}, "prompts": {}}));
            script.answers("prompts-list", &json!({"prompts": [{"name": "p"}]}));
            let run = async |expected: usize| {
                let member = script.member_kept("s", &cache);
                let hub = hub(vec![member.clone()]);
                let connected = on_lines(&hub, client(revision)).await;
                assert!(connected.pact().declares(Capability::Prompts), "{what}");
                assert_eq!(tools(&connected).await, ["s__one"], "{what}");
                let prompts = connected.list_prompts().await.unwrap();
                assert_eq!(prompts[0].name, "s__p", "{what}");
                assert_eq!(script.starts(), expected, "{what}");
                let called = connected.call_tool("s__one", json!({})).await;
                assert_eq!(called.unwrap().all_text(), "done", "{what}");
                until_asleep(&member).await;
                // The list of tools is the last that is written down.
                let kept = || {
                    let mut kept = fs::read_dir(folder.path().join("servers")).ok()?;
                    fs::read_to_string(kept.next()?.ok()?.path()).ok()
                };
                until("it is kept", || {
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

/// Nobody is shown in a later run what the server has said is not true any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_changed_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::in_dir(folder.path());
    let script = Script::new(Speaks::Handshake, &json!({"tools": {"listChanged": true}}));
    let kept = || {
        let mut files = fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        // What is being written has another name until it is whole.
        let whole = files.find(|path| path.extension().is_none_or(|end| end != "tmp"));
        whole.map_or_else(String::new, |path| fs::read_to_string(path).unwrap())
    };
    let run = RunSettings::default();
    let first = hub(vec![script.member_run("s", &cache, run)]);
    let connected = on_lines(&first, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&connected).await, ["s__one"]);
    until("it is kept", || {
        files(folder.path()) == 1 && kept().contains("tools/list")
    })
    .await;
    script.tools(&["two"]);
    script.put(
        "news",
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    connected.call_tool("s__one", json!({})).await.unwrap();
    until("it is not kept", || !kept().contains("\\\"one\\\"")).await;
    let second = hub(vec![script.member_kept("s", &cache)]);
    let connected = on_lines(&second, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&connected).await, ["s__two"]);
}

/// A server that cannot be started, and one that takes its time, do not keep the others; who had
/// to do without them is told when they are there, and who asks why they are missing is told why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_late_is_announced() {
    for (era, revision) in [
        (Speaks::Handshake, CLIENTS[1]),
        (Speaks::Discover, CLIENTS[0]),
    ] {
        let quick = Script::new(era, &json!({"tools": {}}));
        let slow = Script::new(era, &json!({"tools": {}}));
        let broken = Script::new(era, &json!({"tools": {}}));
        slow.put("hold", "");
        broken.put("broken", "");
        let members = vec![quick.member("q"), slow.member("s"), broken.member("b")];
        let short = crate::scripted::SHORT;
        let settings = AggregatorSettings {
            introduction_wait: short,
            list_wait: short,
            list_age: short,
            ..AggregatorSettings::default()
        };
        let hub = mcpact_gateway::Aggregator::new(members.clone(), settings).unwrap();
        let connected = on_lines(&hub, client(revision)).await;
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        until("the quick one is there", || members[0].failure().is_none()).await;
        let listed = async || tools(&connected).await;
        let all = tokio::time::timeout(PATIENCE, async { while listed().await != ["q__one"] {} });
        assert!(all.await.is_ok(), "the others are not waited for");
        until("it failed", || members[2].failure().is_some()).await;
        let later = on_lines(&hub, client(revision)).await;
        let told = later.instructions().unwrap_or_default().to_owned();
        assert!(told.contains("`b` is unavailable"), "{told}");
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

/// A server that nobody has to start is asked again after a restart; what was kept is shown
/// meanwhile, and who was shown it is told that there is something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_server_is_asked_again() {
    for speaks in CLIENTS {
        for revision in CLIENTS {
            let what = format!("{revision} at {speaks}");
            let folder = tempfile::tempdir().unwrap();
            let cache = Cache::in_dir(folder.path());
            let nothing = || async { Ok(ToolResult::text("x")) };
            let server = |tool: &str| {
                let server = Server::new("remote", "1").revisions(&[speaks]);
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
                // What an instance of one client lists would not be kept.
                let settings = UpstreamSettings {
                    run: RunSettings::default(),
                    ..UpstreamSettings::default()
                };
                let bridge = UpstreamServer::new(target, settings).unwrap();
                ServerEntry::with("r", "r", Vec::new(), ToolFilter::default(), bridge, &cache)
            };
            let before = hub(vec![member()]);
            let connected = on_lines(&before, client(revision)).await;
            assert_eq!(tools(&connected).await, ["r__one"], "{what}");
            connected.close().await;
            until("it is kept", || {
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
            let after = hub(vec![member()]);
            let connected = on_lines(&after, client(revision)).await;
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            assert_eq!(tools(&connected).await, ["r__one"], "{what}");
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{what}");
            assert_eq!(tools(&connected).await, ["r__two"], "{what}");
        }
    }
}

const AGREED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// That the tools of a modern server have changed, on each of the streams that it was asked for.
fn changed(script: &Script) -> String {
    let streams = script.heard("subscriptions/listen");
    let told = streams.iter().map(|asked| {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": asked["id"]});
        let method = "notifications/tools/list_changed";
        json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}).to_string()
    });
    told.collect::<Vec<_>>().join("\n")
}

/// A legacy client that listens at the address of a modern server hears of its lists when somebody else wakes
/// it, and while it is awake, without a call of its own; also one that came while the server slept. It is not woken for
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_listens_hears_of_a_server_that_others_wake() {
    let script = Script::new(Speaks::Discover, &json!({"tools": {"listChanged": true}}));
    script.put("subscriptions-listen", AGREED);
    let run = RunSettings {
        idle: Duration::from_secs(1),
        ..RunSettings::default()
    };
    let member = script.member_run("s", &Cache::disabled(), run);
    let hub = hub(vec![member.clone()]);
    let other = on_lines(&hub, client(Revision::V2026_07_28)).await;
    let old = alone(&member, client(Revision::V2025_11_25)).await;
    assert_eq!(tools(&old).await, ["one"]);
    let mut listening = vec![old.watch(Watch::new().lists()).await.unwrap()];
    let mut clients = vec![old];
    for turn in 1..=3 {
        until_asleep(&member).await;
        assert_eq!(script.starts(), turn, "nobody wakes it to listen");
        let late = alone(&member, client(Revision::V2025_11_25)).await;
        listening.push(late.watch(Watch::new().lists()).await.unwrap());
        clients.push(late);
        other.call_tool("s__one", json!({})).await.unwrap();
        for (at, changes) in listening.iter_mut().enumerate() {
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{at} when it wakes: {turn}");
        }
        script.put("news", &changed(&script));
        other.call_tool("s__one", json!({})).await.unwrap();
        for (at, changes) in listening.iter_mut().enumerate() {
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{at} while it is awake: {turn}");
        }
    }
}
