//! Whoever counts what the fronts decide.

use std::fmt::Debug;

use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_spec::Method;

/// Hears of every decision about a message. It is called on the message's way, and must not wait.
pub trait Watch: Debug + Send + Sync {
    /// A negotiation with a client has ended.
    fn negotiated(&self, negotiation: &Negotiation);

    /// A request of a client was refused before anybody served it.
    fn refused(&self, refused: Refused);

    /// Something was not sent to a client.
    fn withheld(&self, misuse: &ApiMisuse);

    /// A client does not read fast enough, and misses a message that it can do without.
    fn missed(&self, method: Method);

    /// Something that a client sent was not passed on.
    fn dropped(&self, why: DropCause);
}
