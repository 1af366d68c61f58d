//! A server as a child process: pipes, log and shutdown.
//!
//! The process leads its own process group, because `npx` starts a shell that starts the server; killing only the first
//! would leave the others running. The whole group is killed by [`Process::shutdown`], by dropping the [`Process`], or
//! when the leader exits.
//!
//! If this process is killed, only a [`Guard`] can kill the group. (`PR_SET_PDEATHSIG` needs code between `fork` and
//! `exec`, which is unsafe Rust.) Without a guard the pipes close, and a server that follows `2026-07-28
//! basic/transports/stdio#shutdown` exits at EOF.

mod command;
mod group;
mod guard;
mod launch_problem;
mod masks;
mod process;
mod process_tree;
mod sandbox;
mod tail;

pub use command::{ChildCommand, DEFAULT_STDERR_LIMIT, INHERITED, StartCheck, VIA_VARIABLE};
pub use guard::Confinement;
pub use guard::Guard;
#[cfg(target_os = "linux")]
pub use guard::stand_guard;
pub use launch_problem::{LaunchProblem, is_executable};
pub use masks::{Masks, secret_args, url_password};
pub use process::{Child, Process, ShutdownReport};
pub use sandbox::{Sandbox, SandboxLevel, SandboxProblem};
pub use tail::StderrSink;
