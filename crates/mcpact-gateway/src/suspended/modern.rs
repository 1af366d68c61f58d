//! What modern programs have asked, and nobody has answered yet.
//!
//! A modern server that asks ends its call. Only its process may know what the answer is for, so that it is kept awake
//! until the client comes back, for as long as a call of a legacy server would wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_spec::Method;
use mcpact_translate::input::{Binding, SuspendLimits};
use mcpact_wire::raw::Object;
use tokio::time::Instant;

use crate::connection::IdleGuard;
use crate::exchange::Exchange;
use crate::suspended::digest::binding;
use crate::upstream::UpstreamServer;

/// How a result says that something is asked.
const ASKS: &str = "input_required";

/// The open questions of one server, the oldest first.
#[derive(Debug)]
pub(crate) struct ModernQuestions {
    open: Mutex<VecDeque<OpenQuestion>>,
    limits: SuspendLimits,
}

/// A call that ended with a question.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    call: Binding,
    /// The connection with which it ends; none where its client may come back by another.
    connection: Option<ClientKey>,
    until: Instant,
    _awake: IdleGuard,
}

impl ModernQuestions {
    pub(crate) fn new(limits: SuspendLimits) -> Self {
        Self {
            open: Mutex::default(),
            limits,
        }
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, exchange: &Exchange) {
        let question = OpenQuestion {
            call: binding(&exchange.inbound),
            connection: exchange.connection(),
            until: Instant::now() + self.limits.ttl,
            _awake: exchange.connection.hold(),
        };
        let mut open = self.open();
        // Whoever asks more than may wait is kept awake by the later ones.
        while open.len() >= self.limits.total {
            open.pop_front();
        }
        open.push_back(question);
        drop(open);
        let (questions, ttl) = (Arc::downgrade(self), self.limits.ttl);
        tokio::spawn(async move {
            tokio::time::sleep(ttl).await;
            if let Some(questions) = questions.upgrade() {
                let now = Instant::now();
                questions.open().retain(|question| question.until > now);
            }
        });
    }

    /// The client comes back for this call.
    fn take(&self, call: &Binding) -> Option<OpenQuestion> {
        let mut open = self.open();
        let at = open.iter().position(|question| question.call == *call)?;
        open.remove(at)
    }

    /// Forgets what only somebody could come back for who says nothing any more.
    pub(crate) fn dismiss(&self, identity: &ClientIdentity) {
        let mark = Some(&identity.key);
        self.open()
            .retain(|question| question.connection.as_ref() != mark);
    }
}

impl UpstreamServer {
    /// What the client comes back for with its request, if it does; its server stays awake for as long as this is held.
    pub(crate) fn comes_back_for(&self, exchange: &Exchange) -> Option<OpenQuestion> {
        let raw = &exchange.inbound.job.params;
        if raw.is_plain_call() || !self.may_be_asked_by(exchange) {
            return None;
        }
        let params = Object::parse(raw).unwrap_or_default();
        let is_back = ["requestState", "inputResponses"].map(|key| params.get(key).is_some());
        is_back
            .contains(&true)
            .then(|| self.questions.take(&binding(&exchange.inbound)))?
    }

    /// Keeps the server awake that asks something in this result.
    pub(crate) fn note_question(&self, exchange: &Exchange, result: &str) {
        if !self.may_be_asked_by(exchange) || !result.contains(ASKS) {
            return;
        }
        let result = Object::parse(result).unwrap_or_default();
        if result.get_str("resultType").as_deref() == Some(ASKS) {
            self.questions.add(exchange);
        }
    }

    /// Whether the server is a program that may ask during such a call. Others are awake without us.
    fn may_be_asked_by(&self, exchange: &Exchange) -> bool {
        let method = exchange.inbound.job.method;
        !self.is_remote() && method.is_some_and(Method::may_ask_for_input)
    }
}
