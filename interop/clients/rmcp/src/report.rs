//! The arguments of the program, and one line per feature.

use std::fmt;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

/// A feature that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(15);

/// `--mode MODE (--url URL | --stdio COMMAND ARGS...)`
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) mode: String,
    pub(crate) target: Target,
}

/// Where the server is.
#[derive(Debug)]
pub(crate) enum Target {
    Url(String),
    Command(String, Vec<String>),
}

impl Invocation {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Trouble> {
        let mut mode = None;
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| fails("a flag has no value"))?;
            let target = match flag.as_str() {
                "--mode" => {
                    mode = Some(value);
                    continue;
                }
                "--url" => Target::Url(value),
                "--stdio" => Target::Command(value, words.by_ref().collect()),
                _ => return Err(fails(format!("unknown argument `{flag}`"))),
            };
            let mode = mode.ok_or_else(|| fails("`--mode` must come first"))?;
            return Ok(Self { mode, target });
        }
        Err(fails("neither `--url` nor `--stdio`"))
    }

    /// What is to be negotiated.
    pub(crate) fn revision(&self) -> String {
        match self.mode.as_str() {
            "auto" | "modern" => String::from("2026-07-28"),
            "legacy" => String::from("2025-11-25"),
            revision => revision.to_owned(),
        }
    }
}

/// Why a feature does not work.
pub(crate) enum Trouble {
    /// This SDK or this revision does not have it.
    Absent(String),
    /// It should work.
    Fails(String),
}

impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(text) | Self::Fails(text)) = self;
        f.write_str(text)
    }
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Fails(error.to_string())
    }
}

pub(crate) fn fails(text: impl Into<String>) -> Trouble {
    Trouble::Fails(text.into())
}

pub(crate) fn check(holds: bool, what: &str) -> Result<(), Trouble> {
    if holds { Ok(()) } else { Err(fails(what)) }
}

pub(crate) fn equal(actual: &Value, expected: &Value, what: &str) -> Result<(), Trouble> {
    check(
        actual == expected,
        &format!("{what}: {actual} instead of {expected}"),
    )
}

/// Runs one feature, and tells how it went; the note is what the feature returns.
pub(crate) async fn feature(
    name: &str,
    run: impl Future<Output = Result<String, Trouble>>,
) -> Result<(), Trouble> {
    let hangs = || Err(fails(format!("nothing happened for {PATIENCE:?}")));
    let outcome = timeout(PATIENCE, run).await.unwrap_or_else(|_| hangs());
    tell(name, &outcome)
}

pub(crate) fn tell(name: &str, outcome: &Result<String, Trouble>) -> Result<(), Trouble> {
    let (outcome, note) = match outcome {
        Ok(note) => ("works", note),
        Err(Trouble::Absent(note)) => ("absent", note),
        Err(Trouble::Fails(note)) => ("fails", note),
    };
    let line = json!({"feature": name, "outcome": outcome, "note": note});
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Things that arrive by themselves: what came, and a way to wait for as many as one expects.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    items: Mutex<Vec<Value>>,
    more: Notify,
}

impl Inbox {
    pub(crate) fn push(&self, item: Value) {
        self.items
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(item);
        self.more.notify_waiters();
    }

    pub(crate) fn items(&self) -> Vec<Value> {
        self.items
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) async fn at_least(&self, count: usize) -> Vec<Value> {
        loop {
            let more = self.more.notified();
            let items = self.items();
            if items.len() >= count {
                return items;
            }
            more.await;
        }
    }
}
