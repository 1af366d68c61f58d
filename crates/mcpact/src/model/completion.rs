//! Completion of arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Owner of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Name.
        name: String,
        /// Display name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource or a template of resources.
    #[serde(rename = "ref/resource")]
    Resource {
        /// URI or template.
        uri: String,
    },
}

impl CompletionRef {
    /// Refers to a prompt by name.
    #[must_use]
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt {
            name: name.into(),
            title: None,
        }
    }

    /// Refers to a resource or template by URI.
    #[must_use]
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// Completions of an argument; at most 100.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// Values, best first.
    pub values: Vec<String>,
    /// Total number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// `true` if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Completion {
    /// Creates a completion with these values.
    #[must_use]
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
