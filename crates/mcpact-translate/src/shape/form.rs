//! The schema of a form toward 2025-06-18, which has fewer kinds of fields.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Object, Revision};
use mcpact_wire::raw::{self, JsonKind};
use mcpact_wire::scan::text;

use super::members::{Members, array, each_value, edit};
use super::{ShapeError, Unrepresentable};

/// The `requestedSchema` for a client of the revision.
pub(super) fn adapt(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |schema| {
        schema.trim(Object::RequestedSchema, to);
        schema.rewrite("properties", |raw| {
            each_value(raw, |raw| adapt_field(raw, to))
        })
    })
}

fn adapt_field(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |field| {
        let Some(mut object) = object_of(field) else {
            return Ok(());
        };
        if object == Object::TitledMultiSelectEnumSchema && object.has("items", to) == Some(false) {
            return Err(Unrepresentable::MultiSelect.to(to));
        }
        if object == Object::TitledSingleSelectEnumSchema && object.has("oneOf", to) == Some(false)
        {
            name_options(field)?;
            object = Object::LegacyTitledEnumSchema;
        }
        if object.has("default", to) == Some(false) {
            mention_default(field);
        }
        field.trim(object, to);
        Ok(())
    })
}

/// Object that describes the field, by its type.
fn object_of(field: &Members<'_>) -> Option<Object> {
    match field.get_str("type")?.as_ref() {
        "string" if field.get("enum").is_some() => Some(Object::LegacyTitledEnumSchema),
        "string" if field.get("oneOf").is_some() => Some(Object::TitledSingleSelectEnumSchema),
        "string" => Some(Object::StringSchema),
        "number" | "integer" => Some(Object::NumberSchema),
        "boolean" => Some(Object::BooleanSchema),
        "array" => Some(Object::TitledMultiSelectEnumSchema),
        _ => None,
    }
}

/// Options with titles become a list of values and a list of names. Options that are not texts
/// are left alone.
fn name_options(field: &mut Members<'_>) -> Result<(), ShapeError> {
    let options = field.get("oneOf").unwrap_or("[]");
    if JsonKind::of(options) != JsonKind::Array {
        return Ok(());
    }
    let mut values = Vec::new();
    let mut names = Vec::new();
    for option in raw::elements(options)? {
        let Some(option) = Members::of_value(option)? else {
            return Ok(());
        };
        let Some(value) = option.get_raw_str("const") else {
            return Ok(());
        };
        names.push(String::from(option.get_raw_str("title").unwrap_or(value)));
        values.push(String::from(value));
    }
    field.remove("oneOf");
    field.set("enum", array(values.iter().map(String::as_str)));
    field.set("enumNames", array(names.iter().map(String::as_str)));
    Ok(())
}

/// Adds a default that the form cannot fill in to the description.
fn mention_default(field: &mut Members<'_>) {
    let Some(raw) = field.get_present("default") else {
        return;
    };
    let default = text(raw).unwrap_or(Cow::Borrowed(raw));
    let mention = match field.get_str("description") {
        Some(description) if !description.is_empty() => {
            format!("{description} (default: {default})")
        }
        Some(_) | None => format!("(default: {default})"),
    };
    field.set_str("description", &mention);
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2025_06_18, V2025_11_25};

    #[test]
    fn fields_become_what_the_revision_has() {
        let cells = [
            (
                "text",
                r#"{"type":"string","description":"d","default":"x","minLength":1}"#,
                r#"{"type":"string","description":"d (default: x)","minLength":1}"#,
            ),
            (
                "number",
                r#"{"type":"integer","default":3}"#,
                r#"{"type":"integer","description":"(default: 3)"}"#,
            ),
            (
                "boolean",
                r#"{"type":"boolean","default":true}"#,
                r#"{"type":"boolean","default":true}"#,
            ),
            (
                "plain options",
                r#"{"type":"string","enum":["a"],"default":"a"}"#,
                r#"{"type":"string","enum":["a"],"description":"(default: a)"}"#,
            ),
            (
                "titled options",
                r#"{"type":"string","title":"T","oneOf":[{"const":"a","title":"A"},{"const":"b"}]}"#,
                r#"{"type":"string","title":"T","enum":["a","b"],"enumNames":["A","b"]}"#,
            ),
            (
                "strange options",
                r#"{"type":"string","oneOf":[7]}"#,
                r#"{"type":"string","oneOf":[7]}"#,
            ),
            ("unknown", r#"{"type":"object"}"#, r#"{"type":"object"}"#),
        ];
        for (name, raw, expected) in cells {
            let adapted = adapt_field(raw, V2025_06_18).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{name}");
            assert_eq!(adapt_field(raw, V2025_11_25).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn several_choices_cannot_be_offered() {
        let raw = r#"{"properties":{"a":{"type":"array","items":{"enum":["x"]}}}}"#;
        assert_eq!(
            adapt(raw, V2025_06_18),
            Err(Unrepresentable::MultiSelect.to(V2025_06_18))
        );
        assert_eq!(adapt(raw, V2025_11_25), Ok(None));
    }
}
