//! Busy polling: the last active runtime worker polls its sockets briefly before it parks.
//!
//! Waking a parked thread costs more than all other work on a single call, and local peers reply within microseconds.
//! So a worker that has just sent a small message spins for about that long. On systems without epoll, workers park at
//! once. Measurements: `docs/decisions/013`.

#[cfg(target_os = "linux")]
mod epoll;

#[cfg(not(target_os = "linux"))]
mod epoll {
    use tokio::runtime::Builder;

    /// Does nothing on this system.
    pub fn enable(runtime: &mut Builder) -> &mut Builder {
        runtime
    }

    pub(crate) fn watch<T>(_: &T) {}

    pub(crate) fn note_sent(_: usize) {}
}

pub use epoll::enable;
pub(crate) use epoll::{note_sent, watch};
