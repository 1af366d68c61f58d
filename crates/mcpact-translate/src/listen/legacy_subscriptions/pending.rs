//! Notifications that wait until the client has a stream.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use mcpact_spec::Method;

/// Notifications that wait until the client has a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingNotifications {
    pub(super) lists: BTreeSet<Method>,
    pub(super) uris: BTreeSet<Box<str>>,
    /// More resources than there is room for: then all of them.
    pub(super) is_all: bool,
}

impl PendingNotifications {
    /// Remembers a notification; of so many resources at most.
    pub(super) fn remember(&mut self, method: Method, uri: Option<&str>, most: usize) {
        match uri {
            Some(uri) if method == Method::ResourcesUpdated => {
                if self.uris.len() < most || self.uris.contains(uri) {
                    self.uris.insert(Box::from(uri));
                } else {
                    self.is_all = true;
                }
            }
            Some(_) | None => {
                self.lists.insert(method);
            }
        }
    }
}
