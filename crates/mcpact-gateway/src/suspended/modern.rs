//! Unanswered questions of modern local servers.
//!
//! A modern server requests input by ending its call. Only its process may know the state behind the question. An
//! idle guard keeps that process running until the client responds, at most as long as a suspended legacy call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use mcpact::connection::RawResult;
use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_spec::Method;
use mcpact_translate::input::{Binding, SuspendLimits};
use mcpact_wire::raw::Object;
use mcpact_wire::scan::SeenKeys;
use tokio::time::Instant;

use crate::connection::IdleGuard;
use crate::exchange::Exchange;
use crate::lists::bindings;
use crate::suspended::{self, binding};
use crate::sync::lock;
use crate::upstream::UpstreamServer;

/// Value of `resultType` for a result that requests input.
const INPUT_REQUIRED: &str = "input_required";

/// Open questions of one server, the oldest first.
#[derive(Debug)]
pub(crate) struct ModernQuestions {
    open: Mutex<VecDeque<OpenQuestion>>,
    limits: SuspendLimits,
}

/// Call that ended with a request for input.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    call: Binding,
    /// Client connection that ends the question when it closes; `None` if another connection may answer.
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

    fn add(self: &Arc<Self>, exchange: &Exchange) {
        let question = OpenQuestion {
            call: binding(&exchange.inbound),
            connection: suspended::required_connection(exchange),
            until: Instant::now() + self.limits.ttl,
            _awake: exchange.connection.hold(),
        };
        let mut open = lock(&self.open);
        // At the limit, the oldest question is dropped; the newer ones still prevent idle shutdown.
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
                lock(&questions.open).retain(|question| question.until > now);
            }
        });
    }

    /// Removes and returns the open question of this call.
    fn take(&self, call: &Binding) -> Option<OpenQuestion> {
        let mut open = lock(&self.open);
        let at = open.iter().position(|question| question.call == *call)?;
        open.remove(at)
    }

    /// Drops the questions that only this client could answer, after its input has closed.
    pub(crate) fn on_input_closed(&self, identity: &ClientIdentity) {
        let mark = Some(&identity.key);
        lock(&self.open).retain(|question| question.connection.as_ref() != mark);
    }
}

/// Returns the open question that the request answers, if any. It prevents idle shutdown of the server while
/// held.
pub(crate) fn answered_question(
    server: &UpstreamServer,
    exchange: &Exchange,
) -> Option<OpenQuestion> {
    let raw = &exchange.inbound.job.params;
    if raw.is_plain_call() || !may_request_input(server, exchange) {
        return None;
    }
    let params = Object::parse(raw).unwrap_or_default();
    let mut keys = ["requestState", "inputResponses"].into_iter();
    keys.any(|key| params.get(key).is_some())
        .then(|| server.questions.take(&binding(&exchange.inbound)))?
}

/// Prevents idle shutdown of the server if this result requests input.
pub(crate) fn note_question(server: &UpstreamServer, exchange: &Exchange, result: &RawResult) {
    let input = SeenKeys::INPUT_REQUESTS.with(SeenKeys::REQUEST_STATE);
    if !may_request_input(server, exchange) || !result.may_have(input) {
        return;
    }
    let result = Object::parse(result).unwrap_or_default();
    if result.get_str("resultType").as_deref() == Some(INPUT_REQUIRED) {
        server.questions.add(exchange);
    }
}

/// Returns true if the server is a local process that may request input in this call. Remote servers need no idle
/// guard.
fn may_request_input(server: &UpstreamServer, exchange: &Exchange) -> bool {
    let method = exchange.inbound.job.method;
    !bindings::is_remote(server) && method.is_some_and(Method::may_ask_for_input)
}
