//! Helpers for locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. The data stays valid even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
