//! Fields of a form, as they are asked on a terminal. Pure.

use mcpact::model::FormRequest;
use serde_json::{Map, Number, Value};

/// Field of a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Key of the value.
    pub(crate) name: String,
    /// Title, or the name without one.
    pub(crate) label: String,
    /// Description.
    pub(crate) description: String,
    /// Kind of input.
    pub(crate) input: Input,
    /// True if the form is invalid without it.
    pub(crate) is_required: bool,
    /// Default.
    pub(crate) default: Option<Value>,
    /// Schema of the value.
    pub(crate) schema: Value,
}

/// Kind of input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Text,
    Number,
    Boolean,
    /// One of these options.
    One(Vec<Choice>),
    /// Any number of these options.
    Many(Vec<Choice>),
}

/// Option of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: Value,
    pub(crate) title: String,
}

/// Returns the fields of a form.
pub(crate) fn fields(form: &FormRequest) -> Vec<Field> {
    let schema = &form.requested_schema;
    let required = schema["required"].as_array();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let fields = properties.map(|(name, field)| {
        let text = |key: &str| field[key].as_str().map(str::to_owned);
        let is_this = |one: &Value| one.as_str() == Some(name);
        Field {
            name: name.clone(),
            label: text("title").unwrap_or_else(|| name.clone()),
            description: text("description").unwrap_or_default(),
            input: input(field),
            is_required: required.is_some_and(|all| all.iter().any(is_this)),
            default: field.get("default").cloned(),
            schema: field.clone(),
        }
    });
    fields.collect()
}

fn input(field: &Value) -> Input {
    match field["type"].as_str() {
        Some("boolean") => Input::Boolean,
        Some("number" | "integer") => Input::Number,
        Some("array") => Input::Many(choices(&field["items"])),
        _ => match choices(field).as_slice() {
            [] => Input::Text,
            choices => Input::One(choices.to_vec()),
        },
    }
}

fn choices(schema: &Value) -> Vec<Choice> {
    if let Some(values) = schema["enum"].as_array() {
        let titles = schema["enumNames"].as_array();
        let title = |at: usize| titles.and_then(|all| all.get(at)?.as_str());
        let choices = values.iter().enumerate().map(|(at, value)| Choice {
            value: value.clone(),
            title: title(at).or(value.as_str()).unwrap_or_default().to_owned(),
        });
        return choices.collect();
    }
    let titled = ["oneOf", "anyOf"].map(|keyword| schema[keyword].as_array());
    let titled = titled.into_iter().flatten().flatten().map(|one| Choice {
        value: one["const"].clone(),
        title: one["title"]
            .as_str()
            .or(one["const"].as_str())
            .unwrap_or_default()
            .to_owned(),
    });
    titled.collect()
}

impl Field {
    /// Converts typed text; none for an optional field without text.
    ///
    /// # Errors
    /// The reason why the text is invalid.
    pub(crate) fn read(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() && !self.is_required {
            return Ok(None);
        }
        let value = match self.input {
            Input::Number => {
                let number: Option<Number> = serde_json::from_str(text.trim()).ok();
                Value::Number(number.ok_or_else(|| String::from("not a number"))?)
            }
            _ => Value::String(text.to_owned()),
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    /// Validates a value.
    ///
    /// # Errors
    /// The reason why the value is invalid.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let form = FormRequest {
            requested_schema: serde_json::json!({
                "type": "object",
                "properties": { self.name.as_str(): self.schema },
            }),
            ..FormRequest::default()
        };
        form.validate(&Map::from_iter([(self.name.clone(), value.clone())]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value) -> Field {
        let form = FormRequest {
            requested_schema: json!({"type": "object", "properties": {"f": schema}, "required": ["f"]}),
            ..FormRequest::default()
        };
        fields(&form).remove(0)
    }

    #[test]
    fn every_kind_of_field_has_an_input() {
        let choice = |value: &str, title: &str| Choice {
            value: json!(value),
            title: title.to_owned(),
        };
        for (schema, expected) in [
            (json!({"type": "string"}), Input::Text),
            (json!({"type": "integer"}), Input::Number),
            (json!({"type": "number"}), Input::Number),
            (json!({"type": "boolean"}), Input::Boolean),
            (
                json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}),
                Input::One(vec![choice("a", "A")]),
            ),
            (
                json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}),
                Input::One(vec![choice("a", "A")]),
            ),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}}),
                Input::Many(vec![choice("a", "a"), choice("b", "b")]),
            ),
            (
                json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
                Input::Many(vec![choice("a", "A")]),
            ),
        ] {
            assert_eq!(field(schema.clone()).input, expected, "{schema}");
        }
    }

    #[test]
    fn typed_text_is_validated() {
        let age = field(json!({"type": "integer", "minimum": 0}));
        assert_eq!(age.read("7"), Ok(Some(json!(7))));
        for wrong in ["", "seven", "-1", "1.5"] {
            assert!(age.read(wrong).is_err(), "{wrong}");
        }
        let mail = field(json!({"type": "string", "minLength": 3}));
        assert_eq!(mail.read("a@b"), Ok(Some(json!("a@b"))));
        assert!(mail.read("a").is_err());
    }
}
