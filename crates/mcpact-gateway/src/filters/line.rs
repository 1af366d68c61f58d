//! What a filter is asked, and what it answers: one line each.

use mcpact_config::Stage;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter};

/// What a filter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may pass as it is.
    Pass,
    /// This passes instead.
    Replace(String),
    /// It does not pass, and why.
    Deny(String),
}

/// The question, in one line.
pub(super) fn question(number: u64, stage: Stage, method: &str, body: &str) -> String {
    let line = ObjectWriter::new()
        .raw("id", &number.to_string())
        .text("stage", stage.as_str())
        .text("method", method)
        .raw(stage.body(), body)
        .finish();
    // Between the values of a document a line may end; within them it is escaped.
    if line.contains(['\n', '\r']) {
        line.replace(['\n', '\r'], " ")
    } else {
        line
    }
}

/// The answer to this question; none if it is the answer to an earlier one, whose asker has gone.
pub(super) fn answer(number: u64, line: &str) -> Result<Option<Verdict>, String> {
    let answer = Object::parse(line).map_err(|fault| format!("its answer is no JSON: {fault}"))?;
    let id = answer.get("id").and_then(|id| id.parse::<u64>().ok());
    match id {
        Some(id) if id < number => return Ok(None),
        Some(id) if id == number => {}
        Some(_) | None => return Err(String::from("its answer has no `id` of a question")),
    }
    if let Some(why) = answer.get_present("deny") {
        let why = answer.get_str("deny").map_or(why.into(), |text| text);
        return Ok(Some(Verdict::Deny(why.into_owned())));
    }
    match answer.get_present("replace") {
        None => Ok(Some(Verdict::Pass)),
        Some(body) if JsonKind::of(body) == JsonKind::Object => {
            Ok(Some(Verdict::Replace(body.to_owned())))
        }
        Some(_) => Err(String::from("what it wants to pass instead is no object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line out, one line in; whatever is no answer is a failure, and never a yes.
    #[test]
    fn answers_are_read_strictly() {
        let asked = question(7, Stage::Request, "tools/call", "{\n\"a\":\r\n1}");
        assert_eq!(
            asked,
            r#"{"id":7,"stage":"request","method":"tools/call","params":{ "a":  1}}"#
        );
        for (line, expected) in [
            (r#"{"id":7}"#, Some(Some(Verdict::Pass))),
            (r#"{"id":7,"replace":null}"#, Some(Some(Verdict::Pass))),
            (
                r#"{"id":7,"replace":{"b":2}}"#,
                Some(Some(Verdict::Replace(String::from(r#"{"b":2}"#)))),
            ),
            (
                r#"{"id":7,"deny":"no","replace":{}}"#,
                Some(Some(Verdict::Deny(String::from("no")))),
            ),
            (
                r#"{"id":7,"deny":true}"#,
                Some(Some(Verdict::Deny(String::from("true")))),
            ),
            (r#"{"id":6}"#, Some(None)),
            (r#"{"id":8}"#, None),
            (r#"{"id":7,"replace":[]}"#, None),
            (r#"{}"#, None),
            ("yes", None),
        ] {
            assert_eq!(answer(7, line).ok(), expected, "{line}");
        }
    }
}
