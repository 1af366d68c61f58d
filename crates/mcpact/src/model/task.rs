//! Tasks: calls whose result is fetched later.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// It waits for input.
    InputRequired,
    /// It is done.
    Completed,
    /// It came to nothing.
    Failed,
    /// It was given up.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing will change any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task. 2025-11-25 writes `ttl` and `pollInterval`, the extension of 2026-07-28 `ttlMs` and
/// `pollIntervalMs`; both are read, and written as they were set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its name.
    pub task_id: String,
    /// How far it has come.
    pub status: TaskStatus,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it last changed, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated_at: Option<String>,
    /// How many milliseconds it is kept; `null` is without limit. Core tasks of 2025-11-25.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl: Option<Option<u64>>,
    /// How many milliseconds to wait between questions. Core tasks of 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// How many milliseconds it is kept; `null` is without limit. Extension of 2026-07-28.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<Option<u64>>,
    /// How many milliseconds to wait between questions. Extension of 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// Members that this version does not know, and those of a detailed task: `result`, `error`,
    /// `inputRequests`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Keeps `null` apart from absence.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(deserializer).map(Some)
}

impl Task {
    /// A task that is being worked on.
    #[must_use]
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            created_at: None,
            last_updated_at: None,
            ttl: None,
            poll_interval: None,
            ttl_ms: None,
            poll_interval_ms: None,
            extra: Map::new(),
        }
    }

    /// How many milliseconds to wait between questions, if the server says.
    #[must_use]
    pub fn interval_ms(&self) -> Option<u64> {
        self.poll_interval_ms.or(self.poll_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_without_limit_is_not_one_without_a_word() {
        let endless: Task =
            serde_json::from_str(r#"{"taskId":"a","status":"working","ttl":null}"#).unwrap();
        assert_eq!(endless.ttl, Some(None));
        assert!(
            serde_json::to_string(&endless)
                .unwrap()
                .contains(r#""ttl":null"#)
        );
        let silent: Task =
            serde_json::from_str(r#"{"taskId":"a","status":"input_required"}"#).unwrap();
        assert_eq!(silent.ttl, None);
        assert!(!silent.status.is_final());
    }
}
