//! The stdio transport, both ends.
//!
//! [`own`] is the server's end: the standard streams of this process. [`child`] is the client's end: a child process
//! with its pipes. Standard output carries only messages; standard error is a log (`2026-07-28
//! basic/transports/stdio`).

#[cfg(unix)]
pub mod child;
#[cfg(unix)]
mod closable;
mod own;

pub use own::own;
