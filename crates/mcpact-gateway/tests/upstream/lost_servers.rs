//! Lost sessions and processes of servers, and the effect on their clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{StartCause, Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::http_server::HttpScript;
use mcpact_sim::scripted::message::{discover_result, notification, response, text_result};
use mcpact_sim::scripted::{LinkServer, TestClient};
use mcpact_transport::http::server::HttpResponse;
use serde_json::{Value, json};

use crate::session_server::{SessionServer, UnknownSession};
use crate::targets::{in_memory, upstream};

/// Metadata key with the stream of a notification.
const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

fn assert_each_call_ran_once(server: &SessionServer) {
    let calls = server.received("tools/call");
    let sessions: Vec<_> = calls.iter().map(|call| call.session.as_str()).collect();
    assert_eq!(sessions, ["s1", "s2"], "each call ran once");
    assert_eq!(server.received("initialize").len(), 2);
}

/// BB-23: a request refused because of a lost session is sent again in a new session; the client gets the result only.
#[tokio::test]
async fn request_of_a_lost_session_is_sent_again_in_a_new_one() {
    for response in [UnknownSession::NotFound, UnknownSession::BadRequest] {
        let (server, target) = SessionServer::start(response).await;
        let mut client = TestClient::silent(&upstream(target));
        let call = json!({"name": "echo", "arguments": {}});
        let first = client.call_modern(1, "tools/call", call.clone()).await;
        assert_eq!(text(&first), "s1");
        server.lose_sessions();
        let second = client.call_modern(2, "tools/call", call).await;
        assert_eq!(text(&second), "s2");
        assert_each_call_ran_once(&server);
    }
}

/// After a stateful session is lost, the next call fails with `upstream_state_lost` once. A list does not count as a
/// call.
#[tokio::test]
async fn state_loss_is_reported_by_the_next_call_only() {
    for is_modern in [true, false] {
        let (server, target) = SessionServer::start(UnknownSession::NotFound).await;
        let settings = UpstreamSettings {
            run: RunSettings {
                strategy: Strategy::Stateful,
                ..RunSettings::default()
            },
            ..UpstreamSettings::default()
        };
        let mut client = TestClient::silent(&UpstreamServer::new(target, settings).unwrap());
        if !is_modern {
            client.open("2025-06-18", json!({})).await;
        }
        let mut ask = async |id, method, params| match is_modern {
            true => client.call_modern(id, method, params).await,
            false => client.call(id, method, params).await,
        };
        let call = json!({"name": "echo", "arguments": {}});
        let first = ask(1, "tools/call", call.clone()).await;
        assert_eq!(text(&first), "s1");
        server.lose_sessions();
        let listed = ask(2, "tools/list", json!({})).await;
        assert!(listed["result"]["tools"].is_array(), "{listed}");
        let lost = ask(3, "tools/call", call.clone()).await;
        let reason = &lost["error"]["data"]["reason"];
        assert_eq!(reason, "upstream_state_lost", "{lost}");
        let next = ask(4, "tools/call", call).await;
        assert_eq!(text(&next), "s2");
    }
}

/// BB-23: a listen stream survives the loss of the session: the new session is subscribed, and the client is notified of
/// everything that may have changed.
#[tokio::test]
async fn listen_stream_moves_to_the_new_session() {
    let (server, target) = SessionServer::start(UnknownSession::NotFound).await;
    let bridge = upstream(target);
    let mut client = TestClient::silent(&bridge);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let listen = json!({"notifications": filter});
    client
        .request_modern(7, "subscriptions/listen", listen)
        .await;
    client
        .notification("notifications/subscriptions/acknowledged")
        .await;
    server.lose_sessions();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "test://a");
    assert_eq!(updated["params"]["_meta"][TAG], 7);
    client
        .notification("notifications/tools/list_changed")
        .await;
    let subscribed = server.received("resources/subscribe");
    let sessions: Vec<_> = subscribed.iter().map(|one| one.session.as_str()).collect();
    assert_eq!(sessions, ["s1", "s2"]);
    let params = json!({"uri": "test://a"});
    server.send(&notification("notifications/resources/updated", params));
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["_meta"][TAG], 7, "the stream is the same");
    let causes = bridge.status().instances.into_iter().map(|one| one.cause);
    assert_eq!(causes.collect::<Vec<_>>(), [StartCause::Listener]);
}

/// BB-23: a legacy client keeps its log level and its subscriptions when the session is lost, and is notified of
/// everything that may have changed.
#[tokio::test]
async fn log_level_and_subscriptions_are_restored_in_the_new_session() {
    let (server, target) = SessionServer::start(UnknownSession::NotFound).await;
    let mut client = TestClient::silent(&upstream(target));
    client.open("2025-06-18", json!({})).await;
    let level = json!({"level": "debug"});
    client.call(1, "logging/setLevel", level.clone()).await;
    for (id, uri) in [(2, "test://a"), (3, "test://b")] {
        let params = json!({"uri": uri});
        client.call(id, "resources/subscribe", params).await;
    }
    let params = json!({"uri": "test://b"});
    client.call(4, "resources/unsubscribe", params).await;
    server.lose_sessions();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "test://a");
    client
        .notification("notifications/tools/list_changed")
        .await;
    let call = json!({"name": "echo", "arguments": {}});
    let called = client.call(5, "tools/call", call).await;
    assert_eq!(text(&called), "s2");
    let expected = [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ];
    assert_eq!(server.methods("s2"), expected);
    let again = &server.received("logging/setLevel")[1];
    assert_eq!((again.session.as_str(), &again.params), ("s2", &level));
}

/// Legacy server that exits during a call of the tool `die`.
fn mortal(runs: &Arc<AtomicUsize>, starts: &Arc<AtomicUsize>) -> Target {
    let (runs, starts) = (Arc::clone(runs), Arc::clone(starts));
    in_memory(move || {
        starts.fetch_add(1, Ordering::SeqCst);
        let runs = Arc::clone(&runs);
        let capabilities = json!({"tools": {"listChanged": true}});
        let (link, _) = LinkServer::legacy("2025-06-18", capabilities, move |message| {
            let tool = message["params"]["name"].as_str();
            runs.fetch_add(usize::from(tool.is_some()), Ordering::SeqCst);
            match tool {
                Some("die") => vec![Value::Null],
                Some(_) => vec![response(message, text_result("alive"))],
                None if message["id"].is_null() => Vec::new(),
                None => vec![response(message, json!({}))],
            }
        });
        link
    })
}

/// BB-23: a call that may have run fails with `upstream_gone` and is never sent twice; the next call starts the server
/// again, for clients of each era.
#[tokio::test]
async fn call_that_may_have_run_is_not_sent_again() {
    for is_modern in [true, false] {
        let (runs, starts) = (Arc::default(), Arc::default());
        let mut client = TestClient::silent(&upstream(mortal(&runs, &starts)));
        if !is_modern {
            client.open("2025-11-25", json!({})).await;
        }
        for (id, tool) in [(1, "live"), (2, "die"), (3, "live"), (4, "live")] {
            let call = json!({"name": tool, "arguments": {}});
            let answer = if is_modern {
                client.call_modern(id, "tools/call", call).await
            } else {
                client.call(id, "tools/call", call).await
            };
            if tool == "die" {
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                let reason = &answer["error"]["data"]["reason"];
                assert_eq!(reason, "upstream_gone", "{answer}");
            } else {
                assert_eq!(text(&answer), "alive");
            }
        }
        assert_eq!(runs.load(Ordering::SeqCst), 4, "each call ran once");
        assert_eq!(starts.load(Ordering::SeqCst), 2);
    }
}

/// P5: a server that exits is started again for a listen stream.
#[tokio::test]
async fn server_is_restarted_for_a_listen_stream() {
    let (runs, starts) = (Arc::default(), Arc::default());
    let mut client = TestClient::silent(&upstream(mortal(&runs, &starts)));
    let listen = json!({"notifications": {"toolsListChanged": true}});
    client
        .request_modern(7, "subscriptions/listen", listen)
        .await;
    client
        .notification("notifications/subscriptions/acknowledged")
        .await;
    let die = json!({"name": "die", "arguments": {}});
    client.call_modern(8, "tools/call", die).await;
    client
        .notification("notifications/tools/list_changed")
        .await;
    assert_eq!(starts.load(Ordering::SeqCst), 2);
}

/// Modern server that acknowledges every stream and exits at every call.
fn mortal_listened_to(starts: &Arc<AtomicUsize>) -> Target {
    let starts = Arc::clone(starts);
    in_memory(move || {
        starts.fetch_add(1, Ordering::SeqCst);
        let capabilities =
            json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        let (link, _) =
            LinkServer::modern(capabilities, |message| match message["method"].as_str() {
                Some("subscriptions/listen") => {
                    let filter = &message["params"]["notifications"];
                    let params = json!({"notifications": filter, "_meta": {TAG: message["id"]}});
                    let method = "notifications/subscriptions/acknowledged";
                    vec![notification(method, params)]
                }
                Some("tools/call") => vec![Value::Null],
                _ => Vec::new(),
            });
        link
    })
}

/// BB-23, P5: a listen stream of a modern client at a modern server survives its exits: the client is notified of
/// everything that may have changed, without a second acknowledgement.
#[tokio::test]
async fn modern_listen_stream_survives_exits_of_the_server() {
    let starts = Arc::default();
    let bridge = upstream(mortal_listened_to(&starts));
    let (mut listens, mut calls) = (TestClient::silent(&bridge), TestClient::silent(&bridge));
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let listen = json!({"notifications": wanted});
    listens
        .request_modern(7, "subscriptions/listen", listen)
        .await;
    let agreed = listens.recv().await;
    assert_eq!(
        agreed["method"], "notifications/subscriptions/acknowledged",
        "{agreed}"
    );
    for deaths in 1..=3 {
        let die = json!({"name": "die", "arguments": {}});
        let died = calls.call_modern(deaths, "tools/call", die).await;
        assert_eq!(died["error"]["data"]["reason"], "upstream_gone", "{died}");
        for changed in ["tools/list_changed", "resources/updated"] {
            let note = listens.recv().await;
            assert_eq!(note["method"], format!("notifications/{changed}"), "{note}");
            assert_eq!(note["params"]["_meta"][TAG], 7, "{note}");
        }
    }
    assert_eq!(starts.load(Ordering::SeqCst), 4);
}

/// L25: a response with the id of another request fails the call, and the next call works.
#[tokio::test]
async fn response_with_another_id_is_not_delivered() {
    let (_, url) = HttpScript::listen(|_, message| {
        let is_lost = message["params"]["arguments"]["lost"] == true;
        let result = match message["method"].as_str() {
            Some("server/discover") => discover_result(json!({"tools": {}})),
            _ => text_result("done"),
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
    let mut client = TestClient::silent(&upstream(Target::url(url)));
    for (id, is_lost) in [(1, true), (2, false)] {
        let call = json!({"name": "x", "arguments": {"lost": is_lost}});
        let answer = client.call_modern(id, "tools/call", call).await;
        assert_eq!(answer["error"].is_object(), is_lost, "{answer}");
        if is_lost {
            let reason = &answer["error"]["data"]["reason"];
            assert_eq!(reason, "upstream_misbehaved", "{answer}");
        }
    }
}
