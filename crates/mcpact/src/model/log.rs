//! Log messages and progress.

use mcpact_spec::LogLevel;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

fn write_level<S: Serializer>(level: &LogLevel, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(level.as_str())
}

fn read_level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LogLevel, D::Error> {
    let text = String::deserialize(deserializer)?;
    LogLevel::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no log level")))
}

/// The parameters of `notifications/message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogMessage {
    /// How bad it is.
    #[serde(serialize_with = "write_level", deserialize_with = "read_level")]
    pub level: LogLevel,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What is said.
    pub data: Value,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl LogMessage {
    /// A message of this level.
    #[must_use]
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self {
            level,
            logger: None,
            data: data.into(),
            meta: None,
            extra: Map::new(),
        }
    }

    /// The same with the name of who says it.
    #[must_use]
    pub fn logger(mut self, logger: impl Into<String>) -> Self {
        self.logger = Some(logger.into());
        self
    }
}

/// What progress refers to: text or a number, as its owner chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(pub Value);

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The request that it is about.
    pub progress_token: ProgressToken,
    /// How far it has come; it only grows.
    pub progress: f64,
    /// How far it has to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done; since 2025-03-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
