//! Tasks: a core feature of 2025-11-25, an extension of 2026-07-28, and not the same on the wire.
//!
//! [`HostedTasks`] gives clients of 2025-11-25 tasks of our own over a modern server, whether or not
//! that server has any. [`FollowedTask`] drives a modern server's task to its end for a client that
//! knows no tasks. [`MappedTasks`] gives clients of the extension the tasks of a server of 2025-11-25.
//! [`TaskSupports`] remembers what the tools of such a server said about tasks, which the newer
//! revision has no place for.

mod followed;
pub mod hosted;
pub mod mapped;
mod support;
#[cfg(test)]
mod tests;

use core::time::Duration;

use mcpact_spec::{Feature, Revision};

pub use followed::{FollowedTask, Step};
pub use hosted::HostedTasks;
pub use mapped::MappedTasks;
pub use support::{
    CallMode, TaskSupports, created_task, related, wants_tasks, with_task, with_task_support,
};

/// Revision that has tasks as a core feature.
const CORE: Revision = Revision::newest_with(Feature::TasksCore);

/// Shortest polling interval, whatever the peer says.
const SHORTEST: Duration = Duration::from_millis(100);

/// Owner of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOwner<'a> {
    /// Name. The task exists for no other owner.
    pub name: &'a str,
    /// Account. The limit of tasks holds for all owners with the same account together.
    pub account: &'a str,
}

impl<'a> From<&'a str> for TaskOwner<'a> {
    fn from(name: &'a str) -> Self {
        Self {
            name,
            account: name,
        }
    }
}

/// Status of a task; both forms of tasks use the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It runs.
    Working,
    /// It waits for the client.
    InputRequired,
    /// It is done. In 2025-11-25 a tool that reports an error has failed instead.
    Completed,
    /// It is over, and did not succeed.
    Failed,
    /// It was called off.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// Returns whether the task has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
