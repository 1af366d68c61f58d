//! Tasks: calls with a deferred result.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// In progress.
    Working,
    /// Waiting for input.
    InputRequired,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns `true` if the status cannot change.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Task. 2025-11-25 writes `ttl` and `pollInterval`, the extension of 2026-07-28 `ttlMs` and `pollIntervalMs`; both
/// are read, and written as they were set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id.
    pub task_id: String,
    /// Status.
    pub status: TaskStatus,
    /// Status message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Creation time in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Time of the last change in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated_at: Option<String>,
    /// Lifetime in milliseconds; `null` means unlimited. Core tasks of 2025-11-25.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl: Option<Option<u64>>,
    /// Polling interval in milliseconds. Core tasks of 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// Lifetime in milliseconds; `null` means unlimited. Extension of 2026-07-28.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<Option<u64>>,
    /// Polling interval in milliseconds. Extension of 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// Unknown members, and those of a detailed task: `result`, `error`, `inputRequests`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Distinguishes `null` from absence.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(deserializer).map(Some)
}

impl Task {
    /// Creates a task in progress.
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

    /// Returns the polling interval in milliseconds, if the server sets one.
    #[must_use]
    pub fn interval_ms(&self) -> Option<u64> {
        self.poll_interval_ms.or(self.poll_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_ttl_differs_from_missing_ttl() {
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
