//! Whether a connection is of use to anybody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The calls on a connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: usize,
    /// When the last call ended, or the connection was made.
    last: Instant,
}

/// An open call.
#[derive(Debug)]
pub(super) struct Busy {
    activity: Arc<Activity>,
}

impl Activity {
    pub(super) fn new() -> Self {
        let last = Instant::now();
        Self {
            state: Mutex::new(State { open: 0, last }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_idle_for(&self, idle: Duration) -> bool {
        let state = self.state();
        state.open == 0 && state.last.elapsed() >= idle
    }
}

impl Busy {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        activity.state().open += 1;
        Self {
            activity: Arc::clone(activity),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.open -= 1;
        state.last = Instant::now();
    }
}
