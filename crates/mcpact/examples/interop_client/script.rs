//! Script for the features of a server.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One step per feature; features without a step are skipped.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    /// Root of this client.
    pub(crate) root: String,
    pub(crate) call: Option<Call>,
    pub(crate) read: Option<Read>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) complete: Option<Complete>,
    pub(crate) progress: Option<Call>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) elicit: Option<Call>,
    pub(crate) sample: Option<Call>,
    pub(crate) roots: Option<Call>,
    pub(crate) log: Option<Log>,
    pub(crate) subscribe: Option<Subscribe>,
}

/// Tool call and expected content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) expect: String,
    /// Repeats the call until it matches, for servers that update without notification.
    #[serde(default)]
    pub(crate) eventually: bool,
}

/// Resource and expected content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) uri: String,
    pub(crate) expect: String,
}

/// Prompt and expected content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) expect: String,
}

/// Prefix of a prompt argument and an expected completion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    pub(crate) prompt: String,
    pub(crate) argument: String,
    pub(crate) value: String,
    pub(crate) expect: String,
}

/// Call to be cancelled after its first progress, and a call that reports its fate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancel {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) then: Call,
}

/// Resource and a call that changes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subscribe {
    pub(crate) uri: String,
    pub(crate) change: Call,
}

/// Call of a logging tool and expected content of a message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) call: Call,
    pub(crate) expect: String,
}
