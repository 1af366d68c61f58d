//! Every call that was made and what became of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::error::RowError;
use crate::figure::Figures;
use crate::journal::{Entry, Journal};

/// Numbers of calls are never used again, whichever ledger they are in.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its own answer, once.
    Answered,
    /// An error, which names its reason.
    Refused(String),
    /// The caller hung up.
    Left,
    /// An answer that is not its own.
    Crossed,
    /// More than one answer.
    Many,
    /// No outcome at all: the connection ended, or nothing came in time.
    Lost,
}

/// Outcome of a call, with its duration.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) nonce: u64,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// Every call that was made and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<BTreeMap<u64, Outcome>>,
}

/// The sums of a ledger.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balance {
    pub(crate) sent: usize,
    pub(crate) answered: usize,
    pub(crate) refused: usize,
    pub(crate) left: usize,
    pub(crate) lost: usize,
    pub(crate) crossed: usize,
    /// More than one answer, or more than one entry in a journal.
    pub(crate) twice: usize,
    /// Answered, although no server has seen it.
    pub(crate) invented: usize,
}

impl Ledger {
    /// A number that no other call has.
    pub(crate) fn mint() -> u64 {
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    fn write(&self, nonce: u64, outcome: Outcome) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(nonce, outcome);
    }

    /// Opens the account of a call: it is lost until it is closed.
    pub(crate) fn open(&self) -> u64 {
        let nonce = Self::mint();
        self.write(nonce, Outcome::Lost);
        nonce
    }

    /// Closes it by what came back.
    pub(crate) fn close(&self, nonce: u64, reply: &Result<Reply, RowError>) -> Outcome {
        let outcome = judge(nonce, reply);
        self.write(nonce, outcome.clone());
        outcome
    }

    /// Closes it because the caller hung up.
    pub(crate) fn leave(&self, nonce: u64) {
        self.write(nonce, Outcome::Left);
    }

    /// A call of a tool with the number of the call and other arguments.
    pub(crate) async fn call(&self, client: &Client, tool: &str, mut arguments: Value) -> Closed {
        let nonce = self.open();
        arguments["nonce"] = json!(nonce);
        let begin = Instant::now();
        let reply = client.call(&json!(nonce), tool, arguments).await;
        let took = begin.elapsed();
        let outcome = self.close(nonce, &reply);
        Closed {
            nonce,
            outcome,
            took,
        }
    }

    /// The sums, checked against what the servers have seen.
    pub(crate) fn balance(&self, journals: &[&Journal]) -> Balance {
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        for nonce in journals.iter().flat_map(|journal| journal.all(Entry::Call)) {
            *seen.entry(nonce).or_default() += 1;
        }
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = Balance::default();
        for (nonce, outcome) in entries.iter() {
            let count = seen.get(nonce).copied().unwrap_or_default();
            sums.sent += 1;
            sums.twice += usize::from(count > 1);
            match outcome {
                Outcome::Answered => {
                    sums.answered += 1;
                    sums.invented += usize::from(count == 0 && !journals.is_empty());
                }
                Outcome::Refused(_) => sums.refused += 1,
                Outcome::Left => sums.left += 1,
                Outcome::Crossed => sums.crossed += 1,
                Outcome::Many => sums.twice += 1,
                Outcome::Lost => sums.lost += 1,
            }
        }
        sums
    }
}

impl Balance {
    /// Adds the figures of "nothing lost".
    pub(crate) fn tell(self, figures: &mut Figures) {
        figures.shown("calls", self.sent as f64, "");
        figures.shown("answered", self.answered as f64, "");
        figures.shown("refused with a reason", self.refused as f64, "");
        if self.left > 0 {
            figures.shown("hung up by the caller", self.left as f64, "");
        }
        figures.none("lost", self.lost);
        figures.none("crossed", self.crossed);
        figures.none("twice", self.twice);
        figures.none("answered, not served", self.invented);
    }
}

fn judge(nonce: u64, reply: &Result<Reply, RowError>) -> Outcome {
    let Ok(reply) = reply else {
        return Outcome::Lost;
    };
    let answers = reply.answers();
    match answers.as_slice() {
        [] if reply.status >= 400 => Outcome::Refused(format!("HTTP {}", reply.status)),
        [] => Outcome::Lost,
        [one] => one_answer(nonce, one),
        [..] => Outcome::Many,
    }
}

fn one_answer(nonce: u64, answer: &Value) -> Outcome {
    if let Some(error) = answer.get("error") {
        let reason = error["data"]["reason"].as_str().unwrap_or_default();
        let message = error["message"].as_str().unwrap_or_default();
        return Outcome::Refused(format!("{} {reason}: {message}", error["code"]));
    }
    let text = answer["result"]["content"][0]["text"].as_str();
    let said = text.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let said = said.or_else(|| answer["result"]["structuredContent"]["nonce"].as_u64());
    if said == Some(nonce) {
        Outcome::Answered
    } else {
        Outcome::Crossed
    }
}
