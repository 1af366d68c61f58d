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
mod error;
mod form;
mod list_items;
pub(crate) mod members;
pub(crate) mod meta;
mod output_schema;
mod request;
mod result;
mod sampling;
mod structured;
#[cfg(test)]
mod tests;

use mcpact_engine::sampling_rule::ToolMessageError;
use mcpact_spec::Revision;
use mcpact_wire::scan::ScanError;

pub use answer::adapt_client_result;
pub use error::{error, error_to_legacy, error_to_modern};
pub use request::{adapt_params, with_elicitation_id};
pub use result::{result, result_to_legacy, result_to_modern};

/// Reason why a body cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The body is not an object, or an object in it has the same member twice.
    #[error("the body is malformed")]
    Malformed(#[from] ScanError),
    /// The result is not a complete one: its `resultType` asks for input or names a task, and only
    /// a conversation can resolve that.
    #[error("the result is not complete")]
    Unfinished,
    /// A URL elicitation of 2025-11-25 needs an id, and the body has none.
    ///
    /// [`with_elicitation_id`] writes one.
    #[error("the elicitation has no `elicitationId`")]
    NoElicitationId,
    /// The tool calls and results of a sampling request do not match.
    #[error("{0}; see {rule}", rule = .0.rule())]
    ToolMessages(ToolMessageError),
    /// The revision has no way to say it.
    #[error("{} cannot be expressed in {to}", what.as_str())]
    Unrepresentable {
        /// Feature that cannot be expressed.
        what: Unrepresentable,
        /// To whom.
        to: Revision,
    },
}

/// Features that some revisions cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unrepresentable {
    /// Elicitation as such.
    Elicitation,
    /// An elicitation that sends the user to a URL, or one of an unknown mode.
    ElicitationMode,
    /// A form field in which several options can be chosen.
    MultiSelect,
    /// Tools, the choice among them, their use or their results in a sampling conversation.
    SamplingTools,
    /// A sampled message of several blocks that are not all text.
    SampledBlocks,
}

impl Unrepresentable {
    /// The thing in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::ElicitationMode => "this mode of elicitation",
            Self::MultiSelect => "a form field with several choices",
            Self::SamplingTools => "tools in sampling",
            Self::SampledBlocks => "a sampled message of several blocks",
        }
    }

    /// The error for a peer of this revision.
    const fn to(self, to: Revision) -> ShapeError {
        ShapeError::Unrepresentable { what: self, to }
    }
}
