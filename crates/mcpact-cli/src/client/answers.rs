//! Answers of a file to the questions of a server. Pure.

use std::collections::VecDeque;

use mcpact::model::{ElicitResult, FormRequest};
use serde_json::Value;

/// Answers to questions of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Answers {
    /// The same answer to every question.
    Same(ElicitResult),
    /// One answer for each question, in order.
    InOrder(VecDeque<ElicitResult>),
}

impl Answers {
    /// Parses an answer, or a list of answers. An answer has the values of a form, or `action` and `content`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value {
            Value::Array(all) => all
                .into_iter()
                .map(answer)
                .collect::<Result<_, _>>()
                .map(Self::InOrder),
            single => answer(single).map(Self::Same),
        }
    }

    /// Returns the answer to the next question.
    pub(crate) fn next(&mut self) -> Option<ElicitResult> {
        match self {
            Self::Same(answer) => Some(answer.clone()),
            Self::InOrder(answers) => answers.pop_front(),
        }
    }
}

fn answer(value: Value) -> Result<ElicitResult, String> {
    if value.get("action").is_some_and(Value::is_string)
        && let Ok(answer) = serde_json::from_value(value.clone())
    {
        return Ok(answer);
    }
    match value {
        Value::Object(content) => Ok(ElicitResult::accept(content)),
        other => Err(format!("expected a JSON object, got `{other}`")),
    }
}

/// Completes an answer with the defaults of a form, and validates it.
pub(crate) fn fitting(form: &FormRequest, answer: ElicitResult) -> Result<ElicitResult, String> {
    let Some(content) = answer.content else {
        return Ok(answer);
    };
    let completed = form.accept_with_defaults(content);
    form.validate(
        completed
            .content
            .as_ref()
            .unwrap_or(&serde_json::Map::new()),
    )?;
    Ok(completed)
}

#[cfg(test)]
mod tests {
    use mcpact::model::ElicitAction;
    use serde_json::json;

    use super::*;

    #[test]
    fn file_has_one_answer_or_a_list() {
        let name = |answer: ElicitResult| answer.content.unwrap()["name"].clone();
        let mut same = Answers::parse(r#"{"name": "Ada"}"#).unwrap();
        assert_eq!(name(same.next().unwrap()), "Ada");
        assert_eq!(name(same.next().unwrap()), "Ada");
        let mut several = Answers::parse(r#"[{"name": "Ada"}, {"action": "decline"}]"#).unwrap();
        assert_eq!(name(several.next().unwrap()), "Ada");
        assert_eq!(several.next().unwrap().action, ElicitAction::Decline);
        assert_eq!(several.next(), None);
    }

    #[test]
    fn other_json_is_rejected() {
        for text in ["7", "[7]", "\"yes\"", "{", ""] {
            assert!(Answers::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn answers_are_completed_and_validated() {
        let form = FormRequest {
            message: String::new(),
            requested_schema: json!({
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}},
                "required": ["name"],
            }),
            ..FormRequest::default()
        };
        let given = |content: Value| match content {
            Value::Object(content) => fitting(&form, ElicitResult::accept(content)),
            _ => Err(String::new()),
        };
        let content = given(json!({"name": "Ada"})).unwrap().content;
        assert_eq!(
            Value::from(content.unwrap()),
            json!({"age": 30, "name": "Ada"})
        );
        assert!(given(json!({"name": 7})).unwrap_err().contains("name"));
        assert!(given(json!({})).is_err());
        assert_eq!(
            fitting(&form, ElicitResult::decline()),
            Ok(ElicitResult::decline())
        );
    }
}
