//! Schemas of structured content toward revisions in which that is always an object.
//!
//! Content that is not an object is wrapped as `{"result": …}`, so a schema that only admits such
//! content is wrapped alike. A schema that may admit both fits neither form and is dropped: the
//! result does not show which schema its tool had.

use alloc::string::String;

use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};
use mcpact_wire::scan::text;

use super::ShapeError;

/// The member that holds content which is not an object.
pub(super) const WRAPPER: &str = "result";

/// Translation of a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It describes objects.
    AsItIs,
    /// The schema of the wrapped content.
    Wrapped(String),
    /// No schema would be true of both wrapped and unwrapped content.
    Never,
}

/// Members that references and validators look for at the root.
const AT_ROOT: [&str; 3] = ["$schema", "$defs", "definitions"];

/// Decides by the root of the schema.
pub(super) fn fit(raw: &str) -> Result<Fit, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Object {
        return Ok(Fit::Never);
    }
    let schema = Object::parse(raw)?;
    if schema.get_str("type").as_deref() == Some("object") {
        return Ok(Fit::AsItIs);
    }
    if !excludes_objects(&schema)? || !can_move(raw) {
        return Ok(Fit::Never);
    }
    Ok(Fit::Wrapped(wrap(&schema)))
}

fn excludes_objects(schema: &Object<'_>) -> Result<bool, ShapeError> {
    let Some(raw) = schema.get("type") else {
        return Ok(false);
    };
    if let Some(one) = text(raw) {
        return Ok(one != "object");
    }
    if JsonKind::of(raw) != JsonKind::Array {
        return Ok(false);
    }
    let names = elements(raw)?;
    let is_other = |name: &&str| text(name).is_some_and(|name| name != "object");
    Ok(!names.is_empty() && names.iter().all(is_other))
}

/// Returns whether every reference still leads to the same place from one level deeper.
fn can_move(raw: &str) -> bool {
    const ANCHORED: [&str; 5] = [
        r#""$id""#,
        r#""$anchor""#,
        r#""$dynamicRef""#,
        r#""$dynamicAnchor""#,
        r#""$recursiveRef""#,
    ];
    let mut references = raw.split(r#""$ref""#).skip(1);
    !ANCHORED.iter().any(|word| raw.contains(word)) && references.all(leads_to_definitions)
}

fn leads_to_definitions(after_key: &str) -> bool {
    let target = after_key.trim_start().strip_prefix(':');
    let target = target.and_then(|rest| rest.trim_start().strip_prefix('"'));
    target.is_some_and(|t| t.starts_with("#/$defs/") || t.starts_with("#/definitions/"))
}

fn wrap(schema: &Object<'_>) -> String {
    let mut outer = ObjectWriter::new();
    let mut inner = ObjectWriter::new();
    for (key, raw) in schema.iter() {
        if AT_ROOT.contains(&key) {
            outer = outer.raw(key, raw);
        } else {
            inner = inner.raw(key, raw);
        }
    }
    let properties = ObjectWriter::new().raw(WRAPPER, &inner.finish()).finish();
    outer
        .text("type", "object")
        .raw("properties", &properties)
        .texts("required", [WRAPPER])
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_decides() {
        let wrapped = |text: &str| Fit::Wrapped(String::from(text));
        let cells = [
            ("object", r#"{"type":"object","x":1}"#, Fit::AsItIs),
            (
                "array",
                r#"{"type":"array","items":{}}"#,
                wrapped(
                    r#"{"type":"object","properties":{"result":{"type":"array","items":{}}},"required":["result"]}"#,
                ),
            ),
            (
                "definitions stay at the root",
                r##"{"$schema":"s","type":"array","items":{"$ref": "#/$defs/A"},"$defs":{"A":{}}}"##,
                wrapped(
                    r##"{"$schema":"s","$defs":{"A":{}},"type":"object","properties":{"result":{"type":"array","items":{"$ref": "#/$defs/A"}}},"required":["result"]}"##,
                ),
            ),
            (
                "several scalars",
                r#"{"type":["string","null"]}"#,
                wrapped(
                    r#"{"type":"object","properties":{"result":{"type":["string","null"]}},"required":["result"]}"#,
                ),
            ),
            (
                "perhaps an object",
                r#"{"type":["object","null"]}"#,
                Fit::Never,
            ),
            ("anything", "{}", Fit::Never),
            ("a union", r#"{"anyOf":[{"type":"array"}]}"#, Fit::Never),
            ("a boolean", "true", Fit::Never),
            (
                "a reference to the root",
                r##"{"type":"array","items":{"$ref":"#"}}"##,
                Fit::Never,
            ),
            (
                "a name of its own",
                r#"{"$id":"urn:a","type":"array"}"#,
                Fit::Never,
            ),
            ("no types", r#"{"type":[]}"#, Fit::Never),
            ("a strange type", r#"{"type":7}"#, Fit::Never),
        ];
        for (name, raw, expected) in cells {
            assert_eq!(fit(raw).unwrap(), expected, "{name}");
        }
    }
}
