//! Tasks: a core feature of 2025-11-25, an extension of 2026-07-28, and not the same on the wire.
//!
//! [`Hosted`] gives clients of 2025-11-25 tasks of our own over a modern server, whether or not
//! that server has any. [`Mapped`] gives clients of the extension the tasks of a server of
//! 2025-11-25. [`TaskSupports`] remembers what the tools of such a server said about tasks, which
//! the newer revision has no place for.

pub mod hosted;
pub mod mapped;
mod status;
mod support;
#[cfg(test)]
mod tests;

pub use hosted::Hosted;
pub use mapped::Mapped;
pub use status::Status;
pub use support::{TaskSupports, Way, created_task, with_task, with_task_support};
