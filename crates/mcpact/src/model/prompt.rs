//! Prompts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{Content, Icon, Role};

/// Prompt template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Prompt {
    /// Creates a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.get_or_insert_default().push(argument);
        self
    }
}

/// Argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `true` if it is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl PromptArgument {
    /// Creates an optional argument.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Makes the argument required.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = Some(true);
        self
    }
}

/// Message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// Role.
    pub role: Role,
    /// Content.
    pub content: Content,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl PromptMessage {
    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<Content>) -> Self {
        Self::by(Role::User, content)
    }

    /// Creates a message of the assistant.
    #[must_use]
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::by(Role::Assistant, content)
    }

    fn by(role: Role, content: impl Into<Content>) -> Self {
        let (content, extra) = (content.into(), Map::new());
        Self {
            role,
            content,
            extra,
        }
    }
}

/// Result of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptResult {
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Messages.
    pub messages: Vec<PromptMessage>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl PromptResult {
    /// Creates a result with these messages.
    #[must_use]
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

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
