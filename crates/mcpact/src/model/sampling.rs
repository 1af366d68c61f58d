//! Sampling: questions to the client's model.

use mcpact_engine::sampling_rule::{self, Block, Speaker};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::content::{Content, Role};

pub use mcpact_engine::sampling_rule::ToolMessageError;

/// Content blocks; a single block is written without an array, as every revision accepts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks(pub Vec<Content>);

impl Serialize for Blocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = if value.is_array() {
            serde_json::from_value(value)
        } else {
            serde_json::from_value(value).map(|one| vec![one])
        };
        read.map(Self).map_err(D::Error::custom)
    }
}

impl<T: Into<Content>> From<T> for Blocks {
    fn from(content: T) -> Self {
        Self(vec![content.into()])
    }
}

/// Message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingMessage {
    /// Role.
    pub role: Role,
    /// Content.
    pub content: Blocks,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SamplingMessage {
    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<Blocks>) -> Self {
        Self::by(Role::User, content)
    }

    /// Creates a message of the assistant.
    #[must_use]
    pub fn assistant(content: impl Into<Blocks>) -> Self {
        Self::by(Role::Assistant, content)
    }

    fn by(role: Role, content: impl Into<Blocks>) -> Self {
        Self {
            role,
            content: content.into(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// Context that the client should include. Some servers send a boolean instead of `thisServer` or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// No context.
    None,
    /// Context of this server.
    ThisServer,
    /// Context of all servers.
    AllServers,
}

impl<'de> Deserialize<'de> for IncludeContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match (value.as_bool(), value.as_str()) {
            (Some(false), _) | (_, Some("none")) => Ok(Self::None),
            (Some(true), _) | (_, Some("thisServer")) => Ok(Self::ThisServer),
            (_, Some("allServers")) => Ok(Self::AllServers),
            _ => Err(D::Error::custom(format!("unknown context {value}"))),
        }
    }
}

/// The parameters of `sampling/createMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageRequest {
    /// Messages so far.
    pub messages: Vec<SamplingMessage>,
    /// Maximum number of tokens.
    pub max_tokens: u64,
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Context to include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Stop sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Model preferences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<Value>,
    /// Tools for the model; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// Rule for the use of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Metadata for the model provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CreateMessageRequest {
    /// Creates a request with these messages and token limit.
    #[must_use]
    pub fn new(messages: impl IntoIterator<Item = SamplingMessage>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            max_tokens,
            ..Self::default()
        }
    }
}

/// Message generated by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Role.
    pub role: Role,
    /// Content.
    pub content: Blocks,
    /// Name of the model.
    pub model: String,
    /// Reason why generation stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CreateMessageResult {
    /// Creates a message of this model.
    #[must_use]
    pub fn new(model: impl Into<String>, content: impl Into<Blocks>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
            extra: Map::new(),
        }
    }

    /// Sets the reason why generation stopped.
    #[must_use]
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Returns all text, joined with line feeds.
    #[must_use]
    pub fn all_text(&self) -> String {
        let texts: Vec<&str> = self.content.0.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

impl CreateMessageRequest {
    /// Checks that tool results follow their calls.
    ///
    /// # Errors
    /// The messages are invalid.
    pub fn check(&self) -> Result<(), ToolMessageError> {
        sampling_rule::check(self.messages.iter().map(|message| {
            let speaker = match message.role {
                Role::User => Speaker::User,
                Role::Assistant => Speaker::Assistant,
            };
            let blocks = message.content.0.iter().map(|block| match block {
                Content::ToolUse(call) => Block::ToolUse(call.id.as_str().into()),
                Content::ToolResult(outcome) => {
                    Block::ToolResult(outcome.tool_use_id.as_str().into())
                }
                _ => Block::Other,
            });
            (speaker, blocks)
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(messages: Value) -> Result<(), ToolMessageError> {
        let request = json!({"messages": messages, "maxTokens": 1});
        let request: CreateMessageRequest = serde_json::from_value(request).unwrap();
        request.check()
    }

    /// F9: results directly follow their calls: all of them, alone and once; calls may be parallel.
    #[test]
    fn tool_results_must_follow_their_calls() {
        let ask = json!({"role": "user", "content": {"type": "text", "text": "?"}});
        let call = |ids: &[&str]| {
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}}))
                .collect();
            json!({"role": "assistant", "content": calls})
        };
        let result = |id: &str| json!({"type": "tool_result", "toolUseId": id, "content": []});
        let give = |ids: &[&str]| {
            let results: Vec<Value> = ids.iter().map(|id| result(id)).collect();
            json!({"role": "user", "content": results})
        };
        assert_eq!(check(json!([ask])), Ok(()));
        assert_eq!(check(json!([ask, call(&["1"]), give(&["1"])])), Ok(()));
        let parallel = json!([
            ask,
            call(&["1", "2"]),
            give(&["2", "1"]),
            call(&["3"]),
            give(&["3"])
        ]);
        assert_eq!(check(parallel), Ok(()));
        let mixed =
            json!({"role": "user", "content": [result("1"), {"type": "text", "text": "x"}]});
        for (bad, fault) in [
            (json!([ask, call(&["1"])]), ToolMessageError::Missing),
            (json!([ask, call(&["1"]), ask]), ToolMessageError::Missing),
            (
                json!([ask, call(&["1", "2"]), give(&["1"])]),
                ToolMessageError::Missing,
            ),
            (
                json!([ask, call(&["1"]), give(&["1", "2"])]),
                ToolMessageError::Unmatched,
            ),
            (json!([ask, give(&["1"])]), ToolMessageError::Unmatched),
            (
                json!([ask, call(&["1"]), give(&["1", "1"])]),
                ToolMessageError::Unmatched,
            ),
            (json!([ask, call(&["1"]), mixed]), ToolMessageError::Mixed),
            (
                json!([{"role": "assistant", "content": result("1")}]),
                ToolMessageError::Role,
            ),
        ] {
            assert_eq!(check(bad.clone()), Err(fault), "{bad}");
        }
    }
}
