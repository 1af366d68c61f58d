//! Record of the server, and the outcomes that it allows.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::scripted_server::ReceivedMessage;

/// Error code of the server.
pub(super) const OWN_ERROR: i64 = -32007;

/// Calls of a run by tag.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Facts>);

#[derive(Debug, Default)]
struct Facts {
    runs: HashMap<String, u32>,
    answered: HashSet<String>,
    failed: HashSet<String>,
    /// Calls without an answer.
    silent: HashMap<(usize, String), ReceivedMessage>,
    /// Cancelled calls.
    cancelled: HashSet<(usize, String)>,
    was_silent: HashSet<String>,
    deaths: u32,
}

/// Behaviour of a client in a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conduct {
    /// The client refused or ignored a question.
    pub(super) has_refused: bool,
    /// The client retried late, with an old state or without valid answers.
    pub(super) is_careless: bool,
}

impl Record {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap()
    }

    /// Records the start of a tool.
    pub(super) fn run(&self, tag: &str) {
        *self.facts().runs.entry(tag.to_owned()).or_default() += 1;
    }

    pub(super) fn answer(&self, tag: &str) {
        self.facts().answered.insert(tag.to_owned());
    }

    pub(super) fn fail(&self, tag: &str) {
        self.facts().failed.insert(tag.to_owned());
    }

    pub(super) fn keep_silent(&self, said: ReceivedMessage, tag: &str) {
        let mut facts = self.facts();
        let key = (said.connection, said.message["id"].to_string());
        facts.silent.insert(key, said);
        facts.was_silent.insert(tag.to_owned());
    }

    pub(super) fn forget(&self, connection: usize, id: &Value) {
        self.facts().cancelled.insert((connection, id.to_string()));
    }

    /// Records the end of a connection.
    pub(super) fn die(&self) {
        self.facts().deaths += 1;
    }

    /// Returns true if calls may fail because the server died.
    pub(super) fn has_died(&self) -> bool {
        self.facts().deaths > 0
    }

    /// Checks the outcome of a call.
    pub(super) fn allows(&self, tag: &str, conduct: Conduct, answer: &Value) -> Result<(), String> {
        let facts = self.facts();
        let complain = |why: &str| Err(format!("{tag}: {why}: {answer}"));
        if let Some(result) = answer.get("result") {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            if text.contains("was not completed by the client") {
                return match conduct.has_refused {
                    true => Ok(()),
                    false => complain("no question was refused"),
                };
            }
            return match (text == tag, facts.answered.contains(tag)) {
                (true, true) => Ok(()),
                (true, false) => complain("the server did not answer"),
                (false, _) => complain("the answer to something else"),
            };
        }
        match answer["error"]["code"].as_i64() {
            // The server failed, for example because of an undeclared question.
            Some(OWN_ERROR | -32021) if facts.failed.contains(tag) => Ok(()),
            Some(-32603) if facts.was_silent.contains(tag) || facts.deaths > 0 => Ok(()),
            Some(-32602) if conduct.is_careless || facts.deaths > 0 => Ok(()),
            _ => complain("an error without a cause"),
        }
    }

    /// Checks the invariants after all clients disconnected.
    pub(super) fn is_over(&self) -> Result<(), String> {
        let facts = self.facts();
        if let Some((tag, runs)) = facts.runs.iter().find(|(_, runs)| **runs > 1) {
            return Err(format!("{tag} ran {runs} times"));
        }
        let mut silent = facts.silent.iter();
        let kept = silent.find(|(call, said)| !facts.cancelled.contains(*call) && !said.is_over());
        match kept {
            Some((_, said)) => Err(format!(
                "the server was not told to forget {}",
                said.message
            )),
            None => Ok(()),
        }
    }
}
