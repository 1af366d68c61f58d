//! A client that acts at random and checks everything it receives.

use std::sync::Arc;
use std::time::Duration;

use mcpact_sim::seed::Seed;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{Addresses, Carried, Case, Clock, Ledger, pick};
use crate::client::{Address, Client};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Names of tools and resources, as a client sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    All,
    Single,
}

impl Place {
    fn tool(self, name: &str) -> String {
        match self {
            Self::All => format!("s__{name}"),
            Self::Single => name.to_owned(),
        }
    }

    fn uri(self, uri: &str) -> String {
        match self {
            Self::All => format!("mcpact://s/{uri}"),
            Self::Single => uri.to_owned(),
        }
    }
}

pub(super) struct Visitor {
    client: Client,
    place: Place,
    is_http: bool,
    who: String,
    seed: Seed,
    ledger: Arc<Ledger>,
    case: Case,
    has_tasks: bool,
    turn: u64,
}

impl Visitor {
    /// Connects to the gateway several times in a row, as different clients.
    pub(super) async fn run(
        addresses: Arc<Addresses>,
        case: Case,
        mut seed: Seed,
        ledger: Arc<Ledger>,
        finish: mpsc::UnboundedSender<()>,
        mut all_done: watch::Receiver<bool>,
    ) {
        let mut last = None;
        for _ in 0..1 + seed.below(2) {
            // The previous client has disconnected.
            drop(last.take());
            last = Self::connect(&addresses, case, &mut seed, &ledger).await;
            if let Some(visitor) = &mut last {
                for _ in 0..2 + visitor.seed.below(5) {
                    visitor.act().await;
                }
            }
        }
        let _ = finish.send(());
        let Some(mut visitor) = last else {
            let _ = all_done.changed().await;
            return;
        };
        // Misdirected messages may arrive late.
        loop {
            let message = tokio::select! {
                message = visitor.client.recv() => message,
                _ = all_done.changed() => break,
            };
            visitor.receive(message.unwrap()).await;
        }
        visitor.fence().await;
    }

    async fn connect(
        addresses: &Addresses,
        case: Case,
        seed: &mut Seed,
        ledger: &Arc<Ledger>,
    ) -> Option<Self> {
        let who = ledger.next_mark();
        let (place, address) = addresses.draw(seed);
        let revisions = [
            Revision::V2025_06_18,
            Revision::V2025_11_25,
            Revision::V2026_07_28,
        ];
        let revision = pick(seed, &revisions);
        let mut can = json!({});
        if seed.happens(850) {
            for capability in ["elicitation", "sampling", "roots"] {
                can[capability] = json!({});
            }
        }
        let has_tasks = match revision {
            Revision::V2025_11_25 => true,
            _ if revision.era() == Era::Modern => seed.happens(300),
            _ => false,
        };
        if has_tasks && revision.era() == Era::Modern {
            can["extensions"] = json!({TASKS: {}});
        }
        ledger.note(format!("{who} connects: {revision} {address:?} {can}"));
        let key = format!("key-{}", who.trim_matches('@'));
        let gateway = &addresses.gateway;
        let client = Client::try_connect(gateway, &address, revision, can, Some(&key)).await;
        let client = client.inspect_err(|refused| {
            ledger.note(format!("{who} is refused: {refused}"));
            ledger.check(&who, refused);
        });
        let mut client = client.ok()?;
        if case.clock == Clock::Paused {
            // Longer than a call may take.
            client.patience = Duration::from_secs(3600);
        }
        Some(Self {
            client,
            place,
            is_http: matches!(address, Address::Url(_)),
            who,
            seed: Seed::new(seed.draw()),
            ledger: Arc::clone(ledger),
            case,
            has_tasks,
            turn: 0,
        })
    }

    /// Checks a message, and answers it if it is a request.
    async fn receive(&mut self, message: Value) -> Value {
        self.ledger.note(format!("{} <- {message}", self.who));
        // HTTP clients of one user of the machine may list each other's tasks.
        let is_shared = self.is_http && message["result"]["tasks"].is_array();
        if !is_shared {
            self.ledger.check(&self.who, &message);
        }
        let method = message["method"].as_str().unwrap_or_default();
        match method {
            "notifications/progress" => {
                self.ledger.count("progress");
                if message["params"]["progressToken"] != "p" {
                    self.ledger
                        .leak(format!("{} did not choose this token", self.who));
                }
            }
            "notifications/message" => self.ledger.count("log"),
            "notifications/resources/updated" => self.ledger.count("update"),
            "notifications/tasks/status" => self.ledger.count("status"),
            _ => {}
        }
        if message.get("id").is_some() && !method.is_empty() {
            let answer = self.answer(method);
            self.client.answer(&message, answer).await;
        }
        message
    }

    /// Returns the answer to a request.
    fn answer(&self, method: &str) -> Value {
        let who = &self.who;
        match method {
            "elicitation/create" => {
                self.ledger.count("elicitation");
                json!({"action": "accept", "content": {"who": who}})
            }
            "sampling/createMessage" => {
                self.ledger.count("sampling");
                let content = json!({"type": "text", "text": who});
                json!({"role": "assistant", "model": "m", "content": content})
            }
            "roots/list" => {
                self.ledger.count("roots");
                json!({"roots": [{"uri": format!("file:///{who}")}]})
            }
            _ => json!({}),
        }
    }

    /// Waits for the response to a request.
    async fn finish(&mut self, id: &str) -> Value {
        loop {
            let message = self.client.next().await;
            let message = self.receive(message).await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Waits until all earlier messages have arrived.
    async fn fence(&mut self) {
        let method = match self.client.revision.era() {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        self.client.request("fence", method, json!({}));
        self.finish("fence").await;
    }

    fn next_id(&mut self) -> String {
        self.turn += 1;
        self.turn.to_string()
    }

    fn call(&self, tool: &str, deeds: &[&str]) -> Value {
        let arguments = json!({"who": self.who, "do": deeds, "uri": format!("mem://{}", self.who)});
        let meta = json!({"progressToken": "p", LOG_LEVEL: "debug"});
        json!({"name": self.place.tool(tool), "arguments": arguments, "_meta": meta})
    }

    /// Performs one random action.
    async fn act(&mut self) {
        let id = self.next_id();
        match self.seed.below(20) {
            0..=8 => {
                let deeds = ["progress", "log", "elicit", "sample", "roots", "update"];
                let chosen = deeds.iter().filter(|_| self.seed.happens(350)).copied();
                let chosen: Vec<&str> = chosen.collect();
                let params = self.call("t", &chosen);
                self.in_rounds(&id, params).await;
            }
            9 | 10 => {
                self.client.request(&id, "tools/list", json!({}));
                self.finish(&id).await;
                self.ledger.count("list");
            }
            11 | 12 => self.subscribe(&id).await,
            13 => {
                let params = json!({});
                if self.client.revision.era() == Era::Legacy {
                    self.client
                        .note("notifications/roots/list_changed", params)
                        .await;
                }
            }
            14 | 15 if self.has_tasks => self.task(&id).await,
            16 if self.case.is_http || self.case.clock == Clock::Paused => self.hang(&id).await,
            17 => self.steal(&id).await,
            18 if !self.case.is_http => {
                let params = self.call("t", &["progress", "die"]);
                self.client.request(&id, "tools/call", params);
                self.finish(&id).await;
            }
            _ => {
                let params = self.call("t", &["log"]);
                self.in_rounds(&id, params).await;
            }
        }
    }

    /// Calls until the server needs no more input.
    async fn in_rounds(&mut self, id: &str, mut params: Value) -> Value {
        loop {
            self.client.request(id, "tools/call", params.clone());
            let answer = self.finish(id).await;
            let result = &answer["result"];
            if result["resultType"] != "input_required" {
                if answer.get("result").is_some() {
                    self.ledger.count("answer");
                }
                return answer;
            }
            params["requestState"] = result["requestState"].clone();
            for (key, request) in result["inputRequests"].as_object().unwrap() {
                let method = request["method"].as_str().unwrap();
                params["inputResponses"][key] = self.answer(method);
            }
            // A modern server protects its states itself.
            if self.case.server.era() == Era::Legacy {
                self.publish("tools/call", params.clone());
            }
        }
    }

    /// Lets others try what only this client may do.
    fn publish(&self, method: &'static str, params: Value) {
        let carried = Carried {
            owner: self.who.clone(),
            place: self.place,
            is_http: self.is_http,
            method,
            params,
        };
        self.ledger.carried.lock().unwrap().push(carried);
    }

    /// Tries what another client may do.
    async fn steal(&mut self, id: &str) {
        let era = self.client.revision.era();
        let carried = {
            let carried = self.ledger.carried.lock().unwrap();
            let mut foreign = carried.iter().rev();
            let found = foreign.find(|carried| {
                let has_state = carried.params.get("requestState").is_some();
                // `2025-11-25 basic/utilities/tasks#security`: without an authorization context, a client that knows
                // the random id of a task may fetch it. On HTTP these clients have none.
                let is_allowed = !has_state && carried.is_http && self.is_http;
                carried.owner != self.who
                    && carried.place == self.place
                    && !is_allowed
                    && (self.has_tasks || has_state)
                    && (era == Era::Modern || !has_state)
            });
            found.cloned()
        };
        if let Some(carried) = carried {
            self.ledger.count("stolen");
            self.client.request(id, carried.method, carried.params);
            self.finish(id).await;
        }
    }

    /// Starts a task and fetches its result.
    async fn task(&mut self, id: &str) {
        let mut params = self.call("job", &[]);
        let is_legacy = self.client.revision.era() == Era::Legacy;
        if is_legacy {
            params["task"] = json!({"ttl": 600_000});
        }
        self.client.request(id, "tools/call", params);
        let made = self.finish(id).await["result"].clone();
        let made = made.get("task").unwrap_or(&made);
        let Some(task) = made["taskId"].as_str() else {
            return;
        };
        self.ledger.count("task");
        let task = json!({"taskId": task});
        self.publish("tasks/get", task.clone());
        let methods: &[&str] = match is_legacy {
            true => &["tasks/get", "tasks/result", "tasks/list"],
            false => &["tasks/get", "tasks/get"],
        };
        for method in methods {
            let id = self.next_id();
            self.client.request(&id, method, task.clone());
            self.finish(&id).await;
        }
    }

    /// Subscribes to a resource of its own.
    async fn subscribe(&mut self, id: &str) {
        let uri = self.place.uri(&format!("mem://{}", self.who));
        match self.client.revision.era() {
            Era::Legacy => {
                self.client
                    .request(id, "resources/subscribe", json!({"uri": uri}));
                self.finish(id).await;
            }
            Era::Modern => {
                let params = json!({"notifications": {"resourceSubscriptions": [uri]}});
                self.client
                    .request(&format!("stream {id}"), "subscriptions/listen", params);
            }
        }
        let id = self.next_id();
        let params = self.call("t", &["update"]);
        self.in_rounds(&id, params).await;
    }

    /// Makes a call that gets no response, and cancels it.
    async fn hang(&mut self, id: &str) {
        let params = self.call("t", &["hang"]);
        self.client.request(id, "tools/call", params);
        self.fence().await;
        self.client.cancel(id).await;
        self.fence().await;
    }
}
