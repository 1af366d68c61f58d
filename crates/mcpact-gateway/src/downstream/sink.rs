//! Sinks for notifications and requests to a client.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use mcpact::server::backend::{ClientIdentity, OpenQuestion, Outbox, QuestionOutcome, Session};
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_engine::server::Scope;
use mcpact_spec::{Era, Method, Revision};
use mcpact_translate::tasks::TaskOwner;
use smallvec::{SmallVec, smallvec};

use crate::connection::ownership::ClientRef;
use crate::downstream::ClientState;

/// Rewrites messages of one server for a client of several.
pub(crate) trait MessageRewriter: fmt::Debug + Send + Sync {
    /// Returns the parameters of the notifications for the client: none if the notification is dropped, and several if
    /// the client knows the resource under several URIs.
    fn notifications<'a>(&self, method: Method, params: &'a str) -> SmallVec<[Cow<'a, str>; 1]>;

    /// Returns the parameters of a question for the client.
    fn question<'a>(&self, method: Method, params: &'a str) -> Cow<'a, str>;
}

/// Sink for messages to one client.
#[derive(Clone, Debug)]
pub(crate) struct ClientSink {
    session: Arc<Session<ClientState>>,
    outbox: Outbox,
    rewriter: Option<Arc<dyn MessageRewriter>>,
}

/// Sink that does not keep the session alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakClientSink {
    session: Weak<Session<ClientState>>,
    outbox: Outbox,
    rewriter: Option<Arc<dyn MessageRewriter>>,
}

impl ClientSink {
    /// Returns the sink of a client of one server.
    pub(crate) const fn new(session: Arc<Session<ClientState>>, outbox: Outbox) -> Self {
        Self {
            session,
            outbox,
            rewriter: None,
        }
    }

    /// Returns the sink for messages of one of several servers.
    pub(crate) fn with_rewriter(mut self, rewriter: Arc<dyn MessageRewriter>) -> Self {
        self.rewriter = Some(rewriter);
        self
    }

    /// Returns true for a client of several servers, which is notified of list changes by the aggregator.
    pub(crate) const fn is_aggregate(&self) -> bool {
        self.rewriter.is_some()
    }

    pub(crate) fn state(&self) -> Option<&ClientState> {
        self.session.state()
    }

    pub(crate) fn identity(&self) -> &ClientIdentity {
        self.session.identity()
    }

    /// Returns the owner of everything that this client starts.
    pub(crate) fn owner(&self) -> &str {
        self.session.owner()
    }

    /// Returns the owner of the tasks that this client starts. The keys of a principal share one limit.
    pub(crate) fn task_owner(&self) -> TaskOwner<'_> {
        TaskOwner {
            name: self.owner(),
            account: self.identity().limited_owner(),
        }
    }

    /// Returns the negotiated terms of a legacy client.
    pub(crate) fn pact(&self) -> Option<Arc<Pact>> {
        self.session.pact()
    }

    /// Returns the revision of a legacy client.
    pub(crate) fn revision(&self) -> Revision {
        self.pact()
            .map_or(Revision::newest(Era::Legacy), |pact| pact.revision())
    }

    /// Returns true if both sinks belong to the same client.
    pub(crate) fn is(&self, other: &WeakClientSink) -> bool {
        self.client_ref() == other.client_ref()
    }

    pub(crate) fn client_ref(&self) -> ClientRef {
        ClientRef::by(Arc::downgrade(&self.session))
    }

    pub(crate) fn downgrade(&self) -> WeakClientSink {
        WeakClientSink {
            session: Arc::downgrade(&self.session),
            outbox: self.outbox.clone(),
            rewriter: self.rewriter.clone(),
        }
    }

    fn messages(&self, scope: &Scope, method: Method, params: &str) -> SmallVec<[String; 1]> {
        let params = match &self.rewriter {
            Some(rewriter) => rewriter.notifications(method, params),
            None => smallvec![params.into()],
        };
        let encode = |params: &Cow<'_, str>| {
            self.session
                .encode_notification(scope.clone(), method, params)
        };
        params.iter().filter_map(encode).collect()
    }

    /// Sends a notification; waits for space in the client's buffer.
    pub(crate) async fn notify(&self, scope: &Scope, method: Method, params: &str) {
        for message in self.messages(scope, method, params) {
            // A disconnected client needs no notification.
            let _ = self.outbox.send(message).await;
        }
    }

    /// Sends a notification without waiting; drops it if the client's buffer is full.
    pub(crate) fn try_notify(&self, scope: &Scope, method: Method, params: &str) {
        for message in self.messages(scope, method, params) {
            if !self.outbox.try_send(message) {
                self.session.record_missed(method);
            }
        }
    }

    /// Sends a question and waits for the answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        params: &str,
        timeout: RequestTimeout,
    ) -> QuestionOutcome {
        match self.send_question(method, params, timeout).await {
            Ok(question) => question.answer().await,
            Err(outcome) => outcome,
        }
    }

    /// Sends a question.
    ///
    /// # Errors
    /// The outcome of a question that cannot be sent to this client.
    pub(crate) async fn send_question(
        &self,
        method: Method,
        params: &str,
        timeout: RequestTimeout,
    ) -> Result<OpenQuestion<ClientState>, QuestionOutcome> {
        let params = match &self.rewriter {
            Some(rewriter) => rewriter.question(method, params),
            None => params.into(),
        };
        self.session
            .send_question(method, &params, timeout, &self.outbox)
            .await
    }
}

impl WeakClientSink {
    pub(crate) fn client_ref(&self) -> ClientRef {
        ClientRef::by(Weak::clone(&self.session))
    }

    /// Returns the sink of a client that is still connected.
    pub(crate) fn upgrade(&self) -> Option<ClientSink> {
        Some(ClientSink {
            session: self.session.upgrade()?,
            outbox: self.outbox.clone(),
            rewriter: self.rewriter.clone(),
        })
    }
}
