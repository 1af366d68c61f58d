//! Endings of calls that could not be finished.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::policy::ErrorDialect;
use mcpact_engine::refusal::{Dialect, Incompatible, ReasonCode, Refusal, WireError};
use mcpact_spec::{Capability, ErrorCode, Feature, Method, Revision, Side};
use mcpact_wire::raw::ObjectWriter;

use crate::wire_error::{modern_error, wire_error};

/// Error for an invalid `requestState`. It names the possible causes and a remedy; the log has the
/// actual cause.
#[must_use]
pub fn invalid_state() -> WireError {
    state_error("the call has ended or waited too long, or was another's")
}

/// Error for the `requestState` of a call that was ended in favour of other calls.
pub(super) fn ended_for_others() -> WireError {
    state_error(
        "the call was ended because it waited for input for too long while other calls were queued",
    )
}

fn state_error(cause: &str) -> WireError {
    const ADVICE: &str = "it may have had its effect; see whether it had, and call again without `requestState` if not";
    let data = ObjectWriter::new()
        .text("reason", ReasonCode::RequestState.as_str())
        .text("advice", ADVICE);
    WireError {
        data: Some(data.finish()),
        ..invalid_answers(format!(
            "Invalid or expired requestState: {cause}; hint: {ADVICE}"
        ))
    }
}

/// A modern client brought answers that fit no question.
pub(super) fn invalid_answers(text: impl Into<String>) -> WireError {
    modern_error(ErrorCode::InvalidParams, text)
}

/// A question was asked and not answered: a tool says so in its result, where a model can read it;
/// other methods have no such place.
pub(super) fn unanswered_call(
    method: Method,
    to: Revision,
    text: &str,
    data: Option<String>,
) -> Result<String, WireError> {
    if method == Method::ToolsCall {
        return Ok(failed_tool(to, text));
    }
    Err(WireError {
        data,
        ..wire_error(ErrorCode::InternalError, text, to)
    })
}

pub(crate) fn failed_tool(to: Revision, text: &str) -> String {
    let block = ObjectWriter::new()
        .text("type", "text")
        .text("text", text)
        .finish();
    let kind = to.has(Feature::ResultType).then_some(r#""complete""#);
    ObjectWriter::new()
        .maybe_raw("resultType", kind)
        .raw("content", &format!("[{block}]"))
        .raw("isError", "true")
        .finish()
}

/// Error for a modern client after a call failed because of undeclared questions: it names exactly
/// the missing capabilities.
///
/// `2026-07-28 basic/index#capability-negotiation`
#[must_use]
pub fn missing_capabilities_error(missing: &[Capability], to: Revision) -> WireError {
    let paths: Vec<_> = missing.iter().map(|c| c.path().into()).collect();
    let lacking = Side::Client;
    Refusal::from(Incompatible::Capabilities { lacking, paths }).on_wire(Dialect {
        revision: to,
        errors: ErrorDialect::Spec,
    })
}

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
    use Revision::{V2025_11_25, V2026_07_28};

    /// BB-29, BB-15: the error names the missing capability, and nothing else.
    #[test]
    fn the_missing_capability_is_named_exactly() {
        let cells = [
            (&[Capability::Elicitation][..], r#"{"elicitation":{}}"#),
            (
                &[Capability::ElicitationUrl],
                r#"{"elicitation":{"url":{}}}"#,
            ),
            (
                &[Capability::SamplingTools, Capability::Roots],
                r#"{"sampling":{"tools":{}},"roots":{}}"#,
            ),
        ];
        for (missing, required) in cells {
            let error = missing_capabilities_error(missing, V2026_07_28);
            assert_eq!((error.code, error.http_status), (-32021, 400), "{required}");
            let data = format!(r#"{{"requiredCapabilities":{required}}}"#);
            assert_eq!(error.data.as_deref(), Some(data.as_str()));
        }
    }

    #[test]
    fn only_tools_fail_in_their_result() {
        let legacy = V2025_11_25;
        let tool = unanswered_call(Method::ToolsCall, legacy, "no", None);
        let expected = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
        assert_eq!(tool, Ok(expected.into()));
        let tool = unanswered_call(Method::ToolsCall, V2026_07_28, "no", None);
        let typed =
            r#"{"resultType":"complete","content":[{"type":"text","text":"no"}],"isError":true}"#;
        assert_eq!(tool, Ok(typed.into()));
        for method in [Method::PromptsGet, Method::ResourcesRead] {
            let Err(error) = unanswered_call(method, legacy, "no", None) else {
                panic!("{method} has a result");
            };
            assert_eq!(error.code, -32603);
        }
    }
}

#[cfg(test)]
mod attribution_tests {
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
