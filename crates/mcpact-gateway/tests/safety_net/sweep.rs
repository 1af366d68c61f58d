//! Requests that are dropped at every poll.
//!
//! A front cancels a request by dropping its future, between any two polls. The request must then release everything it
//! holds: its in-flight slot, its place in the queue, its turn on a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::server::backend::{Backend, SessionEnd, serve_link};
use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{
    Aggregator, AggregatorSettings, DrainGate, ServerEntry, UpstreamServer, UpstreamSettings,
};
use mcpact_spec::{Era, Revision};
use mcpact_transport::memory;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::cut::{Cutting, DROPPED, Moment, VICTIM};
use crate::rig::{ERAS, URI, acknowledge, form, is_listed};
use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use mcpact_sim::scripted::TestClient;

/// Maximum number of polls of a request.
const MOST_POLLS: usize = 200;

/// One step of the virtual clock: everything else that can run has run.
const STEP: Duration = Duration::from_millis(1);

/// Longer than any grace period, and shorter than a call may take.
const GRACE: Duration = Duration::from_secs(20);

/// Timeout of suspended calls and idle instances.
const SHORT: Duration = Duration::from_secs(5);

/// Kind of front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Single,
    Aggregate,
}

/// Request that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Call,
    Progress,
    Question,
    List,
    Subscribe,
    /// Call that waits for another one.
    Queued,
    /// Call that starts the server.
    Start,
}

const ALL: [Request; 7] = [
    Request::Call,
    Request::Progress,
    Request::Question,
    Request::List,
    Request::Subscribe,
    Request::Queued,
    Request::Start,
];

/// Requests that take another path if each client has its own instance.
const APART: [Request; 3] = [Request::Call, Request::Queued, Request::Start];

#[derive(Clone, Copy, Debug)]
struct Case {
    front: Front,
    request: Request,
    client: Revision,
    server: Revision,
    strategy: Strategy,
}

/// Cancellations that the server received, by connection and request.
#[derive(Debug, Default)]
struct Cancelled(Mutex<BTreeMap<(usize, String), usize>>);

/// Server that does what the arguments of a call say.
struct Script {
    era: Era,
    cancelled: Arc<Cancelled>,
    /// Releases the call that blocks others.
    release: Arc<Notify>,
    asking: BTreeMap<usize, ReceivedMessage>,
}

impl Script {
    async fn run(mut self, mut stage: ScriptedServer) {
        while let Some(said) = stage.recv_or_end().await {
            match said.method() {
                _ if is_listed(&said) => {}
                "tools/call" => self.called(said),
                "resources/subscribe" | "resources/unsubscribe" => said.result(json!({})),
                "subscriptions/listen" => acknowledge(&said),
                "notifications/cancelled" => {
                    let call = (said.connection, said.params()["requestId"].to_string());
                    let mut cancelled = self.cancelled.0.lock().unwrap();
                    *cancelled.entry(call).or_default() += 1;
                }
                // The answer to a question.
                "" => {
                    if let Some(call) = self.asking.remove(&said.connection) {
                        call.text("done");
                    }
                }
                other => panic!("{other}"),
            }
        }
    }

    fn called(&mut self, said: ReceivedMessage) {
        let arguments = &said.params()["arguments"];
        match arguments["do"].as_str().unwrap_or_default() {
            "block" => {
                let release = Arc::clone(&self.release);
                tokio::spawn(async move {
                    release.notified().await;
                    said.text("done");
                });
            }
            "report" => drop(tokio::spawn(report(said))),
            "ask" if self.era == Era::Legacy => {
                said.ask("q", "elicitation/create", form("?"));
                self.asking.insert(said.connection, said);
            }
            "ask" if said.params().get("inputResponses").is_none() => {
                let request = json!({"method": "elicitation/create", "params": form("?")});
                said.result(
                    json!({"resultType": "input_required", "requestState": "state",
                    "inputRequests": {"k": request}}),
                );
            }
            _ => said.text("done"),
        }
    }
}

/// Reports progress step by step, then answers.
async fn report(said: ReceivedMessage) {
    let token = said.params()["_meta"]["progressToken"].clone();
    for progress in 1..4 {
        tokio::time::sleep(STEP).await;
        let params = json!({"progressToken": token, "progress": progress});
        said.notify("notifications/progress", params);
    }
    tokio::time::sleep(STEP).await;
    said.text("done");
}

/// A front with two clients, of which one makes the request that is dropped.
struct Scene<B> {
    case: Case,
    backend: Arc<Cutting<B>>,
    bridge: Arc<UpstreamServer>,
    release: Arc<Notify>,
}

impl<B: Backend> Scene<B> {
    async fn client(&self) -> TestClient {
        let (ours, theirs) = memory::pair();
        let ending = SessionEnd::after(Duration::ZERO);
        tokio::spawn(serve_link(Arc::clone(&self.backend), theirs, ending));
        let can = json!({"elicitation": {}});
        match self.case.client.era() {
            Era::Modern => {
                let mut peer = TestClient::on(ours, Some(can));
                // A connection without a message is closed.
                peer.expect_silence().await;
                peer
            }
            Era::Legacy => {
                let mut peer = TestClient::on(ours, None);
                peer.open(self.case.client.as_str(), can).await;
                peer
            }
        }
    }

    fn call(&self, what: &str) -> Value {
        let name = match self.case.front {
            Front::Single => "t",
            Front::Aggregate => "s__t",
        };
        json!({"name": name, "arguments": {"do": what}, "_meta": {"progressToken": "p"}})
    }

    fn request(&self) -> (&'static str, Value) {
        match (self.case.request, self.case.client.era()) {
            (Request::Call | Request::Queued | Request::Start, _) => {
                ("tools/call", self.call("answer"))
            }
            (Request::Progress, _) => ("tools/call", self.call("report")),
            (Request::Question, _) => ("tools/call", self.call("ask")),
            (Request::List, _) => ("tools/list", json!({})),
            (Request::Subscribe, Era::Legacy) => ("resources/subscribe", json!({"uri": URI})),
            (Request::Subscribe, Era::Modern) => (
                "subscriptions/listen",
                json!({"notifications": {"resourceSubscriptions": [URI]}}),
            ),
        }
    }

    /// Sends the request and continues until it is answered or dropped.
    async fn attempt(&self, peer: &mut TestClient) {
        let (method, params) = self.request();
        peer.request(VICTIM, method, params.clone()).await;
        if self.case.request == Request::Queued {
            tokio::time::sleep(STEP).await;
            let queued = usize::from(!self.backend.is_cut());
            assert_eq!(self.bridge.status().queued, queued, "{:?}", self.case);
            self.release.notify_one();
        }
        let accept = json!({"action": "accept", "content": {}});
        loop {
            let message = peer.recv().await;
            match message["method"].as_str() {
                Some("elicitation/create") => peer.answer(&message, accept.clone()).await,
                // It stays open until it is dropped or cancelled.
                Some("notifications/subscriptions/acknowledged") => {
                    tokio::time::sleep(STEP).await;
                    if !self.backend.is_cut() {
                        let params = json!({"requestId": VICTIM});
                        peer.notify("notifications/cancelled", params).await;
                        return;
                    }
                }
                _ if message["id"] != VICTIM => {}
                _ if message["result"]["resultType"] == "input_required" => {
                    let mut params = params.clone();
                    params["requestState"] = message["result"]["requestState"].clone();
                    let asked = message["result"]["inputRequests"].as_object().unwrap();
                    for key in asked.keys() {
                        params["inputResponses"][key] = accept.clone();
                    }
                    peer.request(VICTIM, method, params).await;
                }
                _ if self.backend.is_cut() => {
                    assert_eq!(message["error"]["message"], DROPPED, "{message}");
                    return;
                }
                _ => {
                    assert!(message["result"].is_object(), "{message}");
                    return;
                }
            }
        }
    }

    /// Waits for the answer to a request that is not dropped.
    async fn answered(&self, peer: &mut TestClient, id: &str) {
        loop {
            let message = peer.recv().await;
            if message["id"] == id {
                assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
                return;
            }
        }
    }

    /// Drops the request at its moment; `false` if it was answered before.
    async fn run(&self, cancelled: &Cancelled, what: &str) -> bool {
        let [mut one, mut other] = [self.client().await, self.client().await];
        match self.case.request {
            Request::Queued => {
                one.request("block", "tools/call", self.call("block")).await;
                tokio::time::sleep(STEP).await;
            }
            // The server has stopped by then.
            Request::Start => tokio::time::sleep(GRACE).await,
            _ => {}
        }
        let starts = self.bridge.status().starts;
        self.attempt(&mut one).await;
        tokio::time::sleep(GRACE).await;
        let is_cut = self.backend.is_cut();
        if self.case.request == Request::Start && !is_cut {
            assert!(self.bridge.status().starts > starts, "{what}");
        }

        let status = self.bridge.status();
        let in_flight: usize = status.instances.iter().map(|one| one.in_flight).sum();
        let parked = self.bridge.parked();
        let left = (in_flight, status.queued, parked);
        assert_eq!(left, (0, 0, 0), "{what}: in flight, queued, suspended");
        for (call, count) in &*cancelled.0.lock().unwrap() {
            assert_eq!(*count, 1, "{what}: cancellations of {call:?}");
        }
        // Every turn and every slot is free again.
        for peer in [&mut one, &mut other] {
            peer.request("after", "tools/call", self.call("answer"))
                .await;
            self.answered(peer, "after").await;
        }
        assert!(self.bridge.drain(GRACE).await, "{what}: a request is left");
        is_cut
    }
}

/// Result of a run.
struct Ran {
    /// `false` if the request was answered before its moment.
    is_cut: bool,
    cancelled: usize,
}

/// Sets a case up and runs it.
async fn run(case: Case, moment: Moment) -> Ran {
    let what = format!("{case:?} at {moment:?}");
    let stage = ScriptedServer::lines(Role::new(case.server).changing());
    let (cancelled, release) = (Arc::<Cancelled>::default(), Arc::<Notify>::default());
    let (crowd, instances) = match (case.request, case.strategy) {
        (Request::Queued, Strategy::Stateful) => (1, 4),
        (Request::Queued, _) => (1, 1),
        _ => (4, 4),
    };
    let drain_gate = DrainGate::default();
    let mut settings = UpstreamSettings {
        name: Some(String::from("s")),
        run: RunSettings {
            strategy: case.strategy,
            max_concurrent: crowd,
            max_instances: instances,
            idle: SHORT,
            session: SHORT,
            health: UpstreamSettings::default().run.health,
            ..RunSettings::default()
        },
        drain_gate: drain_gate.clone(),
        ..UpstreamSettings::default()
    };
    settings.suspend_limits.ttl = SHORT;
    let bridge = UpstreamServer::new(stage.target.clone(), settings).unwrap();
    let connections = Arc::downgrade(&stage.connections());
    let before = connections.strong_count();
    let script = Script {
        era: case.server.era(),
        cancelled: Arc::clone(&cancelled),
        release: Arc::clone(&release),
        asking: BTreeMap::new(),
    };
    tokio::spawn(script.run(stage));
    let is_cut = match case.front {
        Front::Single => {
            let backend = Cutting::new(Arc::clone(&bridge), moment);
            let bridge = Arc::clone(&bridge);
            let scene = Scene {
                case,
                backend,
                bridge,
                release,
            };
            scene.run(&cancelled, &what).await
        }
        Front::Aggregate => {
            let settings = AggregatorSettings {
                drain_gate,
                ..AggregatorSettings::default()
            };
            let hub = Aggregator::new(vec![ServerEntry::new("s", Arc::clone(&bridge))], settings)
                .unwrap();
            let backend = Cutting::new(hub, moment);
            let bridge = Arc::clone(&bridge);
            let scene = Scene {
                case,
                backend,
                bridge,
                release,
            };
            scene.run(&cancelled, &what).await
        }
    };
    bridge.close().await;
    tokio::time::sleep(GRACE).await;
    assert_eq!(
        connections.strong_count(),
        before,
        "{what}: a connection is left"
    );
    let cancelled = cancelled.0.lock().unwrap().len();
    Ran { is_cut, cancelled }
}

/// Drops the request of a case at every poll.
async fn sweep(case: Case) {
    let mut cancelled = 0;
    for poll in 0..MOST_POLLS {
        let instead = run(case, Moment::Instead(poll)).await;
        let after = run(case, Moment::After(poll)).await;
        cancelled += instead.cancelled + after.cancelled;
        if !instead.is_cut && !after.is_cut {
            assert!(poll > 1, "{case:?} never waits");
            let is_cancelled = case.request != Request::Progress || cancelled > 0;
            assert!(is_cancelled, "{case:?}: the server gets a cancellation");
            return;
        }
    }
    panic!("{case:?} does not end");
}

async fn sweep_all(front: Front, strategy: Strategy, requests: &[Request]) {
    for request in requests.iter().copied() {
        // A single server is started when a client connects, before there is a request.
        if (front, request) == (Front::Single, Request::Start) {
            continue;
        }
        for client in ERAS {
            for server in ERAS {
                let case = Case {
                    front,
                    request,
                    client,
                    server,
                    strategy,
                };
                sweep(case).await;
            }
        }
    }
}

/// Endpoint `/servers/NAME/mcp`, shared instances.
#[tokio::test(start_paused = true)]
async fn dropped_requests_to_a_single_shared_server_release_everything() {
    sweep_all(Front::Single, Strategy::Stateless, &ALL).await;
}

/// Endpoint `/servers/NAME/mcp`, one instance per client.
#[tokio::test(start_paused = true)]
async fn dropped_requests_to_a_single_stateful_server_release_everything() {
    sweep_all(Front::Single, Strategy::Stateful, &APART).await;
}

/// Endpoint `/mcp`, shared instances.
#[tokio::test(start_paused = true)]
async fn dropped_requests_to_shared_servers_release_everything() {
    sweep_all(Front::Aggregate, Strategy::Stateless, &ALL).await;
}

/// Endpoint `/mcp`, one instance per client.
#[tokio::test(start_paused = true)]
async fn dropped_requests_to_stateful_servers_release_everything() {
    sweep_all(Front::Aggregate, Strategy::Stateful, &APART).await;
}
