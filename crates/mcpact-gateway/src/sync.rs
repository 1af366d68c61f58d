//! The lock helper, and the order of the locks of the gateway.
//!
//! A lock may be taken while locks above it in this list are held, never below. Locks that the list does not name are
//! leaves: no other lock is taken under them. The drop of a value counts, too: the last reference to a connection takes
//! `Supervisor::instances`.
//!
//! 1. `Gateway::reloading`
//! 2. `SuccessorBinding`, `ToolTasks::read`
//! 3. `ConnectionSlot::opening`; up to here locks are asynchronous, the others are never held at an await
//! 4. `Gateway::state`
//! 5. `RemovedServers`
//! 6. `Aggregator::modern_clients`
//! 7. `Aggregator::terms`, `AffinityGroup::terms`
//! 8. the name registries of `SharedMerges`
//! 9. `Aggregator::mentioned`, `WatchedUris`, `MergeCache::lists`
//! 10. `MergeCache::names`, `MergeCache::uris`
//! 11. `Aggregator::server_set`
//! 12. `ListCache::entries`
//! 13. `ListCache::stored`
//! 14. `UpstreamServer::modern`, `UpstreamServer::groups`
//! 15. `DownstreamClient::bindings`, `ModernQuestions::open`
//! 16. `ConnectionSlot::current`
//! 17. `SuspendedRegistry::calls`
//! 18. `SuspendedRegistry::handles`
//! 19. `ListenStreams::registry`
//! 20. `Mapping::tasks`
//! 21. `Mapping::open`
//! 22. `Supervisor::instances`
//!
//! `ServerShared::run` is a leaf that several threads read: a reader must not read it again, because a waiting writer
//! blocks the second read.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. The data stays valid even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard that runs a function when it is dropped.
pub(crate) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    pub(crate) const fn new(run: F) -> Self {
        Self(Some(run))
    }

    /// Drops the guard without running the function.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run();
        }
    }
}
