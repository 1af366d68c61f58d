//! Cached profile of a server, and its listener for changes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mcpact_spec::{Era, Method};
use tokio::sync::watch;

use crate::cache::ServerProfile;
use crate::connection::UpstreamConnection;
use crate::subscriptions::reopen::LIST_CHANGES;
use crate::sync::lock;

/// Latest profile of a server, and the listener for changes.
#[derive(Debug, Default)]
pub(crate) struct ServerInfoCache {
    profile: Mutex<Option<Arc<ServerProfile>>>,
    /// Number of connections so far.
    connections: watch::Sender<u64>,
    /// True while the server can send list change notifications to the gateway.
    can_notify: AtomicBool,
    listener: Mutex<Option<Weak<dyn ChangeListener>>>,
}

/// Listener for changes of a server.
pub(crate) trait ChangeListener: fmt::Debug + Send + Sync {
    /// A list has changed.
    fn changed(&self, method: Method);
    /// A list of an instance with one owner has changed.
    fn changed_for(&self, owner: u64, method: Method);
    /// The server was started; cached lists may be outdated.
    fn started(self: Arc<Self>);
}

impl ServerInfoCache {
    /// Returns the latest profile.
    pub(crate) fn profile(&self) -> Option<Arc<ServerProfile>> {
        lock(&self.profile).clone()
    }

    pub(crate) fn set_listener(&self, listener: Weak<dyn ChangeListener>) {
        *lock(&self.listener) = Some(listener);
    }

    pub(crate) fn has_listener(&self) -> bool {
        lock(&self.listener).is_some()
    }

    fn listener(&self) -> Option<Arc<dyn ChangeListener>> {
        lock(&self.listener).as_ref()?.upgrade()
    }

    /// Sets the profile of an earlier run, unless the server has connected since.
    pub(crate) fn restore(&self, profile: ServerProfile) {
        lock(&self.profile).get_or_insert_with(|| Arc::new(profile));
    }

    /// Sets the profile from a new connection. A changed profile invalidates all lists.
    pub(crate) fn update(&self, connection: &UpstreamConnection) {
        let profile = ServerProfile {
            revision: connection.revision(),
            introduction: connection.upstream.introduction.clone(),
        };
        // A modern server sends notifications only on a change stream, which is opened later.
        let can_notify = profile.revision.era() == Era::Legacy && connection.upstream.can_push();
        self.set_can_notify(can_notify);
        let before = {
            let mut known = lock(&self.profile);
            if known.as_deref() == Some(&profile) {
                return;
            }
            known.replace(Arc::new(profile))
        };
        if before.is_some() {
            // Another server or version: any list may differ.
            LIST_CHANGES
                .into_iter()
                .for_each(|method| self.notify(method));
        }
    }

    pub(crate) fn set_can_notify(&self, can_notify: bool) {
        self.can_notify.store(can_notify, Ordering::Release);
    }

    pub(crate) fn can_notify(&self) -> bool {
        self.can_notify.load(Ordering::Acquire)
    }

    /// Counts a new connection.
    pub(crate) fn connected(&self) {
        self.connections.send_modify(|number| *number += 1);
    }

    /// Returns a receiver that changes with every new connection.
    pub(crate) fn connections(&self) -> watch::Receiver<u64> {
        self.connections.subscribe()
    }

    /// Notifies the listener that the server was started.
    pub(crate) fn notify_started(&self) {
        if let Some(listener) = self.listener() {
            listener.started();
        }
    }

    /// Notifies the listener of a change in an instance with one owner.
    pub(crate) fn notify_owner(&self, owner: u64, method: Method) {
        if let Some(listener) = self.listener() {
            listener.changed_for(owner, method);
        }
    }

    /// Notifies the listener of a change.
    pub(crate) fn notify(&self, method: Method) {
        if let Some(listener) = self.listener() {
            listener.changed(method);
        }
    }
}
