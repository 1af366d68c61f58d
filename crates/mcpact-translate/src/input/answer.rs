//! Answers to the questions of a server.

use alloc::format;
use alloc::string::String;

use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::id::Id;
use mcpact_wire::model::error::encode;
use mcpact_wire::raw::{JsonKind, Object, elements};

use crate::shape::{ShapeError, adapt_client_result};

/// A form that was dismissed.
pub(super) const CANCELLED: &str = r#"{"action":"cancel"}"#;
/// A form that the user said no to.
pub(super) const DECLINED: &str = r#"{"action":"decline"}"#;
/// A URL that the user agreed to visit.
pub(super) const ACCEPTED: &str = r#"{"action":"accept"}"#;

/// Raw outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The result.
    Result(String),
    /// The error object.
    Error(String),
}

/// Answer to a request of a legacy server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The server's id.
    pub id: Id,
    /// Its end.
    pub outcome: Outcome,
}

/// Answer to a question that the client does not answer: a form counts as dismissed, a sample as
/// rejected by the user; for roots there is only failure.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a server asks nothing else that a client could answer late"
)]
#[must_use]
pub fn unanswered(method: Method) -> Outcome {
    let failed = |code: ErrorCode, text| Outcome::Error(encode(code.code(), text, None));
    match method {
        Method::ElicitationCreate => Outcome::Result(CANCELLED.into()),
        Method::SamplingCreateMessage => {
            failed(ErrorCode::UserRejected, "User rejected sampling request")
        }
        _ => failed(ErrorCode::InternalError, "The client did not answer"),
    }
}

/// A client's answer as a server of the revision `to` reads it.
pub(super) fn to_server(method: Method, raw: &str, to: Revision) -> Outcome {
    match adapt_client_result(method, raw, to) {
        Ok(answer) => Outcome::Result(answer.into_owned()),
        Err(fault) => Outcome::Error(encode(
            ErrorCode::InternalError.code(),
            &format!("The client's answer does not fit: {fault}"),
            None,
        )),
    }
}

/// Returns whether the user agreed.
pub(super) fn is_accept(answer: &str) -> bool {
    let answer = Object::parse(answer).unwrap_or_default();
    answer.get_str("action").as_deref() == Some("accept")
}

/// Returns whether a raw value is an answer to a question of this method.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "there are three questions, and nothing answers any other"
)]
pub(super) fn fits(method: Method, raw: &str) -> bool {
    let Ok(answer) = Object::parse(raw) else {
        return false;
    };
    match method {
        Method::ElicitationCreate => fits_elicitation(&answer),
        Method::SamplingCreateMessage => fits_sampling(&answer),
        Method::RootsList => fits_roots(&answer).unwrap_or(false),
        _ => false,
    }
}

fn fits_elicitation(answer: &Object<'_>) -> bool {
    let action = answer.get_str("action");
    let is_known = matches!(action.as_deref(), Some("accept" | "decline" | "cancel"));
    let content = answer.get_present("content").map(JsonKind::of);
    is_known && matches!(content, None | Some(JsonKind::Object))
}

fn fits_sampling(answer: &Object<'_>) -> bool {
    let content = answer.get("content").map(JsonKind::of);
    let role = answer.get_str("role");
    matches!(role.as_deref(), Some("assistant" | "user"))
        && answer.get_str("model").is_some()
        && matches!(content, Some(JsonKind::Object | JsonKind::Array))
}

fn fits_roots(answer: &Object<'_>) -> Result<bool, ShapeError> {
    let roots = elements(answer.get("roots").unwrap_or("null"))?;
    for root in roots {
        if Object::parse(root)?.get_str("uri").is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_shape_of_their_question() {
        let elicitation = Method::ElicitationCreate;
        let sampling = Method::SamplingCreateMessage;
        let roots = Method::RootsList;
        let cells = [
            (
                elicitation,
                r#"{"action":"accept","content":{"a":1}}"#,
                true,
            ),
            (elicitation, r#"{"action":"decline"}"#, true),
            (elicitation, CANCELLED, true),
            (elicitation, r#"{"action":"maybe"}"#, false),
            (elicitation, r#"{"content":{}}"#, false),
            (elicitation, r#"{"action":"accept","content":[]}"#, false),
            (elicitation, "null", false),
            (
                sampling,
                r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m"}"#,
                true,
            ),
            (
                sampling,
                r#"{"role":"assistant","content":[],"model":"m"}"#,
                true,
            ),
            (sampling, r#"{"role":"assistant","content":[]}"#, false),
            (
                sampling,
                r#"{"role":"system","content":[],"model":"m"}"#,
                false,
            ),
            (
                sampling,
                r#"{"role":"user","content":"x","model":"m"}"#,
                false,
            ),
            (roots, r#"{"roots":[]}"#, true),
            (roots, r#"{"roots":[{"uri":"file:///"}]}"#, true),
            (roots, r#"{"roots":[{}]}"#, false),
            (roots, r#"{"roots":["file:///"]}"#, false),
            (roots, "{}", false),
            (Method::Ping, "{}", false),
        ];
        for (method, raw, expected) in cells {
            assert_eq!(fits(method, raw), expected, "{method}: {raw}");
        }
    }

    #[test]
    fn a_server_is_never_left_without_an_answer() {
        let cells = [
            (Method::ElicitationCreate, Outcome::Result(CANCELLED.into())),
            (
                Method::SamplingCreateMessage,
                Outcome::Error(r#"{"code":-1,"message":"User rejected sampling request"}"#.into()),
            ),
            (
                Method::RootsList,
                Outcome::Error(r#"{"code":-32603,"message":"The client did not answer"}"#.into()),
            ),
        ];
        for (method, expected) in cells {
            assert_eq!(unanswered(method), expected, "{method}");
        }
    }

    /// BB-28: one sampled block becomes the block itself for a server that knows no lists.
    #[test]
    fn answers_are_adapted_to_the_server() {
        let sampling = Method::SamplingCreateMessage;
        let one = r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"a"}]}"#;
        let adapted = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"a"}}"#;
        let answer = to_server(sampling, one, Revision::V2025_06_18);
        assert_eq!(answer, Outcome::Result(adapted.into()));
        assert_eq!(
            to_server(sampling, one, Revision::V2025_11_25),
            Outcome::Result(one.into())
        );
        let mixed = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":""}]}"#;
        let answer = to_server(sampling, mixed, Revision::V2025_06_18);
        assert!(matches!(answer, Outcome::Error(error) if error.contains("-32603")));
    }
}
