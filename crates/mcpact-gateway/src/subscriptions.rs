//! Subscriptions of downstream clients to changes, across connections and eras.

pub(crate) mod aggregate_listen;
pub(crate) mod legacy_on_modern;
pub(crate) mod list_changes;
pub(crate) mod listen;
pub(crate) mod log_levels;
pub(crate) mod reopen;
pub(crate) mod subscribers;
pub(crate) mod watched_uris;
