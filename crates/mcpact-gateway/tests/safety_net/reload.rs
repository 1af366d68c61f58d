//! A reload that replaces a server while a client needs it.
//!
//! The first server drains while the second one serves. A call goes to the second server only if the first one has not
//! received it. Everything else continues on the first, or its client gets an error.

use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::Gateway;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::client::{Address, Client};
use crate::rig::{ERAS, SUBSCRIPTION, Server, URI, acknowledge, config, form, gateway};
use crate::scripted_server::{ReceivedMessage, Role};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Drain time of the first server after the reload.
const LONG: &str = "drain_seconds = 600\n";
const NONE: &str = "drain_seconds = 0\n";

/// Endpoint of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All servers, on stdio.
    Link,
    /// All servers, on HTTP.
    All,
    Tag,
    Single,
}

pub(crate) const ON_HTTP: [Place; 3] = [Place::All, Place::Tag, Place::Single];

/// Situation in which the config is reloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) place: Place,
    pub(crate) client: Revision,
    pub(crate) server: Revision,
    pub(crate) keys: &'static str,
}

pub(crate) struct Scene {
    case: Case,
    gateway: Arc<Gateway>,
    first: Server,
    pub(crate) second: Server,
    pub(crate) client: Client,
}

impl Scene {
    /// Creates a client that accepts input requests.
    pub(crate) async fn new(case: Case) -> Self {
        Self::with(case, json!({"elicitation": {}})).await
    }

    async fn with(case: Case, capabilities: Value) -> Self {
        let mut role = Role::new(case.server).changing();
        match case.server.era() {
            Era::Legacy => {
                let requests = json!({"tools": {"call": {}}});
                role.capabilities["tasks"] = json!({"list": {}, "requests": requests});
            }
            Era::Modern => role.capabilities["extensions"] = json!({TASKS: {}}),
        }
        let (first, second) = (Server::lines(role.clone()), Server::lines(role));
        let servers = [("first", &first), ("second", &second)];
        let gateway = gateway(config("first", case.keys), &servers);
        let address = match case.place {
            Place::Link => Address::Link,
            Place::All => listen(&gateway, "/mcp").await,
            Place::Tag => listen(&gateway, "/tags/t/mcp").await,
            Place::Single => listen(&gateway, "/servers/s/mcp").await,
        };
        let client = Client::connect(&gateway, &address, case.client, capabilities, None).await;
        Self {
            case,
            gateway,
            first,
            second,
            client,
        }
    }

    /// Reloads the config with the second server instead of the first.
    pub(crate) fn reload(&self) {
        let next = config("second", self.case.keys);
        self.gateway.change(next).unwrap();
    }

    fn call(&self) -> Value {
        let name = match self.case.place {
            Place::Single => "t",
            Place::Link | Place::All | Place::Tag => "s__t",
        };
        json!({"name": name, "arguments": {}})
    }

    /// Sends a call and returns it as the first server received it.
    pub(crate) async fn sent(&mut self) -> ReceivedMessage {
        self.client.request("sent", "tools/call", self.call());
        self.first.next_of("tools/call").await
    }

    /// Returns the text of a result.
    async fn text(&mut self, id: &str) -> String {
        let answer = self.client.answered(id).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{:?}: {answer}", self.case))
            .to_owned()
    }

    /// Expects the error of a lost call that may have run.
    async fn lost(&mut self, id: &str) {
        let answer = self.client.answered(id).await;
        is_lost(&answer, self.case);
    }

    /// Checks the number of calls that each server has received.
    #[track_caller]
    pub(crate) fn called(&self, first: usize, second: usize) {
        let counts = [&self.first, &self.second].map(|server| server.count("tools/call"));
        assert_eq!(counts, [first, second], "{:?}", self.case);
    }

    async fn until(&self, is_so: impl Fn(&Gateway) -> bool) {
        let waiting = async {
            while !is_so(&self.gateway) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(
            waited.is_ok(),
            "{:?}: {:?}",
            self.case,
            self.gateway.status(None)
        );
    }
}

async fn listen(gateway: &Arc<Gateway>, path: &str) -> Address {
    let site = gateway.listen().await.unwrap();
    let url = format!("{}{path}", site.origin());
    tokio::spawn(site.run(std::future::pending()));
    Address::Url(url)
}

#[track_caller]
fn is_lost(answer: &Value, case: Case) {
    assert_eq!(
        answer["error"]["data"]["reason"], "upstream_gone",
        "{case:?}: {answer}"
    );
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("may have had its effect"),
        "{case:?}: {answer}"
    );
}

/// Client and server of each era.
fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    let servers = |client| ERAS.into_iter().map(move |server| (client, server));
    ERAS.into_iter().flat_map(servers)
}

pub(crate) fn cases(places: &[Place], keys: &'static str) -> impl Iterator<Item = Case> {
    places.iter().flat_map(move |place| {
        pairs().map(move |(client, server)| Case {
            place: *place,
            client,
            server,
            keys,
        })
    })
}

/// A queued call runs at the second server, once. A call that the first server has received is answered by the first.
async fn queued(places: &[Place]) {
    let narrow = "max_instances = 1\nmax_concurrent = 1\ndrain_seconds = 600\ntags = [\"t\"]\n";
    for case in cases(places, narrow) {
        let mut scene = Scene::new(case).await;
        let running = scene.sent().await;
        scene.client.request("queued", "tools/call", scene.call());
        let is_queued = |gateway: &Gateway| {
            let status = gateway.status(None).unwrap();
            status.servers.iter().any(|server| server.queued == 1)
        };
        scene.until(is_queued).await;
        scene.reload();
        scene.second.next_of("tools/call").await.text("second");
        assert_eq!(scene.text("queued").await, "second", "{case:?}");
        running.text("first");
        assert_eq!(scene.text("sent").await, "first", "{case:?}");
        scene.called(1, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn queued_call_goes_to_the_next_server() {
    queued(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_call_goes_to_the_next_server_on_http() {
    queued(&ON_HTTP).await;
}

/// A call that the first server has received is answered by it within `drain_seconds`, and lost after that. The second
/// server never receives it.
async fn sent(places: &[Place]) {
    for case in cases(places, "drain_seconds = 600\ntags = [\"t\"]\n") {
        let mut scene = Scene::new(case).await;
        let running = scene.sent().await;
        scene.reload();
        running.text("first");
        assert_eq!(scene.text("sent").await, "first", "{case:?}");
        scene.called(1, 0);
    }
    for case in cases(places, "drain_seconds = 0\ntags = [\"t\"]\n") {
        let mut scene = Scene::new(case).await;
        let _running = scene.sent().await;
        scene.reload();
        scene.lost("sent").await;
        scene.called(1, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn sent_call_stays_at_its_server() {
    sent(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_call_stays_at_its_server_on_http() {
    sent(&ON_HTTP).await;
}

/// Errors of a server that look like those of a gateway, as behind a second gateway, reach the client unchanged. No server
/// gets the call again.
async fn refused_like_a_gateway(places: &[Place]) {
    let errors = [
        json!({"code": -32603, "message": "upstream_closed", "data": {"reason": "upstream_closed"}}),
        json!({"code": -32603, "message": "the call was not sent to the server",
            "data": {"reason": "upstream_gone", "delivery": "not_sent"}}),
        json!({"code": -32000, "message": "upstream_unreachable", "data": "upstream_closed"}),
    ];
    for case in cases(places, "drain_seconds = 600\ntags = [\"t\"]\n") {
        for error in &errors {
            let mut scene = Scene::new(case).await;
            let running = scene.sent().await;
            scene.reload();
            running.error(error.clone());
            let answer = scene.client.answered("sent").await;
            assert_eq!(answer["error"]["data"], error["data"], "{case:?}: {answer}");
            assert_eq!(answer["error"]["code"], error["code"], "{case:?}: {answer}");
            scene.called(1, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn error_data_of_a_server_never_causes_a_resend() {
    refused_like_a_gateway(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_data_of_a_server_never_causes_a_resend_on_http() {
    refused_like_a_gateway(&ON_HTTP).await;
}

/// A call that waits for the input of its client.
struct Suspended {
    said: ReceivedMessage,
    asked: Value,
}

impl Scene {
    async fn suspended(&mut self) -> Suspended {
        let said = self.sent().await;
        let question = json!({"method": "elicitation/create", "params": form("Name?")});
        match self.case.server.era() {
            Era::Legacy => said.ask("q", "elicitation/create", form("Name?")),
            Era::Modern => said.result(json!({"resultType": "input_required",
                "requestState": "state", "inputRequests": {"k": question}})),
        }
        let asked = match self.case.client.era() {
            Era::Legacy => self.client.next_of("elicitation/create").await,
            Era::Modern => self.client.answered("sent").await,
        };
        Suspended { said, asked }
    }

    /// Answers the input request.
    async fn resume(&mut self, suspended: &Suspended) {
        let accept = json!({"action": "accept", "content": {}});
        let result = &suspended.asked["result"];
        if self.case.client.era() == Era::Legacy {
            return self.client.answer(&suspended.asked, accept).await;
        }
        let mut params = self.call();
        params["requestState"] = result["requestState"].clone();
        for key in result["inputRequests"].as_object().unwrap().keys() {
            params["inputResponses"][key] = accept.clone();
        }
        self.client.request("sent", "tools/call", params);
    }
}

/// A suspended call of a legacy server continues there within `drain_seconds`, and is lost after that.
///
/// A call of a modern server ends with its input request. A modern client calls again, and the second server gets the
/// state of the first. For a legacy client the gateway would have to call again, which it does not do on another server:
/// the client gets an error. No server gets the call twice.
async fn suspended(places: &[Place]) {
    for (keys, has_time) in [(LONG, true), (NONE, false)] {
        for case in cases(places, keys) {
            // The session ends with the first server, so its client cannot answer.
            if (case.place, case.client.era()) == (Place::Single, Era::Legacy) {
                continue;
            }
            let mut scene = Scene::new(case).await;
            let suspended = scene.suspended().await;
            scene.reload();
            match (case.client.era(), case.server.era()) {
                (_, Era::Legacy) if has_time => {
                    scene.resume(&suspended).await;
                    let answer = scene.first.next().await.message;
                    assert_eq!(answer["id"], "q", "{case:?}");
                    assert_eq!(answer["result"]["action"], "accept", "{case:?}");
                    suspended.said.text("first");
                    assert_eq!(scene.text("sent").await, "first", "{case:?}");
                    scene.called(1, 0);
                }
                (Era::Legacy, Era::Legacy) => {
                    scene.lost("sent").await;
                    scene.called(1, 0);
                }
                (Era::Modern, Era::Legacy) | (Era::Legacy, Era::Modern) => {
                    suspended.said.closed().await;
                    scene.resume(&suspended).await;
                    scene.lost("sent").await;
                    scene.called(1, 0);
                }
                (Era::Modern, Era::Modern) => {
                    scene.resume(&suspended).await;
                    let again = scene.second.next_of("tools/call").await;
                    assert_eq!(again.params()["requestState"], "state", "{case:?}");
                    let answers = &again.params()["inputResponses"];
                    assert_eq!(answers["k"]["action"], "accept", "{case:?}");
                    again.text("second");
                    assert_eq!(scene.text("sent").await, "second", "{case:?}");
                    scene.called(1, 1);
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_call_continues_or_is_lost() {
    suspended(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_call_continues_or_is_lost_on_http() {
    suspended(&[Place::All, Place::Single]).await;
}

/// Waits for a subscription to the resource.
async fn accepts(server: &mut Server, case: Case) -> ReceivedMessage {
    loop {
        let said = server.next().await;
        match said.method() {
            "resources/subscribe" => {
                assert_eq!(said.params()["uri"], URI, "{case:?}");
                said.result(json!({}));
                return said;
            }
            "subscriptions/listen" => {
                let uris = &said.params()["notifications"]["resourceSubscriptions"];
                assert_eq!(*uris, json!([URI]), "{case:?}");
                acknowledge(&said);
                return said;
            }
            "notifications/cancelled" => {}
            other => panic!("{case:?}: {other}"),
        }
    }
}

fn update(said: &ReceivedMessage) {
    let params = match said.method() {
        "subscriptions/listen" => {
            json!({"uri": URI, "_meta": {SUBSCRIPTION: said.message["id"]}})
        }
        _ => json!({"uri": URI}),
    };
    said.notify("notifications/resources/updated", params);
}

/// The gateway renews the subscription at the second server, notifies the client that the resource may have changed, and
/// passes on later updates.
async fn subscribed(places: &[Place]) {
    const UPDATED: &str = "notifications/resources/updated";
    for case in cases(places, "drain_seconds = 600\ntags = [\"t\"]\n") {
        let mut scene = Scene::new(case).await;
        match case.client.era() {
            Era::Legacy => {
                let params = json!({"uri": URI});
                scene.client.request("watch", "resources/subscribe", params);
            }
            Era::Modern => {
                let params = json!({"notifications": {"resourceSubscriptions": [URI]}});
                scene
                    .client
                    .request("watch", "subscriptions/listen", params);
            }
        }
        let at_first = accepts(&mut scene.first, case).await;
        match case.client.era() {
            Era::Legacy => {
                let answer = scene.client.answered("watch").await;
                assert!(answer["result"].is_object(), "{case:?}: {answer}");
            }
            Era::Modern => {
                let agreed = "notifications/subscriptions/acknowledged";
                scene.client.next_of(agreed).await;
            }
        }
        update(&at_first);
        let updated = scene.client.next_of(UPDATED).await;
        assert_eq!(updated["params"]["uri"], URI, "{case:?}");

        scene.reload();
        let at_second = accepts(&mut scene.second, case).await;
        let updated = scene.client.next_of(UPDATED).await;
        assert_eq!(
            updated["params"]["uri"], URI,
            "{case:?}: it may have changed"
        );
        update(&at_second);
        let updated = scene.client.next_of(UPDATED).await;
        assert_eq!(updated["params"]["uri"], URI, "{case:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_moves_to_the_next_server() {
    subscribed(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_moves_to_the_next_server_on_http() {
    subscribed(&[Place::All, Place::Tag]).await;
}

impl Scene {
    /// Creates a task on the first server. Returns its request and the client's task id.
    async fn task(&mut self) -> (ReceivedMessage, Value) {
        let mut params = self.call();
        if self.case.client.era() == Era::Legacy {
            params["task"] = json!({"ttl": 600_000});
        }
        self.client.request("sent", "tools/call", params);
        let said = self.first.next_of("tools/call").await;
        let date = "2026-07-28T10:30:00Z";
        let mut task = json!({"taskId": "T", "status": "working", "createdAt": date,
            "lastUpdatedAt": date});
        match (self.case.client.era(), self.case.server.era()) {
            // The gateway hosts the task, and the server gets a call.
            (Era::Legacy, Era::Modern) => {}
            (_, Era::Legacy) => {
                task["ttl"] = json!(600_000);
                said.result(json!({"task": task}));
            }
            (Era::Modern, Era::Modern) => {
                task["resultType"] = json!("task");
                task["ttlMs"] = json!(600_000);
                said.result(task);
            }
        }
        let made = self.client.answered("sent").await["result"].clone();
        let made = made.get("task").unwrap_or(&made);
        assert_eq!(made["status"], "working", "{:?}: {made}", self.case);
        (said, json!({"taskId": made["taskId"]}))
    }
}

/// A task of the server ends with it. A task that the gateway hosts continues within `drain_seconds`, and fails after that.
/// No task is restarted.
async fn tasks(places: &[Place]) {
    for (keys, has_time) in [(LONG, true), (NONE, false)] {
        for case in cases(places, keys) {
            let mut scene = Scene::with(case, json!({"extensions": {TASKS: {}}})).await;
            let (said, task) = scene.task().await;
            scene.reload();
            match (case.client.era(), case.server.era()) {
                (Era::Legacy, Era::Modern) if has_time => {
                    let seen = scene.client.ask("seen", "tasks/get", task.clone()).await;
                    assert_eq!(seen["result"]["status"], "working", "{case:?}");
                    scene.client.request("result", "tasks/result", task);
                    said.text("first");
                    assert_eq!(scene.text("result").await, "first", "{case:?}");
                }
                (Era::Legacy, Era::Modern) => {
                    scene.client.request("result", "tasks/result", task);
                    scene.lost("result").await;
                }
                // Only the first server's side knows the task id that the gateway assigned.
                (Era::Modern, Era::Legacy) => {
                    let seen = scene.client.ask("seen", "tasks/get", task).await;
                    assert!(seen["error"].is_object(), "{case:?}: {seen}");
                }
                (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => {
                    let seen = scene.client.ask("seen", "tasks/get", task).await;
                    is_lost(&seen, case);
                }
            }
            scene.called(1, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn task_continues_or_is_lost() {
    tasks(&[Place::Link]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_continues_or_is_lost_on_http() {
    tasks(&[Place::All]).await;
}
