//! What is known about a server, for whoever shows several as one.

use crate::sync::lock;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use mcpact_spec::{Era, Method, Revision};
use mcpact_translate::lifecycle::Introduction;
use tokio::sync::watch;

use crate::connection::UpstreamConnection;
use crate::lists::watch::LISTS;

/// What the server last said about itself, and who wants to hear of its changes.
#[derive(Debug, Default)]
pub(crate) struct ServerInfoCache {
    profile: watch::Sender<Option<Arc<ServerProfile>>>,
    /// How many connections to it there have been.
    connections: watch::Sender<u64>,
    /// Whether it can tell of changes, as it is connected at the moment.
    can_tell: AtomicBool,
    listener: Mutex<Option<Weak<dyn ChangeListener>>>,
}

/// What a server said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerProfile {
    pub(crate) revision: Revision,
    pub(crate) introduction: Introduction,
}

impl ServerProfile {
    /// What it calls itself, if it has a name for itself.
    pub(crate) fn calls_itself(&self) -> Option<String> {
        let Introduction {
            server_info,
            is_named,
            ..
        } = &self.introduction;
        let name = server_info.name();
        (*is_named && !name.is_empty()).then(|| name.to_owned())
    }
}

/// Hears of a server, whoever uses it.
pub(crate) trait ChangeListener: fmt::Debug + Send + Sync {
    /// A list has changed.
    fn changed(&self, method: Method);
    /// A list has changed of an instance that is this one's alone.
    fn changed_for(&self, owner: u64, method: Method);
    /// The server has woken up: what was known of it may not be true any more.
    fn woke(self: Arc<Self>);
}

impl ServerInfoCache {
    /// What the server last said about itself.
    pub(crate) fn profile(&self) -> Option<Arc<ServerProfile>> {
        self.profile.borrow().clone()
    }

    fn listener(&self) -> MutexGuard<'_, Option<Weak<dyn ChangeListener>>> {
        lock(&self.listener)
    }

    /// From here on this one hears of changes, and whoever did before does not.
    pub(crate) fn tell_to(&self, listener: Weak<dyn ChangeListener>) {
        *self.listener() = Some(listener);
    }

    /// What the server said in an earlier run, if it has not said anything since.
    pub(crate) fn recall(&self, profile: ServerProfile) {
        self.profile.send_if_modified(|known| {
            let is_new = known.is_none();
            known.get_or_insert_with(|| Arc::new(profile));
            is_new
        });
    }

    /// The server has introduced itself.
    pub(crate) fn meet(&self, connection: &UpstreamConnection) {
        let profile = ServerProfile {
            revision: connection.revision(),
            introduction: connection.upstream.introduction.clone(),
        };
        // A modern server tells those who listen, which is not yet.
        let can_tell = profile.revision.era() == Era::Legacy && connection.upstream.can_push();
        self.hears(can_tell);
        let before = self.profile();
        if before.as_deref() == Some(&profile) {
            return;
        }
        self.profile.send_replace(Some(Arc::new(profile)));
        if before.is_some() {
            // Another server has taken its place, or another version of it, and nothing need be as it was.
            LISTS.into_iter().for_each(|method| self.tell(method));
        }
    }

    /// Whether changes are heard of from here on.
    pub(crate) fn hears(&self, can_tell: bool) {
        self.can_tell.store(can_tell, Ordering::Release);
    }

    pub(crate) fn can_tell(&self) -> bool {
        self.can_tell.load(Ordering::Acquire)
    }

    /// There is a connection.
    pub(crate) fn connected(&self) {
        self.connections.send_modify(|number| *number += 1);
    }

    /// Changes on every new connection.
    pub(crate) fn connections(&self) -> watch::Receiver<u64> {
        self.connections.subscribe()
    }

    /// The server has woken up.
    pub(crate) fn wake(&self) {
        let listener = self.listener().as_ref().and_then(Weak::upgrade);
        if let Some(listener) = listener {
            listener.woke();
        }
    }

    /// Whether somebody wants to hear of changes.
    pub(crate) fn has_herald(&self) -> bool {
        self.listener().is_some()
    }

    /// The same to the one whose instance it is.
    pub(crate) fn tell_owner(&self, owner: u64, method: Method) {
        let listener = self.listener().as_ref().and_then(Weak::upgrade);
        if let Some(listener) = listener {
            listener.changed_for(owner, method);
        }
    }

    /// Tells of a change, if somebody wants to know.
    pub(crate) fn tell(&self, method: Method) {
        let listener = self.listener().as_ref().and_then(Weak::upgrade);
        if let Some(listener) = listener {
            listener.changed(method);
        }
    }
}
