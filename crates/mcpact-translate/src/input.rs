//! Questions of a server to the user, the model or the files of a client, across the eras.
//!
//! A legacy server sends a request and waits; a modern one ends the call with `input_required` and
//! is called again. [`Rounds`] drives one call of a legacy client against a modern server.
//! [`SuspendedCalls`] keeps the calls of modern clients that a legacy server does not finish before it is
//! answered, and [`Ticket`] repeats those that it ended because a URL must be visited first.
//!
//! The machines decide and hold no connection. Their owner sends what they return, and gives
//! them time, ids and the content of what the client brought back. Time is the owner's clock; where
//! sealed claims outlive a process, all owners of the key must count from the same zero.

mod answer;
mod bound_state;
mod check_boxes;
mod claims;
mod default_answers;
mod ending;
mod question;
mod rounds;
mod suspended;
#[cfg(test)]
mod tests;
mod ticket;

pub use answer::{Outcome, ServerAnswer, unanswered};
pub use bound_state::BoundState;
pub use claims::{Binding, Claims, SuspendedCallId};
pub use default_answers::{AnsweredResult, DefaultAnswers, Dismissal};
pub(crate) use ending::failed_tool;
pub use ending::{AttributionFailure, invalid_state, missing_capabilities_error};
pub use question::{
    QuestionRefusal, question_to_modern, with_adapted_sampling, without_undeclared,
};
pub use rounds::{Backoff, ClientReply, NextStep, Question, RoundLimits, Rounds};
pub use suspended::input_required;
pub use suspended::{
    CallEnd, ExpiredCall, ResumeOutcome, Round, ServerQuestion, SuspendLimits, SuspendOutcome,
    SuspendedCalls,
};
pub use ticket::{Completions, Ticket, TicketOutcome, UrlRequired, redeem, url_required};
