//! Messages to and from a filter, one line each.

use mcpact_config::Stage;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter};

/// Decision of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Pass unchanged.
    Pass,
    /// Pass this instead.
    Replace(String),
    /// Deny, with the reason.
    Deny(String),
}

/// Encodes a request to a filter as one line.
pub(super) fn encode(id: u64, stage: Stage, method: &str, body: &str) -> String {
    let line = ObjectWriter::new()
        .raw("id", &id.to_string())
        .text("stage", stage.as_str())
        .text("method", method)
        .raw(stage.body(), body)
        .finish();
    // JSON allows line breaks between values; within strings they are escaped.
    if line.contains(['\n', '\r']) {
        line.replace(['\n', '\r'], " ")
    } else {
        line
    }
}

/// Parses the answer to a request. Returns none for the answer to an earlier request that was cancelled.
pub(super) fn parse(expected: u64, line: &str) -> Result<Option<Verdict>, String> {
    let answer =
        Object::parse(line).map_err(|fault| format!("invalid JSON in the answer: {fault}"))?;
    let id = answer.get("id").and_then(|id| id.parse::<u64>().ok());
    match id {
        Some(id) if id < expected => return Ok(None),
        Some(id) if id == expected => {}
        Some(_) | None => return Err(String::from("the answer has no valid `id`")),
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
        Some(_) => Err(String::from("`replace` is not an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An invalid answer is a failure, never a pass.
    #[test]
    fn answers_are_parsed_strictly() {
        let request = encode(7, Stage::Request, "tools/call", "{\n\"a\":\r\n1}");
        assert_eq!(
            request,
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
            assert_eq!(parse(7, line).ok(), expected, "{line}");
        }
    }
}
