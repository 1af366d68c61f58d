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
mod status;
mod support;
#[cfg(test)]
mod tests;

use core::time::Duration;

use mcpact_spec::{Feature, Revision};

pub use followed::{FollowedTask, Step};
pub use hosted::HostedTasks;
pub use mapped::MappedTasks;
pub use status::Status;
pub use support::{
    CallMode, TaskSupports, created_task, related, wants_tasks, with_task, with_task_support,
};

/// Revision that has tasks as a core feature.
const CORE: Revision = Revision::newest_with(Feature::TasksCore);

/// Shortest polling interval, whatever the peer says.
const SHORTEST: Duration = Duration::from_millis(100);
