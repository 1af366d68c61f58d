//! A server that does its work in many ways.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_sim::seed::Seed;
use mcpact_spec::Era;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::record::{OWN_ERROR, Record};
use crate::stage::{Said, Stage};

/// How long it waits for an answer to a question: with all questions of a call, no longer than a bridge
/// expects it to go on with a call that was cancelled.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Server {
    pub(super) record: Arc<Record>,
    pub(super) era: Era,
    pub(super) is_mortal: bool,
    pub(super) seed: Seed,
}

/// Whoever waits for the answer to a question.
#[derive(Clone, Default)]
struct Questions(Arc<Mutex<HashMap<Asked, oneshot::Sender<()>>>>);

/// A question.
#[derive(PartialEq, Eq, Hash)]
struct Asked {
    connection: usize,
    id: String,
}

/// One run of a tool.
struct Run {
    said: Said,
    tag: String,
    record: Arc<Record>,
    questions: Questions,
    is_mortal: bool,
    seed: Seed,
}

/// A question that names the call that it belongs to.
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
    pub(super) async fn run(mut self, mut stage: Stage) {
        let questions = Questions::default();
        let mut asked = 0_u64;
        while let Some(said) = stage.hear_more().await {
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
                        // It may have lost its patience.
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

    /// Tells how far it is, under the token that it was given.
    fn progress(&mut self) {
        let token = &self.said.params()["_meta"]["progressToken"];
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": self.seed.below(100)});
            self.said.note("notifications/progress", params);
        }
    }

    /// Asks in the middle of the work, as legacy servers do; its ids are alike on every connection.
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
                // It does not wait before it asks more.
                continue;
            }
            let heard = tokio::time::timeout(PATIENCE, answered).await;
            if heard.is_err() && self.seed.happens(500) {
                self.said
                    .note("notifications/cancelled", json!({"requestId": id}));
            }
        }
        self.finish().await;
    }

    /// Asks by its result, as modern servers do, and knows its own state again.
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
                    // Once more, which nobody waits for.
                    self.said.text(&self.tag);
                }
            }
        }
    }
}
