//! Lines on standard input and output, on both ends of the pipe.
//!
//! [`own`] is the server's end: our own standard streams. [`child`] is the client's end: a process that
//! we start, hear and end. In both, standard output carries nothing but messages and standard error is a
//! log (`2026-07-28 basic/transports/stdio`).

#[cfg(unix)]
pub mod child;
#[cfg(unix)]
mod closable;
mod own;

pub use own::own;
