//! What a server has to show each feature with.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One step per feature; a feature without a step is one that the server has nothing for.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    /// The address that this client gives as its root.
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

/// A call of a tool and something that its answer must contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) expect: String,
    /// Call again until it fits, for a server that catches up without telling.
    #[serde(default)]
    pub(crate) eventually: bool,
}

/// A resource and something that it must contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) uri: String,
    pub(crate) expect: String,
}

/// A prompt and something that it must contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) expect: String,
}

/// The beginning of an argument of a prompt and a value that must be offered for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    pub(crate) prompt: String,
    pub(crate) argument: String,
    pub(crate) value: String,
    pub(crate) expect: String,
}

/// A call to be cancelled after its first sign of progress, and a call that tells what became of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancel {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) then: Call,
}

/// A resource, and a call that changes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subscribe {
    pub(crate) uri: String,
    pub(crate) change: Call,
}

/// A call of a tool that logs, and something that a message must contain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) call: Call,
    pub(crate) expect: String,
}
