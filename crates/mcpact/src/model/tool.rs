//! Tools and what they give.

use mcpact_wire::scan::push_quoted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::Content;
use super::shared::Icon;

/// Something that can be called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name for machines.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; a `$ref` in it is never followed.
    pub input_schema: Value,
    /// The JSON Schema of its structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it promises about its behaviour, not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be run; only in 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Tool {
    /// A tool whose arguments fit this schema.
    #[must_use]
    pub fn new(name: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            input_schema,
            ..Self::default()
        }
    }

    /// The same with a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same with a description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same with a schema for its structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// The same with promises about its behaviour.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// The same with a rule about tasks.
    #[must_use]
    pub fn task_support(mut self, support: TaskSupport) -> Self {
        self.execution = Some(ToolExecution {
            task_support: Some(support),
            extra: Map::new(),
        });
        self
    }

    /// The rule about tasks; `forbidden` where it is silent.
    #[must_use]
    pub fn supports_tasks(&self) -> TaskSupport {
        self.execution
            .as_ref()
            .and_then(|execution| execution.task_support)
            .unwrap_or(TaskSupport::Forbidden)
    }
}

/// What a tool promises about its behaviour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice is the same as once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How a tool may be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether as a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Whether a tool may be called as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// It must not.
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// For the model.
    #[serde(default)]
    pub content: Vec<Content>,
    /// For programs; since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResult {
    /// These blocks.
    #[must_use]
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self {
            content: content.into_iter().collect(),
            ..Self::default()
        }
    }

    /// One block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([Content::text(text)])
    }

    /// A failure of the tool, told to the model.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: Some(true),
            ..Self::text(text)
        }
    }

    /// The same with data for programs. Without any other content the data is also told as text,
    /// for clients that do not read it.
    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        if self.content.is_empty() {
            self.content.push(Content::text(value.to_string()));
        }
        self.structured_content = Some(value);
        self
    }

    /// The same with one more block.
    #[must_use]
    pub fn with(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Whether the tool failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }

    /// Whether nothing is in it but text and whether the tool failed: what every revision writes in
    /// the same way.
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

    /// As JSON.
    pub(crate) fn encode(&self) -> Result<String, serde_json::Error> {
        if self.is_plain() {
            Ok(self.encode_plain(["{", ""], ["", "}"]))
        } else {
            serde_json::to_string(self)
        }
    }

    /// A plain one as JSON, between what stands before and behind its members. Most of it is text, which a
    /// serializer looks at byte by byte.
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

    /// All text, one line feed between blocks.
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
    fn a_result_is_encoded_as_a_serializer_would() {
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
