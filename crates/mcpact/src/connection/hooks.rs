//! Hooks of the owner of a connection.

use std::fmt::Debug;
use std::sync::Arc;

use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::pact::Pact;
use mcpact_transport::stdio::child::{Masks, Process, StderrSink};
use mcpact_wire::envelope::Notification;

use super::error::FailureText;
use super::inbox::ServerNotification;
use super::server_request::ServerRequest;
use crate::log::ProcessEvent;

/// What the owner of a connection provides and observes.
///
/// The hooks are held as long as the connection or its process lives; dropping the last clone shows that both have ended.
pub trait Hooks: Debug + Send + Sync {
    /// Returns the name of the server in logs.
    fn server(&self) -> &Arc<str>;

    /// Returns secrets that are masked in logs.
    fn masks(&self) -> Masks {
        Masks::default()
    }

    /// Returns the sink for lines that the process writes to stderr.
    fn stderr_sink(&self) -> Option<StderrSink> {
        None
    }

    /// Returns the observer of calls. It is kept by calls, so it must not keep the hooks.
    fn observer(&self) -> Arc<dyn CallObserver> {
        Arc::new(NoObserver)
    }

    /// Returns the handler of the server's messages after the negotiation. Without one, messages go to the call that
    /// they belong to, or to [`Connected::unsolicited`](super::Connected::unsolicited).
    fn message_handler(&self, _pact: &Arc<Pact>) -> Option<Arc<dyn MessageHandler>> {
        None
    }

    /// A process starts or stops. [`spawned`](Self::spawned) follows a start.
    fn process_event(&self, _event: ProcessEvent<'_>) {}

    /// A process was started.
    fn spawned(&self, _process: &Process) {}

    /// A negotiation ended, with or without success.
    fn negotiated(&self, _negotiation: &Negotiation) {}

    /// The connection was lost. Called before pending calls fail.
    fn lost(&self, _why: FailureText) {}
}

/// Handler of all notifications and requests of a server, called in the order of their arrival. It must not block.
pub trait MessageHandler: Debug + Send + Sync {
    /// A notification, of any method.
    fn notification(&self, notification: &Notification<'_>);

    /// A request.
    fn request(&self, request: ServerRequest);
}

#[derive(Debug)]
struct NoObserver;

impl CallObserver for NoObserver {}

/// Observer of calls and messages.
pub trait CallObserver: Debug + Send + Sync {
    /// The server sent a notification, which a [`MessageHandler`] does not take.
    fn notification(&self, _notification: &ServerNotification) {}

    /// A message of the server was dropped.
    fn dropped(&self, _reason: DropReason) {}

    /// The server wrote a line to stdout that is not JSON. It is also [`dropped`](Self::dropped).
    fn noise(&self, _line: &[u8]) {}

    /// The server answered a call over HTTP.
    fn delivered(&self) {}

    /// A call over HTTP was not delivered, or its response cannot be read.
    fn undelivered(&self, _failure: DeliveryFailure, _why: &str) {}
}

/// Failure to deliver a call or its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// The call did not reach the server.
    Unreachable,
    /// The response cannot be read.
    InvalidResponse,
}

mcpact_spec::stable_strings! {
    /// Reason why a message of the server was dropped.
    pub enum DropReason {
        /// A response to a request that is no longer waiting.
        LateAnswer = "late_answer",
        /// There was no memory for the message.
        MemoryExhausted = "memory_exhausted",
        /// No client reads messages outside of calls fast enough.
        NoReader = "no_reader",
        /// JSON that is not a JSON-RPC message.
        NotAMessage = "not_a_message",
        /// Not JSON.
        NotJson = "not_json",
        /// A notification above the rate limit.
        RateLimited = "rate_limited",
        /// The call does not read its messages fast enough.
        SlowCall = "slow_call",
        /// A message that exceeds the size limit.
        TooLong = "too_long",
        /// A request above the limit of open requests; it was refused.
        TooManyRequests = "too_many_requests",
        /// A notification that no revision defines.
        UnknownMethod = "unknown_method",
        /// A response to another request.
        WrongId = "wrong_id",
    }
}
