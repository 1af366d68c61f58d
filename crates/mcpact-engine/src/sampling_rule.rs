//! Rules for tool calls and tool results in the messages of a sampling request.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A role that no revision defines.
    Unknown,
}

/// Content block, as far as the rules concern it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// Tool call with this id.
    ToolUse(Cow<'a, str>),
    /// Result of the call with this id.
    ToolResult(Cow<'a, str>),
    /// Other content.
    Other,
}

/// Reason why the messages are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolMessageError {
    /// A tool call has no result in the next message.
    #[error("Tool result missing in request")]
    Missing,
    /// Results are mixed with other content.
    #[error("Tool results mixed with other content")]
    Mixed,
    /// A result has no call, or its call has several.
    #[error("Tool result without its tool use")]
    Unmatched,
    /// The assistant sends results, or the user sends calls.
    #[error("Tool use and tool result in the wrong role")]
    Role,
}

impl ToolMessageError {
    /// Section of the specification that the messages violate.
    #[must_use]
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Mixed => "client/sampling#tool-result-messages",
            Self::Missing | Self::Unmatched | Self::Role => {
                "client/sampling#tool-use-and-result-balance"
            }
        }
    }
}

/// Checks that the results of all calls in a message, and nothing else, are in the next one.
///
/// # Errors
/// The messages are invalid.
pub fn check<'a, B>(
    messages: impl IntoIterator<Item = (Speaker, B)>,
) -> Result<(), ToolMessageError>
where
    B: IntoIterator<Item = Block<'a>>,
{
    let mut open = BTreeSet::new();
    for (speaker, blocks) in messages {
        let (mut calls, mut results, mut has_others) = (BTreeSet::new(), BTreeSet::new(), false);
        for block in blocks {
            let is_new = match block {
                Block::ToolUse(id) => {
                    has_others = true;
                    calls.insert(id)
                }
                Block::ToolResult(id) => results.insert(id),
                Block::Other => {
                    has_others = true;
                    true
                }
            };
            if !is_new {
                return Err(ToolMessageError::Unmatched);
            }
        }
        let is_wrong = (speaker != Speaker::User && !results.is_empty())
            || (speaker != Speaker::Assistant && !calls.is_empty());
        if is_wrong {
            return Err(ToolMessageError::Role);
        }
        if has_others && !results.is_empty() {
            return Err(ToolMessageError::Mixed);
        }
        if !open.is_subset(&results) {
            return Err(ToolMessageError::Missing);
        }
        if results != open {
            return Err(ToolMessageError::Unmatched);
        }
        open = calls;
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(ToolMessageError::Missing),
    }
}
