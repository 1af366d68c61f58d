//! The last worker that is awake looks out for a moment before it sleeps.
//!
//! A call that comes alone finds a process asleep, and its answer finds it asleep again: waking up, with caches that
//! others have filled meanwhile, costs more than all that is done for the call. What is near answers within
//! microseconds; so whoever has just sent something stays for as long as that takes. Where the system has no means for
//! it, workers just sleep. Why, and what it costs: `docs/decisions/013`.

#[cfg(target_os = "linux")]
mod watch;

#[cfg(not(target_os = "linux"))]
mod watch {
    use tokio::runtime::Builder;

    /// Leaves the workers of a runtime as they are.
    pub fn keep(runtime: &mut Builder) -> &mut Builder {
        runtime
    }

    pub(crate) fn over<T>(_: &T) {}

    pub(crate) fn expect(_: usize) {}
}

pub use watch::keep;
pub(crate) use watch::{expect, over};
