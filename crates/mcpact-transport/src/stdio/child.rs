//! A server that we start: its pipes, its log and its end.
//!
//! The process leads a group of its own, because `npx` starts a shell that starts the server and ending
//! the first of them would leave the other two. Whatever way the owner goes, the whole group is gone
//! afterwards: by [`Process::shutdown`], by dropping the [`Process`], or when the leader exits alone.
//!
//! When this process is itself killed, nobody is left to kill the group, unless the child was given a
//! [`Guard`]. (Asking the kernel to do so needs code between `fork` and `exec`, which is unsafe Rust.)
//! Without one the pipes close, and a server that obeys `2026-07-28 basic/transports/stdio#shutdown` exits
//! at the end of its input.

mod command;
mod confinement;
mod family;
mod group;
mod guard;
mod hearing;
mod input;
mod masks;
mod obstacle;
mod output;
mod process;
mod tail;

pub use command::{ChildCommand, DEFAULT_STDERR_LIMIT, INHERITED, LINEAGE};
pub use confinement::Confinement;
pub use group::is_running;
pub use guard::Guard;
#[cfg(target_os = "linux")]
pub use guard::stand_guard;
pub use masks::{Masks, secret_args, url_password};
pub use obstacle::{Obstacle, is_executable};
pub use process::{Child, Departure, Process};
pub use tail::Scribe;
