//! ClientRef hears what the server says, and is asked what it asks.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use mcpact::server::backend::{ClientIdentity, OpenQuestion, Outbox, QuestionOutcome, Session};
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_engine::server::Scope;
use mcpact_spec::{Era, Method, Revision};
use smallvec::SmallVec;

use crate::connection::ownership::ClientRef;
use crate::downstream::ClientState;

/// How a client sees one server among several.
pub(crate) trait MessageRewriter: fmt::Debug + Send + Sync {
    /// A notification as the client reads it: not at all if it is not meant to, and several times if it knows what
    /// it is about by several addresses.
    fn notes<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]>;

    /// A question as the client reads it.
    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str>;
}

/// A client, for as long as somebody serves it.
#[derive(Clone, Debug)]
pub(crate) struct ClientSink {
    session: Arc<Session<ClientState>>,
    outbox: Outbox,
    view: Option<Arc<dyn MessageRewriter>>,
}

/// A client that may go away meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct WeakClientSink {
    session: Weak<Session<ClientState>>,
    outbox: Outbox,
    view: Option<Arc<dyn MessageRewriter>>,
}

impl ClientSink {
    /// A client that sees this server and no other.
    pub(crate) const fn new(session: Arc<Session<ClientState>>, outbox: Outbox) -> Self {
        Self {
            session,
            outbox,
            view: None,
        }
    }

    /// The same client, which sees several servers as one.
    pub(crate) fn seeing(mut self, view: Arc<dyn MessageRewriter>) -> Self {
        self.view = Some(view);
        self
    }

    /// Whether it sees several servers as one, and hears of their lists from whoever shows them.
    pub(crate) const fn sees_several(&self) -> bool {
        self.view.is_some()
    }

    /// What is remembered about it.
    pub(crate) fn state(&self) -> Option<&ClientState> {
        self.session.state()
    }

    /// ClientRef it is, as far as it can be told.
    pub(crate) fn identity(&self) -> &ClientIdentity {
        self.session.identity()
    }

    /// ListScope everything is that it begins.
    pub(crate) fn owner(&self) -> &str {
        self.session.owner()
    }

    /// What was agreed with a client that has made a handshake.
    pub(crate) fn pact(&self) -> Option<Arc<Pact>> {
        self.session.pact()
    }

    /// What a client speaks that has made a handshake.
    pub(crate) fn revision(&self) -> Revision {
        let pact = self.session.pact();
        pact.map_or(Revision::newest(Era::Legacy), |pact| pact.revision())
    }

    /// Whether that is the same client.
    pub(crate) fn is(&self, other: &WeakClientSink) -> bool {
        self.who() == other.who()
    }

    /// The client, to be known again.
    pub(crate) fn who(&self) -> ClientRef {
        ClientRef::by(Arc::downgrade(&self.session))
    }

    pub(crate) fn downgrade(&self) -> WeakClientSink {
        WeakClientSink {
            session: Arc::downgrade(&self.session),
            outbox: self.outbox.clone(),
            view: self.view.clone(),
        }
    }

    fn messages(&self, scope: &Scope, method: Method, params: &str) -> SmallVec<[String; 1]> {
        let message = |seen: &str| {
            self.session
                .encode_notification(scope.clone(), method, seen)
        };
        match &self.view {
            Some(view) => {
                let notes = view.notes(method, params);
                notes.iter().filter_map(|seen| message(seen)).collect()
            }
            None => message(params).into_iter().collect(),
        }
    }

    /// Tells what belongs to a request, once there is room for it.
    pub(crate) async fn tell(&self, scope: &Scope, method: Method, params: &str) {
        for message in self.messages(scope, method, params) {
            // A client that has gone away is noticed by whoever writes to it.
            let _ = self.outbox.send(message).await;
        }
    }

    /// Tells a hint, now or never: a client that does not read misses it, and the next one will do.
    pub(crate) fn hint(&self, scope: &Scope, method: Method, params: &str) {
        for message in self.messages(scope, method, params) {
            if !self.outbox.try_send(message) {
                self.session.record_missed(method);
            }
        }
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        params: &str,
        patience: RequestTimeout,
    ) -> QuestionOutcome {
        match self.put(method, params, patience).await {
            Ok(question) => question.answer().await,
            Err(heard) => heard,
        }
    }

    /// Puts a question to it, which is on its way from here on; how it ended, if it cannot be asked.
    pub(crate) async fn put(
        &self,
        method: Method,
        params: &str,
        patience: RequestTimeout,
    ) -> Result<OpenQuestion<ClientState>, QuestionOutcome> {
        let seen = match &self.view {
            Some(view) => view.question(method, params),
            None => params.into(),
        };
        self.session
            .send_question(method, &seen, patience, &self.outbox)
            .await
    }
}

impl WeakClientSink {
    /// The client, to be known again.
    pub(crate) fn who(&self) -> ClientRef {
        ClientRef::by(Weak::clone(&self.session))
    }

    /// The client, if it is still there.
    pub(crate) fn near(&self) -> Option<ClientSink> {
        Some(ClientSink {
            session: self.session.upgrade()?,
            outbox: self.outbox.clone(),
            view: self.view.clone(),
        })
    }
}
