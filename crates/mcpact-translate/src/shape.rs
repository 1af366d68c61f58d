//! The form of results, parameters and errors, rewritten for a peer of another revision.
//!
//! Everything here is a pure function from a raw body to a raw body. What the tables of
//! `mcpact-spec` do not name is kept, and a body in which nothing must change is returned as it
//! came. A block or member that the other revision cannot carry becomes something that it can; if
//! there is no such thing, [`ShapeError::Unrepresentable`] says so and nothing is sent.
//!
//! Read [`lower_result`] first, then [`lower_request`] and [`lower_error`].

mod answer;
mod content;
mod elicitation;
mod error;
mod fault;
mod form;
pub(crate) mod members;
pub(crate) mod meta;
mod output_schema;
mod prompt;
mod request;
mod resource;
mod result;
mod sampling;
mod structured;
#[cfg(test)]
mod tests;
mod tool;

pub use answer::lower_answer;
pub use elicitation::with_elicitation_id;
pub use error::{error, lower_error, raise_error, unattributed_error};
pub use fault::{ShapeError, Unrepresentable};
pub use request::lower_request;
pub use result::{lower_result, raise_result, result};
