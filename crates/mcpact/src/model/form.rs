//! Validation of forms and their answers.

use serde_json::{Map, Value};

use super::elicitation::FormRequest;
use crate::schema::Schema;

/// Words in field names that ask for secrets, which belong to a page of the server.
///
/// `2025-11-25 client/elicitation#security-considerations`
const SENSITIVE: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "bearertoken",
    "privatekey",
    "creditcard",
    "cardnumber",
    "cvv",
    "socialsecurity",
];

/// Reason why a form is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The schema is not an object with properties.
    #[error("the schema of a form must be an object with `properties`")]
    NotAnObject,
    /// A field is neither string, number, boolean nor enum.
    #[error("field `{0}` is not flat: use only strings, numbers, booleans and enums")]
    NotFlat(String),
    /// A field asks for a secret.
    #[error("field `{0}` asks for a secret: use URL elicitation instead")]
    Sensitive(String),
}

impl FormRequest {
    /// Checks that the form is flat, as clients require.
    ///
    /// # Errors
    /// The form is not flat.
    pub fn check(&self) -> Result<(), FormError> {
        let schema = &self.requested_schema;
        let fields = schema.get("properties").and_then(Value::as_object);
        let Some(fields) = fields.filter(|_| schema["type"] == "object") else {
            return Err(FormError::NotAnObject);
        };
        match fields.iter().find(|(_, field)| !is_flat(field)) {
            Some((name, _)) => Err(FormError::NotFlat(name.clone())),
            None => Ok(()),
        }
    }

    /// Checks that no field asks for a secret, by its name and title.
    ///
    /// # Errors
    /// A field asks for a secret.
    pub fn check_secrets(&self) -> Result<(), FormError> {
        let fields = self.requested_schema.get("properties");
        let fields = fields.and_then(Value::as_object).into_iter().flatten();
        for (name, field) in fields {
            let title = field["title"].as_str().unwrap_or_default();
            if is_sensitive(name) || is_sensitive(title) {
                return Err(FormError::Sensitive(name.clone()));
            }
        }
        Ok(())
    }

    /// Validates form values.
    ///
    /// # Errors
    /// The first invalid value: location and reason.
    pub fn validate(&self, filled_in: &Map<String, Value>) -> Result<(), String> {
        let schema = Schema::compile(&self.requested_schema).map_err(|fault| fault.to_string())?;
        let problem = schema.first_error(&Value::Object(filled_in.clone()));
        problem.map_or(Ok(()), |(location, text)| {
            Err(format!("`{location}`: {text}"))
        })
    }
}

fn is_flat(field: &Value) -> bool {
    match field["type"].as_str() {
        Some("string") => field.get("oneOf").is_none_or(is_choice),
        Some("number" | "integer" | "boolean") => true,
        Some("array") => {
            let items = &field["items"];
            items["enum"].is_array() || items.get("anyOf").is_some_and(is_choice)
        }
        Some(_) | None => false,
    }
}

/// Returns `true` if all options have a string value.
fn is_choice(options: &Value) -> bool {
    let options = options.as_array();
    options.is_some_and(|all| all.iter().all(|option| option["const"].is_string()))
}

fn is_sensitive(name: &str) -> bool {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    SENSITIVE.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: Value) -> FormRequest {
        FormRequest {
            requested_schema: json!({"type": "object", "properties": properties}),
            ..FormRequest::default()
        }
    }

    #[test]
    fn nested_forms_are_rejected() {
        for good in [
            json!({"type": "string", "format": "email"}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "boolean", "default": true}),
            json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
        ] {
            assert_eq!(form(json!({ "f": good })).check(), Ok(()), "{good}");
        }
        for bad in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"type": "string", "oneOf": [{"type": "object"}]}),
            json!({"$ref": "#/$defs/x"}),
            json!({}),
            json!(7),
        ] {
            assert!(form(json!({ "f": bad })).check().is_err(), "{bad}");
        }
        assert_eq!(FormRequest::default().check(), Err(FormError::NotAnObject));
    }

    /// P24: fields that ask for secrets are detected by name and title, in any spelling.
    #[test]
    fn fields_for_secrets_are_detected() {
        for (name, title) in [
            ("password", ""),
            ("userPassword", ""),
            ("api_key", ""),
            ("x", "API key"),
            ("x", "Credit card number"),
            ("ACCESS-TOKEN", ""),
        ] {
            let asked = form(json!({name: {"type": "string", "title": title}}));
            assert!(asked.check_secrets().is_err(), "{name} {title}");
        }
        let harmless = form(json!({"name": {"type": "string"}, "keyboard": {"type": "string"}}));
        assert_eq!(harmless.check_secrets(), Ok(()));
    }

    #[test]
    fn form_values_are_validated() {
        let asked = form(json!({"age": {"type": "integer", "minimum": 0}}));
        let answer = |age: Value| Map::from_iter([("age".to_owned(), age)]);
        assert!(asked.validate(&answer(json!(3))).is_ok());
        assert!(
            asked
                .validate(&answer(json!(-3)))
                .unwrap_err()
                .contains("age")
        );
    }
}
