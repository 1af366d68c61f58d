//! Everything that helps to find out what is wrong, in one document that may be shown to others.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::LogLine;
use super::status::Status;

/// What `mcpact status --bundle` writes. Secrets of the config are covered wherever they stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The version of mcpact.
    pub version: String,
    /// The system that it runs on.
    pub system: String,
    /// When this was written, in ISO 8601.
    pub time: String,
    /// How everything is.
    pub status: Status,
    /// What is configured, without secrets.
    pub config: Value,
    /// Every start of every server, as far as it is remembered.
    pub attempts: Vec<Attempt>,
    /// The last lines of all logs.
    pub log: Vec<LogLine>,
}

/// One start of a server, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which server.
    pub server: String,
    /// Which instance.
    pub instance: u64,
    /// What it has come to; none if that is forgotten.
    pub state: Option<String>,
    /// For how long it has been so: one that hangs in `starting` or `handshaking` hangs there.
    pub state_seconds: Option<u64>,
    /// What became of it, in order.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When, in ISO 8601.
    pub time: String,
    /// What, such as `start_attempt`.
    pub event: String,
    /// In words.
    pub text: String,
}
