//! Subscribers to change notifications.

use std::sync::{Arc, Mutex, Weak};

use mcpact_engine::server::Scope;
use mcpact_spec::Method;
use serde_json::Value;

use super::outbox::{ClientGone, Outbox, Outgoing};
use super::session::Session;
use crate::lock;

/// Subscriber: a legacy connection, or one modern listen request.
#[derive(Debug)]
struct Subscriber {
    session: Weak<Session>,
    scope: Scope,
    outbox: Outbox,
}

/// Subscribers of a server.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    all: Mutex<Vec<Subscriber>>,
}

impl Subscribers {
    /// Adds a subscriber; it is removed with its session or stream.
    pub(super) fn add(&self, session: &Arc<Session>, scope: Scope, outbox: Outbox) {
        insert(&mut lock(&self.all), session, scope, outbox);
    }

    /// Sends `first` and adds a subscriber: nothing is sent before it, and every change after it.
    pub(super) async fn add_after(
        &self,
        first: String,
        session: &Arc<Session>,
        scope: Scope,
        outbox: &Outbox,
    ) -> Result<(), ClientGone> {
        let permit = outbox.reserve(first.len()).await?;
        let mut all = lock(&self.all);
        permit.send(Outgoing::Message(first));
        insert(&mut all, session, scope, outbox.clone());
        Ok(())
    }

    /// Notifies every subscriber that may and wants to receive it, as the engine decides.
    ///
    /// A subscriber with a full queue misses the notification instead of blocking others. The next change notifies it
    /// again.
    pub(super) fn publish(&self, method: Method, params: &Value) {
        self.publish_where(method, params, |_| true);
    }

    /// As [`publish`](Self::publish), for the clients of one owner only.
    pub(super) fn publish_to(&self, owner: &str, method: Method, params: &Value) {
        self.publish_where(method, params, |session| session.owner() == owner);
    }

    fn publish_where(&self, method: Method, params: &Value, may: impl Fn(&Session) -> bool) {
        let params = params.to_string();
        for subscriber in lock(&self.all).iter() {
            let session = subscriber.session.upgrade();
            let Some(session) = session.filter(|session| may(session)) else {
                continue;
            };
            let scope = subscriber.scope.clone();
            if let Some(text) = session.encode_notification(scope, method, &params) {
                let _ = subscriber.outbox.try_send(text);
            }
        }
    }
}

fn insert(all: &mut Vec<Subscriber>, session: &Arc<Session>, scope: Scope, outbox: Outbox) {
    all.retain(|subscriber| {
        subscriber.session.strong_count() > 0 && !subscriber.outbox.is_closed()
    });
    all.push(Subscriber {
        session: Arc::downgrade(session),
        scope,
        outbox,
    });
}
