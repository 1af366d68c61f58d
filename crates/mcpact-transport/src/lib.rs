//! Transports of MCP, client and server side: stdio, HTTP, HTTP+SSE, WebSocket, TCP and Unix sockets.
//!
//! This is the only crate that opens file descriptors. It moves bytes and reports how they arrived; it never parses
//! messages and knows no protocol revision. Read [`link::Link`] first.

pub mod address;
pub mod budget;
#[cfg(unix)]
pub mod core_dumps;
pub mod error;
pub mod http;
pub mod http_sse;
pub mod link;
pub mod memory;
pub mod open_files;
pub mod private_file;
pub mod stdio;
pub mod tap;
pub mod tcp;
#[cfg(unix)]
pub mod unix;
pub mod websocket;
pub mod within;

/// Returns the user id of this process, on systems that have them.
#[must_use]
pub fn own_uid() -> Option<u32> {
    #[cfg(unix)]
    return Some(rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    return None;
}

/// Locks a mutex. The data stays valid even if a holder panicked.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
