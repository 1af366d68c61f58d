//! Elicitation: questions to the user.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Question to the user. Without `mode` it is a form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum ElicitRequest {
    /// Form.
    Form(FormRequest),
    /// URL to visit; since 2025-11-25.
    Url(UrlRequest),
}

impl<'de> Deserialize<'de> for ElicitRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::<String, Value>::deserialize(deserializer)?;
        let mode = members.remove("mode");
        let members = Value::Object(members);
        let read = match mode.as_ref().map(Value::as_str) {
            None | Some(Some("form")) => serde_json::from_value(members).map(Self::Form),
            Some(Some("url")) => serde_json::from_value(members).map(Self::Url),
            Some(_) => return Err(D::Error::custom("`mode` is neither `form` nor `url`")),
        };
        read.map_err(D::Error::custom)
    }
}

impl ElicitRequest {
    /// Creates a form.
    #[must_use]
    pub fn form(message: impl Into<String>, requested_schema: Value) -> Self {
        Self::Form(FormRequest {
            message: message.into(),
            requested_schema,
            ..FormRequest::default()
        })
    }

    /// Creates a URL elicitation.
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(UrlRequest {
            message: message.into(),
            url: url.into(),
            ..UrlRequest::default()
        })
    }

    /// Returns the message for the user.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }
}

/// Form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormRequest {
    /// Message for the user.
    pub message: String,
    /// Fields: a flat object schema.
    pub requested_schema: Value,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl FormRequest {
    /// Returns the default of every field that has one.
    #[must_use]
    pub fn defaults(&self) -> Map<String, Value> {
        let fields = self.requested_schema.get("properties");
        fields
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())))
            .collect()
    }

    /// Accepts the form, with defaults for missing fields.
    #[must_use]
    pub fn accept_with_defaults(&self, filled_in: Map<String, Value>) -> ElicitResult {
        let mut content = self.defaults();
        content.extend(filled_in);
        ElicitResult::accept(content)
    }
}

/// URL to visit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlRequest {
    /// Message for the user.
    pub message: String,
    /// URL.
    pub url: String,
    /// Id for the completion notification; only in 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Accepted, or filled in the form.
    Accept,
    /// Declined.
    Decline,
    /// Dismissed without a decision.
    Cancel,
}

/// Answer of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    /// Action.
    pub action: ElicitAction,
    /// Form values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ElicitResult {
    /// Accepts a form with these values.
    #[must_use]
    pub fn accept(content: Map<String, Value>) -> Self {
        Self {
            content: Some(content),
            ..Self::of(ElicitAction::Accept)
        }
    }

    /// Accepts visiting a URL.
    #[must_use]
    pub fn consent() -> Self {
        Self::of(ElicitAction::Accept)
    }

    /// Declines.
    #[must_use]
    pub fn decline() -> Self {
        Self::of(ElicitAction::Decline)
    }

    /// Cancels.
    #[must_use]
    pub fn cancel() -> Self {
        Self::of(ElicitAction::Cancel)
    }

    fn of(action: ElicitAction) -> Self {
        Self {
            action,
            content: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elicitation_without_mode_is_a_form() {
        let raw = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
        let request: ElicitRequest = serde_json::from_value(raw).unwrap();
        assert!(matches!(request, ElicitRequest::Form(_)));
        let other = json!({"mode": "dance", "message": "m"});
        assert!(serde_json::from_value::<ElicitRequest>(other).is_err());
    }

    #[test]
    fn defaults_fill_only_missing_fields() {
        let form = FormRequest {
            requested_schema: json!({"type": "object", "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "note": {"type": "string"},
            }}),
            ..FormRequest::default()
        };
        let filled = Map::from_iter([("age".to_owned(), json!(7))]);
        let result = form.accept_with_defaults(filled);
        assert_eq!(
            result.content,
            Some(Map::from_iter([
                ("name".to_owned(), json!("John Doe")),
                ("age".to_owned(), json!(7)),
            ]))
        );
    }
}
