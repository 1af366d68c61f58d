//! Who wants to hear of changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpact_engine::server::Scope;
use mcpact_spec::Method;
use serde_json::Value;

use super::outbox::{Gone, Outbox, Parcel};
use super::session::{Deed, Session};

/// Somebody who listens: a legacy connection, or one modern listen request.
#[derive(Debug)]
struct Listener {
    session: Weak<Session>,
    scope: Scope,
    outbox: Outbox,
}

/// The listeners of a server.
#[derive(Debug, Default)]
pub(super) struct Changes {
    listeners: Mutex<Vec<Listener>>,
}

impl Changes {
    /// Adds a listener; it goes with its session or its stream.
    pub(super) fn add(&self, session: &Arc<Session>, scope: Scope, outbox: Outbox) {
        insert(&mut self.listeners(), session, scope, outbox);
    }

    /// Adds a listener that is told this first: nothing before it, and every change after it.
    pub(super) async fn add_told(
        &self,
        first: String,
        session: &Arc<Session>,
        scope: Scope,
        outbox: &Outbox,
    ) -> Result<(), Gone> {
        let place = outbox.place().await?;
        let mut all = self.listeners();
        place.put(Parcel::Message(first));
        insert(&mut all, session, scope, outbox.clone());
        Ok(())
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody who may and wants to hear; the engine decides for each.
    ///
    /// A listener that does not read fast enough misses the notification rather than holding up the
    /// others: it is a hint to look again, and the next one will do.
    pub(super) fn publish(&self, method: Method, params: &Value) {
        self.publish_where(method, params, |_| true);
    }

    /// As [`publish`](Self::publish), to this principal only.
    pub(super) fn publish_to(&self, principal: &str, method: Method, params: &Value) {
        self.publish_where(method, params, |session| session.principal() == principal);
    }

    fn publish_where(&self, method: Method, params: &Value, may: impl Fn(&Session) -> bool) {
        let params = params.to_string();
        for listener in self.listeners().iter() {
            let Some(session) = listener.session.upgrade().filter(|session| may(session)) else {
                continue;
            };
            for deed in session.notify(listener.scope.clone(), method, &params) {
                if let Deed::Write(text) = deed {
                    let _ = listener.outbox.offer(text);
                }
            }
        }
    }
}

fn insert(all: &mut Vec<Listener>, session: &Arc<Session>, scope: Scope, outbox: Outbox) {
    all.retain(|listener| listener.session.strong_count() > 0 && !listener.outbox.is_closed());
    all.push(Listener {
        session: Arc::downgrade(session),
        scope,
        outbox,
    });
}
