//! Questions of a server to the user, the model or the files of a client, across the eras.
//!
//! A legacy server sends a request and waits; a modern one ends the call with `input_required` and
//! is called again. [`Rounds`] drives one call of a legacy client against a modern server.
//! [`Parks`] keeps the calls of modern clients that a legacy server does not finish before it is
//! answered, and [`Ticket`] repeats those that it ended because a URL must be visited first.
//!
//! The machines decide and hold no connection. Whoever owns them sends what they return, and gives
//! them time, ids and the content of what the client brought back. Time is the owner's clock; where
//! sealed claims outlive a process, all owners of the key must count from the same zero.

mod answer;
mod attribution;
mod backoff;
mod check_boxes;
mod claims;
mod ending;
mod park;
mod question;
mod rounds;
mod stand_in;
#[cfg(test)]
mod tests;
mod ticket;

pub use answer::{Outcome, ServerAnswer, unanswered};
pub use attribution::{Arrival, Attribution, Orphan, attribute};
pub use backoff::Backoff;
pub use claims::{Binding, Claims, ParkId};
pub use ending::{invalid_state, refine_error};
pub use park::input_required;
pub use park::{Ended, Expired, ParkLimits, Parked, Parks, Resume, Round, ServerQuestion};
pub use question::{Unasked, raise_question};
pub use rounds::{Heard, Question, RoundLimits, Rounds, Turn};
pub use stand_in::{Dismissal, Settled, StandIn};
pub use ticket::{Completions, Presented, Ticket, UrlRequired, present, url_required};
