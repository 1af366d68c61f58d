//! Sessions and processes that are lost, and what becomes of those who use them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{Local, StartCause, Target, UpstreamServer, UpstreamSettings};
use mcpact_transport::http::server::HttpResponse;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use crate::forgetful::Forgetful;
use crate::raw::Raw;
use crate::scripted::{Scripted, discovered, texted};

/// Where a note names its stream.
const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn bridge(target: Target) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}

fn said(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

fn no_such_session_twice(server: &Forgetful) {
    let calls = server.heard("tools/call");
    let sessions: Vec<_> = calls.iter().map(|call| call.session.as_str()).collect();
    assert_eq!(sessions, ["s1", "s2"], "each call ran once");
    assert_eq!(server.heard("initialize").len(), 2);
}

/// BB-23: a request that the server refused because it had forgotten the session is made once more
/// in a new one, whichever way the server says so; the client sees nothing but its result.
#[tokio::test]
async fn a_forgotten_session_is_opened_again() {
    for forgetful in [Forgetful::default(), Forgetful::vague()] {
        let (server, target) = forgetful.listen().await;
        let mut client = Raw::before(&bridge(target));
        let call = json!({"name": "echo", "arguments": {}});
        let first = client.ask_modern(1, "tools/call", call.clone()).await;
        assert_eq!(said(&first), "s1");
        server.forget();
        let second = client.ask_modern(2, "tools/call", call).await;
        assert_eq!(said(&second), "s2");
        no_such_session_twice(&server);
    }
}

/// What a server kept for a client is gone with its session: a list is no call that rests on it, and comes; the next
/// call tells it, once.
#[tokio::test]
async fn a_list_does_not_use_up_what_is_to_be_told() {
    for is_modern in [true, false] {
        let (server, target) = Forgetful::default().listen().await;
        let settings = UpstreamSettings {
            run: RunSettings {
                strategy: Strategy::Stateful,
                ..RunSettings::default()
            },
            ..UpstreamSettings::default()
        };
        let mut client = Raw::before(&UpstreamServer::new(target, settings).unwrap());
        if !is_modern {
            client.shake("2025-06-18", json!({})).await;
        }
        let mut ask = async |id, method, params| match is_modern {
            true => client.ask_modern(id, method, params).await,
            false => client.ask(id, method, params).await,
        };
        let call = json!({"name": "echo", "arguments": {}});
        let first = ask(1, "tools/call", call.clone()).await;
        assert_eq!(said(&first), "s1");
        server.forget();
        let listed = ask(2, "tools/list", json!({})).await;
        assert!(listed["result"]["tools"].is_array(), "{listed}");
        let told = ask(3, "tools/call", call.clone()).await;
        let reason = &told["error"]["data"]["reason"];
        assert_eq!(reason, "upstream_state_lost", "{told}");
        let afresh = ask(4, "tools/call", call).await;
        assert_eq!(said(&afresh), "s2");
    }
}

/// BB-23: whoever listens to a server that has forgotten the session goes on listening: the new session
/// is subscribed, and the client hears of everything that may have changed.
#[tokio::test]
async fn those_who_listen_move_to_the_new_session() {
    let (server, target) = Forgetful::default().listen().await;
    let bridge = bridge(target);
    let mut client = Raw::before(&bridge);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let listen = json!({"notifications": filter});
    client.post_modern(7, "subscriptions/listen", listen).await;
    client
        .note("notifications/subscriptions/acknowledged")
        .await;
    server.forget();
    let updated = client.note("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "test://a");
    assert_eq!(updated["params"]["_meta"][TAG], 7);
    client.note("notifications/tools/list_changed").await;
    let subscribed = server.heard("resources/subscribe");
    let sessions: Vec<_> = subscribed.iter().map(|one| one.session.as_str()).collect();
    assert_eq!(sessions, ["s1", "s2"]);
    let news = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "test://a"}});
    server.say(&news);
    let updated = client.note("notifications/resources/updated").await;
    assert_eq!(updated["params"]["_meta"][TAG], 7, "the stream is the same");
    let causes = bridge.status().instances.into_iter().map(|one| one.cause);
    assert_eq!(causes.collect::<Vec<_>>(), [StartCause::Listener]);
}

/// BB-23: a legacy client keeps its log level and its subscriptions when the server of another legacy
/// revision forgets the session, and hears of everything that may have changed.
#[tokio::test]
async fn what_a_legacy_client_has_set_is_set_again() {
    let (server, target) = Forgetful::default().listen().await;
    let mut client = Raw::before(&bridge(target));
    client.shake("2025-06-18", json!({})).await;
    let level = json!({"level": "debug"});
    client.ask(1, "logging/setLevel", level.clone()).await;
    for (id, uri) in [(2, "test://a"), (3, "test://b")] {
        let params = json!({"uri": uri});
        client.ask(id, "resources/subscribe", params).await;
    }
    let params = json!({"uri": "test://b"});
    client.ask(4, "resources/unsubscribe", params).await;
    server.forget();
    let updated = client.note("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "test://a");
    client.note("notifications/tools/list_changed").await;
    let call = json!({"name": "echo", "arguments": {}});
    let called = client.ask(5, "tools/call", call).await;
    assert_eq!(said(&called), "s2");
    let expected = [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ];
    assert_eq!(server.methods("s2"), expected);
    let again = &server.heard("logging/setLevel")[1];
    assert_eq!((again.session.as_str(), &again.params), ("s2", &level));
}

/// Dies at every call of the tool `die`, after it has begun to run it.
fn mortal(runs: &Arc<AtomicUsize>, starts: &Arc<AtomicUsize>) -> Target {
    let (runs, starts) = (Arc::clone(runs), Arc::clone(starts));
    Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        starts.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(live(theirs, Arc::clone(&runs)));
        ours
    })))
}

async fn live(mut link: Link, runs: Arc<AtomicUsize>) {
    while link.source.fill().await.unwrap_or_default() {
        while let Some(Line::Json(bytes)) = link.source.next_line() {
            let message: Value = serde_json::from_slice(bytes).unwrap();
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "mortal", "version": "1"},
                }),
                "tools/call" => {
                    runs.fetch_add(1, Ordering::SeqCst);
                    if message["params"]["name"] == "die" {
                        return;
                    }
                    json!({"content": [{"type": "text", "text": "alive"}]})
                }
                "server/discover" => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    link.sink.push(&answer.to_string());
                    continue;
                }
                _ => json!({}),
            };
            if let Some(id) = message.get("id") {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                link.sink.push(&answer.to_string());
            }
        }
        link.sink.flush().await.unwrap();
    }
}

/// BB-23: a call that may have run is answered with an error that says what happened, and is never run
/// twice; the next one starts the server again, for clients of either era.
#[tokio::test]
async fn a_call_that_may_have_run_is_not_run_again() {
    for is_modern in [true, false] {
        let (runs, starts) = (Arc::default(), Arc::default());
        let mut client = Raw::before(&bridge(mortal(&runs, &starts)));
        if !is_modern {
            client.shake("2025-11-25", json!({})).await;
        }
        for (id, tool) in [(1, "live"), (2, "die"), (3, "live"), (4, "live")] {
            let call = json!({"name": tool, "arguments": {}});
            let answer = if is_modern {
                client.ask_modern(id, "tools/call", call).await
            } else {
                client.ask(id, "tools/call", call).await
            };
            if tool == "die" {
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                let reason = &answer["error"]["data"]["reason"];
                assert_eq!(reason, "upstream_gone", "{answer}");
            } else {
                assert_eq!(said(&answer), "alive");
            }
        }
        assert_eq!(runs.load(Ordering::SeqCst), 4, "each call ran once");
        assert_eq!(starts.load(Ordering::SeqCst), 2);
    }
}

/// P5: a server that dies while nobody calls is started again for those who listen.
#[tokio::test]
async fn a_server_that_died_is_started_again_for_those_who_listen() {
    let (runs, starts) = (Arc::default(), Arc::default());
    let mut client = Raw::before(&bridge(mortal(&runs, &starts)));
    let listen = json!({"notifications": {"toolsListChanged": true}});
    client.post_modern(7, "subscriptions/listen", listen).await;
    client
        .note("notifications/subscriptions/acknowledged")
        .await;
    let die = json!({"name": "die", "arguments": {}});
    client.ask_modern(8, "tools/call", die).await;
    client.note("notifications/tools/list_changed").await;
    assert_eq!(starts.load(Ordering::SeqCst), 2);
}

/// A modern server that agrees to every stream, and dies at every call.
fn mortal_listened_to(starts: &Arc<AtomicUsize>) -> Target {
    let starts = Arc::clone(starts);
    Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        starts.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(be_listened_to(theirs));
        ours
    })))
}

async fn be_listened_to(mut link: Link) {
    while link.source.fill().await.unwrap_or_default() {
        while let Some(Line::Json(bytes)) = link.source.next_line() {
            let message: Value = serde_json::from_slice(bytes).unwrap();
            let (id, wanted) = (&message["id"], &message["params"]["notifications"]);
            let answer = match message["method"].as_str().unwrap_or_default() {
                "server/discover" => {
                    let has =
                        json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
                    json!({"jsonrpc": "2.0", "id": id, "result": discovered(has)})
                }
                "subscriptions/listen" => {
                    let params = json!({"notifications": wanted, "_meta": {TAG: id}});
                    let method = "notifications/subscriptions/acknowledged";
                    json!({"jsonrpc": "2.0", "method": method, "params": params})
                }
                "tools/call" => return,
                _ => continue,
            };
            link.sink.push(&answer.to_string());
        }
        link.sink.flush().await.unwrap();
    }
}

/// BB-23, P5: a modern client that listens to a modern server goes on listening when that has died, however often: it is
/// told of everything that may have changed, and not again what was agreed on.
#[tokio::test]
async fn a_stream_of_a_modern_server_survives_its_death() {
    let starts = Arc::default();
    let bridge = bridge(mortal_listened_to(&starts));
    let (mut listens, mut calls) = (Raw::before(&bridge), Raw::before(&bridge));
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let listen = json!({"notifications": wanted});
    listens.post_modern(7, "subscriptions/listen", listen).await;
    let agreed = listens.next().await;
    assert_eq!(
        agreed["method"], "notifications/subscriptions/acknowledged",
        "{agreed}"
    );
    for deaths in 1..=3 {
        let die = json!({"name": "die", "arguments": {}});
        let died = calls.ask_modern(deaths, "tools/call", die).await;
        assert_eq!(died["error"]["data"]["reason"], "upstream_gone", "{died}");
        for told in ["tools/list_changed", "resources/updated"] {
            let note = listens.next().await;
            assert_eq!(note["method"], format!("notifications/{told}"), "{note}");
            assert_eq!(note["params"]["_meta"][TAG], 7, "{note}");
        }
    }
    assert_eq!(starts.load(Ordering::SeqCst), 4);
}

/// L25: an answer that names another request is nobody's, whoever is waiting; the next call works.
#[tokio::test]
async fn an_answer_to_another_request_reaches_nobody() {
    let (_, target) = Scripted::listen(|_, message| {
        let is_lost = message["params"]["arguments"]["lost"] == true;
        let result = match message["method"].as_str() {
            Some("server/discover") => discovered(json!({"tools": {}})),
            _ => texted("for somebody"),
        };
        let id = if is_lost {
            &json!(777_777)
        } else {
            &message["id"]
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        HttpResponse::json(200, answer.to_string())
    })
    .await;
    let mut client = Raw::before(&bridge(target));
    for (id, is_lost) in [(1, true), (2, false)] {
        let call = json!({"name": "x", "arguments": {"lost": is_lost}});
        let answer = client.ask_modern(id, "tools/call", call).await;
        assert_eq!(answer["error"].is_object(), is_lost, "{answer}");
        if is_lost {
            let reason = &answer["error"]["data"]["reason"];
            assert_eq!(reason, "upstream_misbehaved", "{answer}");
        }
    }
}
