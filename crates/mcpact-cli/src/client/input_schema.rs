//! Parameters of a tool or prompt, as read from an input schema.

use serde_json::Value;

/// Maximum number of references that are followed.
const MAX_REFERENCES: usize = 8;

/// Maximum number of schemas that are searched for types.
const MAX_ALTERNATIVES: usize = 64;

/// JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Integer,
    Number,
    Array,
    Object,
    Null,
    String,
}

impl Kind {
    const ALL: [(&'static str, Self); 7] = [
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("array", Self::Array),
        ("object", Self::Object),
        ("null", Self::Null),
        ("string", Self::String),
    ];

    fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
            Self::String => "string",
        }
    }

    /// Returns the type for an error message.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Array => "a list",
            Self::Object => "an object",
            Self::Null => "null",
            Self::String => "a string",
        }
    }
}

/// Follows references within the document.
pub(super) fn resolved<'s>(mut schema: &'s Value, root: &'s Value) -> &'s Value {
    for _ in 0..MAX_REFERENCES {
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| root.pointer(target.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Returns the types that a schema allows; empty if it allows any or does not say.
pub(super) fn kinds(schema: &Value, root: &Value) -> Vec<Kind> {
    let mut found = Vec::new();
    let mut schemas = vec![schema];
    let mut searched = 0;
    while let Some(schema) = schemas.get(searched)
        && searched < MAX_ALTERNATIVES
    {
        searched += 1;
        let schema = resolved(schema, root);
        for kind in own_kinds(schema) {
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        let alternatives = ["anyOf", "oneOf", "allOf"].map(|keyword| schema[keyword].as_array());
        let alternatives = alternatives.into_iter().flatten().flatten();
        schemas.extend(alternatives.take(MAX_ALTERNATIVES));
    }
    found
}

/// Returns the types that a schema itself names.
fn own_kinds(schema: &Value) -> Vec<Kind> {
    match &schema["type"] {
        Value::String(name) => return Kind::parse(name).into_iter().collect(),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            return names.filter_map(Kind::parse).collect();
        }
        _ => {}
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Kind::of).collect();
    }
    let fixed = schema.get("const").map(Kind::of);
    let is_object = schema.get("properties").is_some();
    fixed
        .or(is_object.then_some(Kind::Object))
        .into_iter()
        .collect()
}

/// Returns whether a schema explicitly allows keys that it does not name.
pub(super) fn is_open(schema: &Value) -> bool {
    let additional = schema.get("additionalProperties");
    additional.is_some_and(|additional| *additional != Value::Bool(false))
        || schema.get("patternProperties").is_some()
}

/// Parameter of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Name.
    pub(crate) name: String,
    /// Type, or the allowed values if they are few.
    pub(crate) kind: String,
    /// True if it is required.
    pub(crate) is_required: bool,
    /// Description, with the default.
    pub(crate) description: String,
}

/// Returns the parameters of a schema, required ones first.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameters = properties.map(|(name, property)| {
        let property = resolved(property, schema);
        let description = property["description"].as_str().unwrap_or_default();
        let default = property.get("default").filter(|default| !default.is_null());
        let default = default.map(|default| format!("[default: {default}]"));
        let parts = [Some(description.to_owned()), default];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        Parameter {
            name: name.clone(),
            kind: kind_text(property, schema),
            is_required: is_required(name),
            description: parts.join(" ").trim().to_owned(),
        }
    });
    let mut all: Vec<Parameter> = parameters.collect();
    // A required name without a property has no type.
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    for name in names {
        if !all.iter().any(|one| one.name == name) {
            all.push(Parameter {
                name: name.to_owned(),
                kind: String::from("value"),
                is_required: true,
                description: String::new(),
            });
        }
    }
    all.sort_by_key(|one| !one.is_required);
    all
}

fn kind_text(property: &Value, root: &Value) -> String {
    /// Longer lists of values are not shown in place of the type.
    const LONGEST: usize = 24;
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        let text = values.join("|");
        if !values.is_empty() && text.len() <= LONGEST {
            return text;
        }
    }
    let kinds = kinds(property, root);
    let known: Vec<Kind> = kinds
        .into_iter()
        .filter(|kind| *kind != Kind::Null)
        .collect();
    match known.as_slice() {
        [] => String::from("value"),
        [Kind::Array] => match self::kinds(&property["items"], root).as_slice() {
            [item] => format!("{}[]", item.name()),
            _ => String::from("array"),
        },
        known => {
            let names: Vec<&str> = known.iter().map(|kind| kind.name()).collect();
            names.join("|")
        }
    }
}

/// Returns the parameters in short form, optional ones in brackets.
pub(crate) fn usage(schema: &Value) -> String {
    let words = parameters(schema).into_iter().map(|one| {
        let word = format!("{}=<{}>", one.name, one.kind);
        match one.is_required {
            true => word,
            false => format!("[{word}]"),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_shows_types_and_marks_optional_parameters() {
        for (schema, expected) in [
            (json!({}), ""),
            (
                json!({"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["b"]}),
                "b=<string> [a=<integer>]",
            ),
            (
                json!({"properties": {"t": {"type": "array", "items": {"type": "string"}}}}),
                "[t=<string[]>]",
            ),
            (
                json!({"properties": {"m": {"enum": ["fast", "slow"]}}}),
                "[m=<fast|slow>]",
            ),
            (
                json!({"properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}),
                "[n=<integer>]",
            ),
            (
                json!({"$defs": {"p": {"type": "object"}}, "properties": {"p": {"$ref": "#/$defs/p"}}}),
                "[p=<object>]",
            ),
            (json!({"required": ["x"]}), "x=<value>"),
        ] {
            assert_eq!(usage(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn circular_references_end() {
        let schema = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert_eq!(usage(&schema), "[x=<value>]");
        let nested = json!({"anyOf": [{"$ref": "#"}]});
        assert_eq!(kinds(&nested, &nested), []);
    }
}
