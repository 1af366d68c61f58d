//! Transports of MCP, client and server side: stdio, HTTP, HTTP+SSE, WebSocket, TCP and Unix sockets.
//!
//! This is the only crate that opens file descriptors. It moves bytes and reports how they arrived; it never parses
//! messages and knows no protocol revision. Read [`link::Link`] first.

pub mod address;
#[cfg(unix)]
pub mod core_dumps;
pub mod error;
pub mod http;
pub mod http_sse;
pub mod link;
pub mod memory;
pub mod stdio;
pub mod tcp;
#[cfg(unix)]
pub mod unix;
pub mod websocket;
pub mod within;

/// Locks a mutex. The data stays valid even if a holder panicked.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
