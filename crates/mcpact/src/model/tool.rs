//! Tools and their results.

use mcpact_wire::scan::push_quoted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{Content, Icon};

/// Callable tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments; external references are never followed.
    pub input_schema: Value,
    /// JSON Schema of the structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Untrusted hints about its behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Execution rules; only in 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
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

impl Tool {
    /// Creates a tool with this input schema.
    #[must_use]
    pub fn new(name: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            input_schema,
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

    /// Sets the schema of the structured content.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Sets the hints about its behaviour.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets the task support.
    #[must_use]
    pub fn task_support(mut self, support: TaskSupport) -> Self {
        self.execution = Some(ToolExecution {
            task_support: Some(support),
            extra: Map::new(),
        });
        self
    }

    /// Returns the task support; `Forbidden` if unset.
    #[must_use]
    pub fn supports_tasks(&self) -> TaskSupport {
        self.execution
            .as_ref()
            .and_then(|execution| execution.task_support)
            .unwrap_or(TaskSupport::Forbidden)
    }
}

/// Hints about the behaviour of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool does not modify anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may perform destructive updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeated calls have no additional effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external entities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Execution rules of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Task support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Task support of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Calls must not be tasks.
    Forbidden,
    /// Calls may be tasks.
    Optional,
    /// Calls must be tasks.
    Required,
}

/// Result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Content for the model.
    #[serde(default)]
    pub content: Vec<Content>,
    /// Structured content for programs; since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// `true` if the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResult {
    /// Creates a result with these blocks.
    #[must_use]
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self {
            content: content.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a result with one block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([Content::text(text)])
    }

    /// Creates a failed result with a text for the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: Some(true),
            ..Self::text(text)
        }
    }

    /// Sets the structured content. Without other content it is repeated as text, for older clients.
    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        if self.content.is_empty() {
            self.content.push(Content::text(value.to_string()));
        }
        self.structured_content = Some(value);
        self
    }

    /// Adds a block.
    #[must_use]
    pub fn with(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Returns `true` if the tool failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }

    /// Returns `true` if it has no members but text content and `isError`, which all revisions encode alike.
    pub(crate) fn is_plain(&self) -> bool {
        let Self {
            content,
            structured_content,
            is_error: _,
            meta,
            extra,
        } = self;
        structured_content.is_none()
            && meta.is_none()
            && extra.is_empty()
            && content
                .iter()
                .all(|block| matches!(block, Content::Text(text) if text.is_plain()))
    }

    /// Encodes as JSON.
    pub(crate) fn encode(&self) -> Result<String, serde_json::Error> {
        if self.is_plain() {
            Ok(self.encode_plain(["{", ""], ["", "}"]))
        } else {
            serde_json::to_string(self)
        }
    }

    /// Encodes a plain result as JSON, with text before and after its members. Faster than a serializer, since most
    /// of it is text.
    pub(crate) fn encode_plain(&self, before: [&str; 2], behind: [&str; 2]) -> String {
        let texts = || self.content.iter().filter_map(Content::as_text);
        let room: usize = texts().map(|text| text.len() + 32).sum();
        let around = before.into_iter().chain(behind).map(str::len);
        let mut out = String::with_capacity(room + around.sum::<usize>() + 64);
        out.extend(before);
        out.push_str(r#""content":["#);
        for (at, text) in texts().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            out.push_str(r#"{"type":"text","text":"#);
            push_quoted(&mut out, text);
            out.push('}');
        }
        out.push(']');
        if let Some(is_error) = self.is_error {
            out.push_str(r#","isError":"#);
            out.push_str(if is_error { "true" } else { "false" });
        }
        out.extend(behind);
        out
    }

    /// Returns all text, joined with line feeds.
    #[must_use]
    pub fn all_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_encoding_matches_the_serializer() {
        let annotated = Content::Text(crate::model::TextContent {
            text: "b".to_owned(),
            meta: Some(Map::new()),
            ..Default::default()
        });
        let plain = [
            ToolResult::default(),
            ToolResult::text("Größe \"x\" \\ \n\t\u{1} \u{1f600}"),
            ToolResult::error("no"),
            ToolResult::text("a").with("b"),
        ];
        let rich = [
            ToolResult::new([annotated]),
            ToolResult::text("a").with(Content::image("AAAA", "image/png")),
            ToolResult::default().structured(json!({"n": 1})),
        ];
        assert!(plain.iter().all(ToolResult::is_plain));
        assert!(!rich.iter().any(ToolResult::is_plain));
        for result in plain.iter().chain(&rich) {
            let encoded: Value = serde_json::from_str(&result.encode().unwrap()).unwrap();
            assert_eq!(encoded, serde_json::to_value(result).unwrap());
        }
    }
}
