//! Completion of arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
        /// Its name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource or a template of resources.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its address or template.
        uri: String,
    },
}

impl CompletionRef {
    /// A prompt by its name.
    #[must_use]
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt {
            name: name.into(),
            title: None,
        }
    }

    /// A resource or a template by its address.
    #[must_use]
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// Values that an argument could have; at most 100.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Completion {
    /// These values and no more.
    #[must_use]
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
