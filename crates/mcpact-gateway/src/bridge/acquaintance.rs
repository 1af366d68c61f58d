//! What is known about a server, for whoever shows several as one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpact_bridge::lifecycle::Introduction;
use mcpact_spec::{Method, Revision};
use tokio::sync::watch;

use super::lane::Lane;

/// What the server last said about itself, and who wants to hear of its changes.
#[derive(Debug, Default)]
pub(super) struct Acquaintance {
    met: watch::Sender<Option<Arc<Met>>>,
    herald: Mutex<Option<Weak<dyn Herald>>>,
}

/// What a server said about itself.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) revision: Revision,
    pub(crate) introduction: Introduction,
}

/// Hears of a server, whoever uses it.
pub(crate) trait Herald: fmt::Debug + Send + Sync {
    /// A list has changed.
    fn changed(&self, method: Method);
}

impl Acquaintance {
    /// What the server last said about itself.
    pub(super) fn met(&self) -> Option<Arc<Met>> {
        self.met.borrow().clone()
    }

    fn herald(&self) -> MutexGuard<'_, Option<Weak<dyn Herald>>> {
        self.herald.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on this one hears of changes, and whoever did before does not.
    pub(super) fn tell_to(&self, herald: Weak<dyn Herald>) {
        *self.herald() = Some(herald);
    }

    /// The server has introduced itself.
    pub(super) fn meet(&self, lane: &Lane) {
        let met = Met {
            revision: lane.revision(),
            introduction: lane.upstream.introduction.clone(),
        };
        self.met.send_replace(Some(Arc::new(met)));
    }

    /// Whether somebody wants to hear of changes.
    pub(super) fn has_herald(&self) -> bool {
        self.herald().is_some()
    }

    /// Tells of a change, if somebody wants to know.
    pub(super) fn tell(&self, method: Method) {
        let herald = self.herald().as_ref().and_then(Weak::upgrade);
        if let Some(herald) = herald {
            herald.changed(method);
        }
    }
}
