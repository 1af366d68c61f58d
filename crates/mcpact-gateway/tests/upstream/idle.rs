//! Connections that nobody uses.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::Settings;
use mcpact::server::router::{HttpRoute, HttpRouter, RouteDecision, RoutedServer};
use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use mcpact_transport::http::server::HttpRequest;
use mcpact_transport::memory;
use serde_json::json;
use tokio::sync::mpsc;

use crate::raw::{Raw, initialize, post, session_in};

/// The reference server, which says when it was started and when its client has gone.
fn watched(revision: Revision) -> (Target, mpsc::UnboundedReceiver<&'static str>) {
    let (say, said) = mpsc::unbounded_channel();
    let target = Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        let say = say.clone();
        let server = mcpact_everything::server(&[revision]);
        tokio::spawn(async move {
            say.send("started").unwrap();
            let _ = server.serve(theirs).await;
            // The test may be over.
            let _ = say.send("ended");
        });
        ours
    })));
    (target, said)
}

/// How long a connection is kept that nobody uses.
const SHORT: Duration = Duration::from_millis(40);

fn bridge(target: Target, settings: UpstreamSettings) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, settings).unwrap()
}

/// 6.12: a connection of a modern client ends when it has not used it for a while, the first one as well, and
/// the next request opens another; so does the one to a modern server, which all of them share.
#[tokio::test]
async fn an_idle_connection_ends_and_comes_back() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (target, mut said) = watched(revision);
        let mut settings = UpstreamSettings::default();
        (settings.run.idle, settings.run.session) = (SHORT, SHORT);
        let mut client = Raw::before(&bridge(target, settings));
        for id in [1, 2] {
            let call = json!({"name": "echo", "arguments": {"text": "hello"}});
            let answer = client.ask_modern(id, "tools/call", call).await;
            assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
            assert_eq!(said.recv().await, Some("started"), "{revision}");
            assert_eq!(said.recv().await, Some("ended"), "{revision}");
        }
    }
}

/// 6.12: a session that belongs to a legacy client is not idle while the client is there, and neither is
/// one on which somebody listens; both end with their client.
#[tokio::test]
async fn a_connection_lives_as_long_as_somebody_stays() {
    let (target, mut said) = watched(Revision::V2025_11_25);
    let mut settings = UpstreamSettings::default();
    settings.run.idle = SHORT;
    let bridge = bridge(target, settings);
    let front = Arc::clone(&bridge).listen(([127, 0, 0, 1], 0).into()).await;
    let front = front.unwrap();
    let address = front.address().to_string();
    tokio::spawn(front.run(std::future::pending()));
    let mut stays = Raw::before(&bridge);
    stays.shake("2025-06-18", json!({})).await;
    assert_eq!(said.recv().await, Some("started"));
    let mut listens = Raw::before(&bridge);
    let listen = json!({"notifications": {"toolsListChanged": true}});
    listens.post_modern(7, "subscriptions/listen", listen).await;
    assert_eq!(said.recv().await, Some("started"));
    listens
        .note("notifications/subscriptions/acknowledged")
        .await;
    // One that anybody could use goes idle meanwhile, which shows that there was time enough.
    let params = stays.modern(json!({}), &json!({}));
    let passing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
    let answer = post(&address, headers, &passing).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(said.recv().await, Some("started"));
    assert_eq!(said.recv().await, Some("ended"), "nobody needs the third");
    assert!(said.try_recv().is_err(), "the others are needed");
    drop(stays);
    assert_eq!(said.recv().await, Some("ended"), "its client has gone");
    drop(listens);
    assert_eq!(said.recv().await, Some("ended"), "nobody listens any more");
}

/// 6.12: a legacy client on HTTP that went away without a word is taken for gone after a while, and the
/// session behind it ends with its own; also where several servers share an address.
#[tokio::test]
async fn a_client_that_left_without_a_word_is_forgotten() {
    for shares in [false, true] {
        let (target, mut said) = watched(Revision::V2025_11_25);
        let mut settings = UpstreamSettings::default();
        settings.front.session_idle = SHORT;
        let bridge = UpstreamServer::new(target, settings.clone()).unwrap();
        let anywhere = ([127, 0, 0, 1], 0).into();
        let address = if shares {
            let door = HttpRoute::to(bridge);
            let settings = settings.front;
            let site = RoutedServer::bind(Arc::new(Desk { settings, door }), anywhere).await;
            let site = site.unwrap();
            let address = site.address();
            tokio::spawn(site.run(std::future::pending()));
            address
        } else {
            let front = bridge.listen(anywhere).await.unwrap();
            let address = front.address();
            tokio::spawn(front.run(std::future::pending()));
            address
        };
        let address = address.to_string();
        let opened = post(&address, "", &initialize(&json!({}))).await;
        assert_eq!(said.recv().await, Some("started"));
        assert_eq!(said.recv().await, Some("ended"));
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let headers = format!("{}\r\n", session_in(&opened));
        let late = post(&address, &headers, &ping).await;
        assert!(late.starts_with("HTTP/1.1 404"), "{late}");
    }
}

/// Time enough for a connection to go idle that nobody uses.
async fn long_enough() {
    let (target, mut said) = watched(Revision::V2026_07_28);
    let mut settings = UpstreamSettings::default();
    (settings.run.idle, settings.run.session) = (SHORT * 3, SHORT * 3);
    let mut client = Raw::before(&bridge(target, settings));
    client.ask_modern(1, "tools/list", json!({})).await;
    assert_eq!(said.recv().await, Some("started"));
    assert_eq!(said.recv().await, Some("ended"));
}

/// A modern program that has asked something is not idle until it has its answer, of which its process alone may know
/// what it is for; one that gets none is waited with for as long as a call that is parked.
#[tokio::test]
async fn a_program_that_has_asked_stays_awake() {
    let able = json!({"elicitation": {"form": {}}});
    for is_answered in [true, false] {
        let (target, mut said) = watched(Revision::V2026_07_28);
        let mut settings = UpstreamSettings::default();
        (settings.run.idle, settings.run.session) = (SHORT, SHORT);
        if !is_answered {
            settings.suspend_limits.ttl = SHORT;
        }
        let mut client = Raw::before(&bridge(target, settings));
        let tool = "test_input_required_result_elicitation";
        let mut call = client.modern(json!({"name": tool, "arguments": {}}), &able);
        let asked = client.ask(1, "tools/call", call.clone()).await["result"].take();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(said.recv().await, Some("started"));
        if is_answered {
            long_enough().await;
            assert!(said.try_recv().is_err(), "it waits for the answer");
            let questions = asked["inputRequests"].as_object().unwrap();
            let answer = json!({"action": "accept", "content": {"name": "Ann"}});
            for question in questions.keys() {
                call["inputResponses"][question] = answer.clone();
            }
            if let Some(state) = asked.get("requestState") {
                call["requestState"] = state.clone();
            }
            let done = client.ask(2, "tools/call", call).await;
            let text = &done["result"]["content"][0]["text"];
            assert_eq!(text, "Hello, Ann!", "{done}");
        }
        assert_eq!(said.recv().await, Some("ended"));
    }
}

/// Lets everybody through the same door.
#[derive(Debug)]
struct Desk {
    settings: Settings,
    door: HttpRoute,
}

impl HttpRouter for Desk {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn route(&self, _: &mut HttpRequest) -> RouteDecision {
        RouteDecision::To(self.door.clone())
    }

    fn stop(&self) {
        self.door.close();
    }

    fn cut_off(&self) {
        self.door.close();
    }
}
