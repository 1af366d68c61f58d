//! Server with random behaviour.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_sim::seed::Seed;
use mcpact_spec::Era;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::record::{OWN_ERROR, Record};
use crate::scripted_server::{ReceivedMessage, ScriptedServer};

/// Time limit for an answer: all questions of a call fit into the time that a gateway allows a cancelled call.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Server {
    pub(super) record: Arc<Record>,
    pub(super) era: Era,
    pub(super) is_mortal: bool,
    pub(super) seed: Seed,
}

/// Receivers of answers.
#[derive(Clone, Default)]
struct Questions(Arc<Mutex<HashMap<Asked, oneshot::Sender<()>>>>);

/// Question.
#[derive(PartialEq, Eq, Hash)]
struct Asked {
    connection: usize,
    id: String,
}

/// Run of a tool.
struct Run {
    said: ReceivedMessage,
    tag: String,
    record: Arc<Record>,
    questions: Questions,
    is_mortal: bool,
    seed: Seed,
}

/// Returns a question with the tag of its call.
fn question(tag: &str, seed: &mut Seed) -> (&'static str, Value) {
    match seed.below(3) {
        0 => ("roots/list", json!({"_meta": {"tag": tag}})),
        1 => (
            "sampling/createMessage",
            json!({"maxTokens": 9, "messages": [
            {"role": "user", "content": {"type": "text", "text": tag}}]}),
        ),
        _ => (
            "elicitation/create",
            json!({"message": tag,
            "requestedSchema": {"type": "object", "properties": {}}}),
        ),
    }
}

impl Server {
    pub(super) async fn run(mut self, mut scripted: ScriptedServer) {
        let questions = Questions::default();
        let mut asked = 0_u64;
        while let Some(said) = scripted.recv_or_end().await {
            match said.method() {
                "tools/call" => {
                    asked += 10;
                    let run = Run {
                        tag: said.params()["arguments"]["tag"]
                            .as_str()
                            .unwrap()
                            .to_owned(),
                        said,
                        record: Arc::clone(&self.record),
                        questions: questions.clone(),
                        is_mortal: self.is_mortal,
                        seed: Seed::new(self.seed.draw()),
                    };
                    match self.era {
                        Era::Legacy => tokio::spawn(run.asking_within(asked)),
                        Era::Modern => tokio::spawn(run.asking_before()),
                    };
                }
                "notifications/cancelled" => {
                    let id = &said.params()["requestId"];
                    self.record.forget(said.connection, id);
                }
                "" => {
                    let key = Asked {
                        connection: said.connection,
                        id: said.message["id"].to_string(),
                    };
                    let waiting = questions.0.lock().unwrap().remove(&key);
                    if let Some(waiting) = waiting {
                        // The receiver may have timed out.
                        let _ = waiting.send(());
                    }
                }
                _ => said.result(json!({"resultType": "complete", "tools": [], "ttlMs": 0,
                    "cacheScope": "private"})),
            }
        }
    }
}

impl Run {
    async fn pause(&mut self) {
        let pause = self.seed.below(2000);
        if pause > 500 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Sends progress with the token of the call.
    fn progress(&mut self) {
        let token = &self.said.params()["_meta"]["progressToken"];
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": self.seed.below(100)});
            self.said.notify("notifications/progress", params);
        }
    }

    /// Asks during the call, as legacy servers do, with equal ids on every connection.
    async fn asking_within(mut self, first: u64) {
        self.record.run(&self.tag);
        for number in 0..self.seed.below(4) {
            self.pause().await;
            self.progress();
            let id = first % 50 + number;
            let (method, params) = question(&self.tag, &mut self.seed);
            let (tell, answered) = oneshot::channel();
            let key = Asked {
                connection: self.said.connection,
                id: id.to_string(),
            };
            self.questions.0.lock().unwrap().insert(key, tell);
            self.said.ask(id, method, params);
            if self.seed.happens(200) {
                // The next question does not wait for the answer.
                continue;
            }
            let heard = tokio::time::timeout(PATIENCE, answered).await;
            if heard.is_err() && self.seed.happens(500) {
                self.said
                    .notify("notifications/cancelled", json!({"requestId": id}));
            }
        }
        self.finish().await;
    }

    /// Asks by an input-required result, as modern servers do, and checks its own state.
    async fn asking_before(mut self) {
        let params = self.said.params();
        let state = params["requestState"].as_str().map(str::to_owned);
        let is_fresh = state.is_none() && params.get("inputResponses").is_none();
        if is_fresh {
            self.record.run(&self.tag);
        }
        let round = match &state {
            None if is_fresh => 0,
            None => 9,
            Some(state) => {
                let (tag, round) = state.split_once('#').unwrap();
                assert_eq!(tag, self.tag, "a state comes back with its own call");
                round.parse().unwrap()
            }
        };
        self.pause().await;
        self.progress();
        if round >= 3 || self.seed.happens(500) {
            return self.finish().await;
        }
        let mut result = json!({"resultType": "input_required"});
        let count = self.seed.below(3);
        if count > 0 {
            let declared =
                &self.said.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            let declared = declared.clone();
            let mut requests = json!({});
            for number in 0..count {
                let (method, params) = question(&self.tag, &mut self.seed);
                let capability = method.split('/').next().unwrap();
                if declared.get(capability).is_some() {
                    requests[format!("k{number}")] = json!({"method": method, "params": params});
                }
            }
            if requests != json!({}) {
                result["inputRequests"] = requests;
            }
        }
        if result.get("inputRequests").is_none() || self.seed.happens(800) {
            result["requestState"] = json!(format!("{}#{}", self.tag, round + 1));
        }
        self.said.result(result);
    }

    async fn finish(mut self) {
        self.pause().await;
        self.progress();
        match self.seed.below(20) {
            0 => {
                self.record.keep_silent(self.said, &self.tag);
            }
            1 | 2 => {
                self.record.fail(&self.tag);
                self.said
                    .error(json!({"code": OWN_ERROR, "message": self.tag}));
            }
            3 if self.is_mortal => {
                self.record.die();
                self.said.hang_up();
            }
            drawn => {
                self.record.answer(&self.tag);
                self.said.text(&self.tag);
                if drawn == 4 {
                    // A duplicate response, which is dropped.
                    self.said.text(&self.tag);
                }
            }
        }
    }
}
