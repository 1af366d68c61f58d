//! Idle connections.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::Settings;
use mcpact::server::router::{HttpRoute, HttpRouter, RouteDecision, RoutedServer};
use mcpact_gateway::{Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::message::{initialize, modern_params, modern_request};
use mcpact_sim::scripted::{TestClient, listen, post, session_header};
use mcpact_spec::Revision;
use mcpact_transport::http::server::HttpRequest;
use mcpact_transport::memory;
use serde_json::json;
use tokio::sync::mpsc;

use crate::targets::in_memory;

/// Reference server that reports its start and the end of its connection.
fn watched(revision: Revision) -> (Target, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, events) = mpsc::unbounded_channel();
    let target = in_memory(move || {
        let (near, far) = memory::pair();
        let sender = sender.clone();
        let server = mcpact_everything::server(&[revision]);
        tokio::spawn(async move {
            sender.send("started").unwrap();
            let _ = server.serve(far).await;
            // The test may be over.
            let _ = sender.send("ended");
        });
        near
    });
    (target, events)
}

/// Idle time after which a connection is closed.
const SHORT: Duration = Duration::from_millis(40);

fn bridge(target: Target, settings: UpstreamSettings) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, settings).unwrap()
}

/// 6.12: an idle connection of a modern client is closed, and the next request opens another. The same applies to the
/// shared connection to a modern server.
#[tokio::test]
async fn idle_connection_is_closed_and_opened_again() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (target, mut events) = watched(revision);
        let mut settings = UpstreamSettings::default();
        (settings.run.idle, settings.run.session) = (SHORT, SHORT);
        let mut client = TestClient::silent(&bridge(target, settings));
        for id in [1, 2] {
            let call = json!({"name": "echo", "arguments": {"text": "hello"}});
            let answer = client.call_modern(id, "tools/call", call).await;
            assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
            assert_eq!(events.recv().await, Some("started"), "{revision}");
            assert_eq!(events.recv().await, Some("ended"), "{revision}");
        }
    }
}

/// 6.12: the session of a connected legacy client is not idle, nor is one with a listen stream; both end with their
/// client.
#[tokio::test]
async fn connection_stays_open_for_legacy_clients_and_streams() {
    let (target, mut events) = watched(Revision::V2025_11_25);
    let mut settings = UpstreamSettings::default();
    settings.run.idle = SHORT;
    let bridge = bridge(target, settings);
    let url = listen(&bridge).await;
    let mut stays = TestClient::silent(&bridge);
    stays.open("2025-06-18", json!({})).await;
    assert_eq!(events.recv().await, Some("started"));
    let mut listens = TestClient::silent(&bridge);
    let listen = json!({"notifications": {"toolsListChanged": true}});
    listens
        .request_modern(7, "subscriptions/listen", listen)
        .await;
    assert_eq!(events.recv().await, Some("started"));
    listens
        .notification("notifications/subscriptions/acknowledged")
        .await;
    // A third connection becomes idle, which shows that enough time has passed.
    let passing = modern_request(1, "tools/list", json!({}), &json!({}));
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
    let answer = post(&url, headers, &passing).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(events.recv().await, Some("started"));
    assert_eq!(events.recv().await, Some("ended"), "the third is idle");
    assert!(events.try_recv().is_err(), "the others are in use");
    drop(stays);
    assert_eq!(
        events.recv().await,
        Some("ended"),
        "its client disconnected"
    );
    drop(listens);
    assert_eq!(events.recv().await, Some("ended"), "the stream ended");
}

/// 6.12: the HTTP session of a legacy client expires when it is idle, and the session at the server ends with it; also if
/// several servers share an address.
#[tokio::test]
async fn idle_http_session_ends_with_its_session_at_the_server() {
    for shares in [false, true] {
        let (target, mut events) = watched(Revision::V2025_11_25);
        let mut settings = UpstreamSettings::default();
        settings.front.session_idle = SHORT;
        let bridge = UpstreamServer::new(target, settings.clone()).unwrap();
        let url = if shares {
            let route = HttpRoute::to(bridge);
            let settings = settings.front;
            let router = Arc::new(SingleRoute { settings, route });
            let server = RoutedServer::bind(
                router,
                std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into(),
            )
            .await;
            let server = server.unwrap();
            let url = format!("http://{}/mcp", server.address());
            tokio::spawn(server.run(std::future::pending()));
            url
        } else {
            listen(&bridge).await
        };
        let opened = post(&url, "", &initialize(0, "2025-11-25", json!({}))).await;
        assert_eq!(events.recv().await, Some("started"));
        assert_eq!(events.recv().await, Some("ended"));
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let late = post(&url, &session_header(&opened), &ping).await;
        assert!(late.starts_with("HTTP/1.1 404"), "{late}");
    }
}

/// Waits until another connection has become idle.
async fn wait_for_idle_time() {
    let (target, mut events) = watched(Revision::V2026_07_28);
    let mut settings = UpstreamSettings::default();
    (settings.run.idle, settings.run.session) = (SHORT * 3, SHORT * 3);
    let mut client = TestClient::silent(&bridge(target, settings));
    client.call_modern(1, "tools/list", json!({})).await;
    assert_eq!(events.recv().await, Some("started"));
    assert_eq!(events.recv().await, Some("ended"));
}

/// A modern process with an open question is not idle, because it may hold the state of the call. Without an answer it
/// becomes idle after the time limit of suspended calls.
#[tokio::test]
async fn process_with_an_open_question_is_not_idle() {
    let able = json!({"elicitation": {"form": {}}});
    for is_answered in [true, false] {
        let (target, mut events) = watched(Revision::V2026_07_28);
        let mut settings = UpstreamSettings::default();
        (settings.run.idle, settings.run.session) = (SHORT, SHORT);
        if !is_answered {
            settings.suspend_limits.ttl = SHORT;
        }
        let mut client = TestClient::silent(&bridge(target, settings));
        let tool = "test_input_required_result_elicitation";
        let mut call = modern_params(json!({"name": tool, "arguments": {}}), &able);
        let asked = client.call(1, "tools/call", call.clone()).await["result"].take();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(events.recv().await, Some("started"));
        if is_answered {
            wait_for_idle_time().await;
            assert!(events.try_recv().is_err(), "it waits for the answer");
            let questions = asked["inputRequests"].as_object().unwrap();
            let answer = json!({"action": "accept", "content": {"name": "Ann"}});
            for question in questions.keys() {
                call["inputResponses"][question] = answer.clone();
            }
            if let Some(state) = asked.get("requestState") {
                call["requestState"] = state.clone();
            }
            let done = client.call(2, "tools/call", call).await;
            let text = &done["result"]["content"][0]["text"];
            assert_eq!(text, "Hello, Ann!", "{done}");
        }
        assert_eq!(events.recv().await, Some("ended"));
    }
}

/// Router with one route.
#[derive(Debug)]
struct SingleRoute {
    settings: Settings,
    route: HttpRoute,
}

impl HttpRouter for SingleRoute {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn route(&self, _: &mut HttpRequest) -> RouteDecision {
        RouteDecision::To(self.route.clone())
    }

    fn stop(&self) {
        self.route.close();
    }

    fn cut_off(&self) {
        self.route.close();
    }
}
