//! Client with random behaviour.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::UpstreamServer;
use mcpact_sim::scripted::{
    TestClient,
    message::{modern_request, request},
};
use mcpact_sim::seed::Seed;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::THINKING;
use super::record::{Conduct, Record};

/// Longer than any call may last.
const END: Duration = Duration::from_secs(1500);

/// Maximum number of overlapping requests per client.
const AT_ONCE: usize = 4;

pub(super) struct Visitor {
    pub(super) number: u32,
    pub(super) revision: Revision,
    pub(super) record: Arc<Record>,
    pub(super) seed: Seed,
}

/// Request in flight.
#[derive(Clone, Debug)]
struct Flight {
    tag: String,
    params: Value,
    conduct: Conduct,
    is_cancelled: bool,
}

/// Running client.
struct Visit {
    who: Visitor,
    peer: TestClient,
    capabilities: Value,
    flights: HashMap<i64, Flight>,
    /// Messages to send, with their time.
    later: Vec<(Instant, Later)>,
    last_id: i64,
    calls: u32,
}

enum Later {
    Say(Value),
    Retry(Flight),
}

fn capabilities(revision: Revision, seed: &mut Seed) -> Value {
    let mut declared = json!({});
    let can_elicit = matches!(
        revision,
        Revision::V2025_06_18 | Revision::V2025_11_25 | Revision::V2026_07_28
    );
    for (key, is_there) in [
        ("elicitation", can_elicit),
        ("sampling", true),
        ("roots", true),
    ] {
        if is_there && seed.happens(700) {
            declared[key] = json!({});
        }
    }
    declared
}

/// Returns the tag of a question; none for roots.
fn tag_of(method: &str, params: &Value) -> Option<String> {
    let tag = match method {
        "elicitation/create" => &params["message"],
        "sampling/createMessage" => {
            let content = &params["messages"][0]["content"];
            match content.get(0) {
                Some(block) => &block["text"],
                None => &content["text"],
            }
        }
        _ => return None,
    };
    Some(tag.as_str().unwrap_or("none").to_owned())
}

fn answer(method: &str) -> Value {
    match method {
        "elicitation/create" => json!({"action": "accept", "content": {}}),
        "sampling/createMessage" => json!({"role": "assistant", "model": "m",
            "content": {"type": "text", "text": "x"}}),
        _ => json!({"roots": []}),
    }
}

impl Visitor {
    pub(super) async fn visit(
        mut self,
        upstream: Arc<UpstreamServer>,
        deeds: u32,
    ) -> Result<(), String> {
        let capabilities = capabilities(self.revision, &mut self.seed);
        let peer = match self.revision.era() {
            Era::Modern => TestClient::modern(&upstream, capabilities.clone()),
            Era::Legacy => {
                let mut peer = TestClient::silent(&upstream);
                let version = self.revision.as_str();
                let opened = peer.open(version, capabilities.clone()).await;
                if opened.get("error").is_some() {
                    return match self.record.has_died() {
                        true => Ok(()),
                        false => Err(format!("not let in: {opened}")),
                    };
                }
                peer
            }
        };
        drop(upstream);
        let visit = Visit {
            who: self,
            peer,
            capabilities,
            flights: HashMap::new(),
            later: Vec::new(),
            last_id: 0,
            calls: 0,
        };
        visit.run(deeds).await
    }
}

impl Visit {
    async fn run(mut self, mut deeds: u32) -> Result<(), String> {
        let end = Instant::now() + END;
        let mut next = Instant::now();
        while Instant::now() < end {
            let waits = self.flights.values().any(|flight| !flight.is_cancelled);
            if deeds == 0 && !waits && self.later.is_empty() {
                return Ok(());
            }
            let said = self.later.iter().map(|(at, _)| *at).min();
            let wake = match deeds {
                0 => said.unwrap_or(end),
                _ => said.map_or(next, |said| said.min(next)),
            };
            tokio::select! {
                message = self.peer.recv_or_end() => match message {
                    Some(message) => self.heard(&message)?,
                    None => return Err(String::from("the gateway hung up")),
                },
                () = tokio::time::sleep_until(wake.min(end)) => {
                    self.say_what_is_due().await;
                    if deeds > 0 && Instant::now() >= next {
                        deeds -= 1;
                        next += Duration::from_millis(self.who.seed.below(3000));
                        if self.act().await {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Err(format!("no end of {:?}", self.flights))
    }

    /// Performs a random action; returns true if the client disconnects.
    async fn act(&mut self) -> bool {
        match self.who.seed.below(20) {
            0 if self.calls > 3 => return true,
            1..=3 => self.cancel().await,
            _ if self.flights.len() < AT_ONCE => self.call().await,
            _ => {}
        }
        false
    }

    async fn call(&mut self) {
        self.calls += 1;
        let tag = format!("c{}-{}", self.who.number, self.calls);
        let mut params = json!({"name": "work", "arguments": {"tag": tag}});
        if self.who.seed.happens(500) {
            params["_meta"] = json!({"progressToken": tag});
        }
        let flight = Flight {
            tag,
            params,
            conduct: Conduct::default(),
            is_cancelled: false,
        };
        let params = flight.params.clone();
        self.send(flight, params).await;
    }

    /// Sends a request; ids are small and equal for all clients.
    async fn send(&mut self, flight: Flight, params: Value) {
        let modern_client = self.who.revision.era() == Era::Modern;
        self.last_id += 1;
        let id = match modern_client {
            true => (1..).find(|id| !self.flights.contains_key(id)).unwrap(),
            false => self.last_id,
        };
        let message = match modern_client {
            true => modern_request(id, "tools/call", params, &self.capabilities),
            false => request(id, "tools/call", params),
        };
        self.flights.insert(id, flight);
        self.peer.try_send(&message).await;
    }

    async fn cancel(&mut self) {
        let open = self
            .flights
            .iter_mut()
            .find(|(_, flight)| !flight.is_cancelled);
        if let Some((id, flight)) = open {
            flight.is_cancelled = true;
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": id}});
            self.peer.try_send(&note).await;
        }
    }

    async fn say_what_is_due(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.later = later;
        for (_, what) in due {
            match what {
                Later::Say(message) => self.peer.try_send(&message).await,
                Later::Retry(flight) => {
                    let params = flight.params.clone();
                    self.send(flight, params).await;
                }
            }
        }
    }

    fn heard(&mut self, message: &Value) -> Result<(), String> {
        match message["method"].as_str() {
            None => self.answered(message),
            Some("notifications/progress") => {
                let token = message["params"]["progressToken"]
                    .as_str()
                    .unwrap_or_default();
                self.is_mine(token, message)
            }
            Some("notifications/cancelled" | "notifications/message") => Ok(()),
            Some(method) if message.get("id").is_some() => self.asked(method, message),
            Some(_) => Err(format!("unexpected {message}")),
        }
    }

    fn is_mine(&self, tag: &str, message: &Value) -> Result<(), String> {
        match self.flights.values().any(|flight| flight.tag == tag) {
            true => Ok(()),
            false => Err(format!("client {} hears {message}", self.who.number)),
        }
    }

    /// Handles a question to a legacy client.
    fn asked(&mut self, method: &str, message: &Value) -> Result<(), String> {
        let tag = tag_of(method, &message["params"]);
        // A legacy server may ask after it answered.
        let own = format!("c{}-", self.who.number);
        if tag.as_ref().is_some_and(|tag| !tag.starts_with(&own)) {
            return Err(format!("client {} is asked {message}", self.who.number));
        }
        let capability = method.split('/').next().unwrap_or_default();
        if self.capabilities.get(capability).is_none() {
            return Err(format!("asked what was not declared: {message}"));
        }
        let at = Instant::now() + Duration::from_millis(self.who.seed.below(4000));
        let id = &message["id"];
        let mood = self.who.seed.below(10);
        for flight in self.flights.values_mut() {
            // Roots have no tag.
            let is_meant = tag.as_deref().is_none_or(|tag| flight.tag == tag);
            flight.conduct.has_refused |= is_meant && mood < 2;
        }
        let reply = match mood {
            0 => return Ok(()),
            1 => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "result": answer(method)}),
        };
        self.later.push((at, Later::Say(reply)));
        Ok(())
    }

    fn answered(&mut self, message: &Value) -> Result<(), String> {
        let id = message["id"].as_i64();
        let flight = id.and_then(|id| self.flights.remove(&id));
        let Some(flight) = flight else {
            return Err(format!(
                "client {} never asked for {message}",
                self.who.number
            ));
        };
        if flight.is_cancelled {
            // It crossed the cancellation and still answers only this request.
            return Ok(());
        }
        if message["result"]["resultType"] == "input_required" {
            return self.think(flight, &message["result"]);
        }
        self.who.record.allows(&flight.tag, flight.conduct, message)
    }

    /// Handles an input-required result of a modern client, which may retry.
    fn think(&mut self, mut flight: Flight, asked: &Value) -> Result<(), String> {
        let mut answers = json!({});
        for (key, question) in asked["inputRequests"].as_object().into_iter().flatten() {
            let method = question["method"].as_str().unwrap_or_default();
            if let Some(tag) = tag_of(method, &question["params"])
                && tag != flight.tag
            {
                return Err(format!("{} is asked {question}", flight.tag));
            }
            if self.who.seed.happens(900) {
                answers[key] = answer(method);
            }
        }
        let thinks = match self.who.seed.below(10) {
            0 => return Ok(()),
            1 => THINKING + Duration::from_secs(3),
            _ => Duration::from_millis(self.who.seed.below(5000)),
        };
        if thinks > THINKING {
            flight.conduct.is_careless = true;
        }
        // Partial answers do not extend the time limit forever.
        flight.conduct.is_careless |= answers == json!({});
        flight.params["inputResponses"] = answers;
        flight.params["requestState"] = asked["requestState"].clone();
        if asked.get("requestState").is_none() {
            flight
                .params
                .as_object_mut()
                .unwrap()
                .remove("requestState");
        }
        if self.who.seed.happens(50) && asked.get("requestState").is_some() {
            // Repeated: the later request may find that the round is over.
            flight.conduct.is_careless = true;
            let at = Instant::now() + thinks;
            self.later.push((at, Later::Retry(flight.clone())));
        }
        self.later
            .push((Instant::now() + thinks, Later::Retry(flight)));
        Ok(())
    }
}
