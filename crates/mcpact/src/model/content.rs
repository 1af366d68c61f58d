//! Content blocks of tool results, prompts and sampling.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::resource::{Resource, ResourceContents};

/// One block of content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// Image.
    Image(MediaContent),
    /// Audio; since 2025-03-26.
    Audio(MediaContent),
    /// Link to a resource; since 2025-06-18.
    ResourceLink(Resource),
    /// Embedded resource.
    Resource(EmbeddedResource),
    /// Tool call by the model; only in sampling, since 2025-11-25.
    ToolUse(ToolUseContent),
    /// Result of a tool call; only in sampling, since 2025-11-25.
    ToolResult(ToolResultContent),
    /// Unknown type, with its `type` member.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn read<T: serde::de::DeserializeOwned, E: serde::de::Error>(
            mut members: Map<String, Value>,
        ) -> Result<T, E> {
            members.remove("type");
            serde_json::from_value(Value::Object(members)).map_err(E::custom)
        }
        let members = Map::<String, Value>::deserialize(deserializer)?;
        let kind = members.get("type").and_then(Value::as_str);
        match kind.ok_or_else(|| D::Error::missing_field("type"))? {
            "text" => read(members).map(Self::Text),
            "image" => read(members).map(Self::Image),
            "audio" => read(members).map(Self::Audio),
            "resource_link" => read(members).map(Self::ResourceLink),
            "resource" => read(members).map(Self::Resource),
            "tool_use" => read(members).map(Self::ToolUse),
            "tool_result" => read(members).map(Self::ToolResult),
            _ => Ok(Self::Unknown(members)),
        }
    }
}

impl Content {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            ..TextContent::default()
        })
    }

    /// Creates an image from Base64 data.
    #[must_use]
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(data, mime_type))
    }

    /// Creates audio from Base64 data.
    #[must_use]
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(data, mime_type))
    }

    /// Embeds a resource.
    #[must_use]
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource {
            resource: contents,
            ..EmbeddedResource::default()
        })
    }

    /// Links to a resource.
    #[must_use]
    pub const fn link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// Returns the text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl TextContent {
    /// Returns `true` if it has no members but text.
    pub(super) fn is_plain(&self) -> bool {
        self.annotations.is_none() && self.meta.is_none() && self.extra.is_empty()
    }
}

/// Image or audio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// Base64 data.
    pub data: String,
    /// Media type.
    pub mime_type: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MediaContent {
    /// Creates media content from Base64 data and media type.
    #[must_use]
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            ..Self::default()
        }
    }
}

/// Embedded resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tool call by the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUseContent {
    /// Id for the result.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub input: Map<String, Value>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Result of a tool call by the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// Id of the [`ToolUseContent`].
    pub tool_use_id: String,
    /// Content.
    pub content: Vec<Content>,
    /// Structured content.
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

/// Role in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user or their agent.
    User,
    /// The model.
    Assistant,
}

/// Hints about audience and importance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Intended audience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, optional, to 1, required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// An ISO 8601 date and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Icon for user interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// `https:` or `data:` URI.
    pub src: String,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes, such as `48x48` or `any`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// `light` or `dark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Icon {
    /// Creates an icon with this URI.
    #[must_use]
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_content_type_round_trips() {
        for raw in [
            r#"{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5},"x":1}"#,
            r#"{"type":"image","data":"aGk=","mimeType":"image/png","_meta":{"k":true}}"#,
            r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","uri":"a:b","name":"n"}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","text":"t"}}"#,
            r#"{"type":"tool_use","id":"1","name":"t","input":{"z":1,"a":2}}"#,
            r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}],"isError":true}"#,
            r#"{"type":"hologram","depth":3}"#,
        ] {
            let content: Content = serde_json::from_str(raw).unwrap();
            assert_eq!(serde_json::to_string(&content).unwrap(), raw);
        }
    }

    #[test]
    fn known_type_with_missing_members_is_an_error() {
        let error = serde_json::from_str::<Content>(r#"{"type":"text"}"#).unwrap_err();
        assert!(
            error.to_string().contains("missing field `text`"),
            "{error}"
        );
        assert!(serde_json::from_str::<Content>("{}").is_err());
    }
}
