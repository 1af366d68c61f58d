//! The form of results, parameters and errors, rewritten for a peer of another revision.
//!
//! Everything here is a pure function from a raw body to a raw body. What the tables of
//! `mcpact-spec` do not name is kept, and a body in which nothing must change is returned as it
//! came. A block or member that the other revision cannot carry becomes something that it can; if
//! there is no such thing, [`ShapeError::Unrepresentable`] says so and nothing is sent.
//!
//! Read [`result_to_legacy`] first, then [`adapt_params`] and [`error_to_legacy`].

mod answer;
mod content;
mod elicitation;
mod error;
mod form;
pub(crate) mod members;
pub(crate) mod meta;
mod output_schema;
mod prompt;
mod request;
mod resource;
mod result;
mod sampling;
mod shape_error;
mod structured;
#[cfg(test)]
mod tests;
mod tool;

pub use answer::adapt_client_result;
pub use elicitation::with_elicitation_id;
pub use error::{error, error_to_legacy, error_to_modern};
pub use request::adapt_params;
pub use result::{result, result_to_legacy, result_to_modern};
pub use shape_error::{ShapeError, Unrepresentable};
