//! What happened at the server, and what may therefore come of a call.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::stage::Said;

/// The code of errors that the server itself answers with.
pub(super) const OWN_ERROR: i64 = -32007;

/// Everything about the calls of a conversation, by their tags.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Facts>);

#[derive(Debug, Default)]
struct Facts {
    runs: HashMap<String, u32>,
    answered: HashSet<String>,
    failed: HashSet<String>,
    /// Calls that the server does not answer.
    silent: HashMap<(usize, String), Said>,
    /// Calls that it was told to forget.
    cancelled: HashSet<(usize, String)>,
    was_silent: HashSet<String>,
    deaths: u32,
}

/// What a client did to a call of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conduct {
    /// It refused to answer a question, or did not.
    pub(super) has_refused: bool,
    /// It came back late, with a state that was not the last one, or with answers that are none.
    pub(super) is_careless: bool,
}

impl Record {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap()
    }

    /// A tool starts to run.
    pub(super) fn run(&self, tag: &str) {
        *self.facts().runs.entry(tag.to_owned()).or_default() += 1;
    }

    pub(super) fn answer(&self, tag: &str) {
        self.facts().answered.insert(tag.to_owned());
    }

    pub(super) fn fail(&self, tag: &str) {
        self.facts().failed.insert(tag.to_owned());
    }

    pub(super) fn keep_silent(&self, said: Said, tag: &str) {
        let mut facts = self.facts();
        let key = (said.connection, said.message["id"].to_string());
        facts.silent.insert(key, said);
        facts.was_silent.insert(tag.to_owned());
    }

    pub(super) fn forget(&self, connection: usize, id: &Value) {
        self.facts().cancelled.insert((connection, id.to_string()));
    }

    /// A connection ends, and everything on it.
    pub(super) fn die(&self) {
        self.facts().deaths += 1;
    }

    /// Whether anything may fail because the server was away.
    pub(super) fn has_died(&self) -> bool {
        self.facts().deaths > 0
    }

    /// Whether this may be what comes of a call.
    pub(super) fn allows(&self, tag: &str, conduct: Conduct, answer: &Value) -> Result<(), String> {
        let facts = self.facts();
        let complain = |why: &str| Err(format!("{tag}: {why}: {answer}"));
        if let Some(result) = answer.get("result") {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            if text.contains("was not completed by the client") {
                return match conduct.has_refused {
                    true => Ok(()),
                    false => complain("nobody refused"),
                };
            }
            return match (text == tag, facts.answered.contains(tag)) {
                (true, true) => Ok(()),
                (true, false) => complain("the server did not answer"),
                (false, _) => complain("the answer to something else"),
            };
        }
        match answer["error"]["code"].as_i64() {
            // The server failed, perhaps because it asked what the client did not declare.
            Some(OWN_ERROR | -32021) if facts.failed.contains(tag) => Ok(()),
            Some(-32603) if facts.was_silent.contains(tag) || facts.deaths > 0 => Ok(()),
            Some(-32602) if conduct.is_careless || facts.deaths > 0 => Ok(()),
            _ => complain("an error without a cause"),
        }
    }

    /// What must hold when all have gone.
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
