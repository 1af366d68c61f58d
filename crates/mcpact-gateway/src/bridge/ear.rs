//! Who hears what the server says, and is asked what it asks.

use std::sync::{Arc, Weak};

use mcpact::server::backend::{Heard, Outbox, Session};
use mcpact_engine::outstanding::Patience;
use mcpact_engine::server::Scope;
use mcpact_spec::{Method, Revision};

/// A client, for as long as somebody serves it.
#[derive(Clone, Debug)]
pub(super) struct Ear {
    session: Arc<Session>,
    outbox: Outbox,
}

/// A client that may go away meanwhile.
#[derive(Clone, Debug)]
pub(super) struct FarEar {
    session: Weak<Session>,
    outbox: Outbox,
}

impl Ear {
    /// A client that sees this server and no other.
    pub(super) const fn new(session: Arc<Session>, outbox: Outbox) -> Self {
        Self { session, outbox }
    }

    /// On whose behalf it speaks.
    pub(super) fn principal(&self) -> &str {
        self.session.principal()
    }

    /// What a client speaks that has made a handshake.
    pub(super) fn revision(&self) -> Revision {
        let pact = self.session.pact();
        pact.map_or(Revision::LATEST_LEGACY, |pact| pact.revision())
    }

    pub(super) fn downgrade(&self) -> FarEar {
        FarEar {
            session: Arc::downgrade(&self.session),
            outbox: self.outbox.clone(),
        }
    }

    /// Tells what belongs to a request, once there is room for it.
    pub(super) async fn tell(&self, scope: Scope, method: Method, params: &str) {
        if let Some(message) = self.session.note(scope, method, params) {
            // A client that has gone away is noticed by whoever writes to it.
            let _ = self.outbox.send(message).await;
        }
    }

    /// Tells a hint, now or never: a client that does not read misses it, and the next one will do.
    pub(super) fn hint(&self, scope: Scope, method: Method, params: &str) {
        if let Some(message) = self.session.note(scope, method, params)
            && !self.outbox.offer(message)
        {
            tracing::debug!(%method, "the client does not read fast enough");
        }
    }

    pub(super) async fn ask(&self, method: Method, params: &str, patience: Patience) -> Heard {
        let asked = self.session.ask(method, params, patience, &self.outbox);
        asked.await
    }
}

impl FarEar {
    /// The client, if it is still there.
    pub(super) fn near(&self) -> Option<Ear> {
        Some(Ear {
            session: self.session.upgrade()?,
            outbox: self.outbox.clone(),
        })
    }
}
