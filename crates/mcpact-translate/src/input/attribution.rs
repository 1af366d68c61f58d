//! Questions of a legacy server that belong to no call.

use alloc::format;
use alloc::string::String;

use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, Revision};

use crate::wire_error::wire_error;

/// Reason why no client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributionFailure {
    /// No call is open that could have caused it.
    NoCall,
    /// The call that caused it is of a method that cannot ask its client.
    CannotAsk(Method),
}

impl AttributionFailure {
    /// Error for the server.
    #[must_use]
    pub fn answer(self, upstream: Revision) -> WireError {
        let text: String = match self {
            Self::NoCall => "No request of the client is open that this could belong to".into(),
            Self::CannotAsk(method) => format!("The client cannot be asked during `{method}`"),
        };
        wire_error(ErrorCode::InvalidParams, text, upstream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_without_a_call_are_refused() {
        for orphan in [
            AttributionFailure::NoCall,
            AttributionFailure::CannotAsk(Method::ToolsList),
        ] {
            assert_eq!(orphan.answer(Revision::V2025_06_18).code, -32602);
        }
    }
}
