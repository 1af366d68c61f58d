//! Capability paths of a revision and their shape.

use std::collections::{BTreeMap, BTreeSet};

use mcpact_spec::{Capability, Presence, Shape, Side};
use serde_json::{Map, Value};

use super::comparison::Comparison;
use super::schema::Schema;
use crate::labels;

/// Compares both capability documents.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    compare_side(comparison, schema, Side::Client, "ClientCapabilities");
    compare_side(comparison, schema, Side::Server, "ServerCapabilities");
}

fn compare_side(comparison: &mut Comparison, schema: &Schema, side: Side, definition: &str) {
    let mut paths = BTreeMap::new();
    if let Some(document) = schema.definition(definition) {
        collect(schema, document, "", &mut paths);
    }
    let mut names: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    for row in Capability::of(side) {
        names.insert(row.path());
    }
    for path in names
        .into_iter()
        .filter(|path| !only_leads_to_a_row(side, path))
    {
        let row = Capability::parse(side, path)
            .filter(|row| is_in_schema(row.presence(comparison.revision())));
        let table = row.map_or(labels::NOTHING, |row| written(row.shape()));
        let schema = paths.get(path).copied().unwrap_or(labels::NOTHING);
        comparison.record(format_args!("{side} capability {path}"), table, schema);
    }
}

/// An object such as `tasks.requests` that only groups rows has no row itself.
fn only_leads_to_a_row(side: Side, path: &str) -> bool {
    let below = format!("{path}.");
    Capability::parse(side, path).is_none()
        && Capability::of(side).any(|row| row.path().starts_with(&below))
}

fn is_in_schema(presence: Presence) -> bool {
    match presence {
        Presence::Defined | Presence::Deprecated => true,
        Presence::Undefined | Presence::Removed | Presence::Implied | Presence::Tolerated => false,
    }
}

/// Shape in the terms of a schema. Both kinds of map are the same there: the schemas require objects
/// where some peers write booleans.
fn written(shape: Shape) -> &'static str {
    match shape {
        Shape::Object => "object",
        Shape::Flag => "boolean",
        Shape::OpenMap | Shape::SettingsMap => "map of objects",
    }
}

fn collect(
    schema: &Schema,
    object: &Value,
    parent: &str,
    paths: &mut BTreeMap<String, &'static str>,
) {
    let properties = object.get("properties").and_then(Value::as_object);
    for (name, value) in properties.into_iter().flat_map(Map::iter) {
        let path = if parent.is_empty() {
            name.clone()
        } else {
            format!("{parent}.{name}")
        };
        let value = schema.resolve(value);
        collect(schema, value, &path, paths);
        paths.insert(path, shape_of(schema, value));
    }
}

fn shape_of(schema: &Schema, value: &Value) -> &'static str {
    let is_object = |value: &Value| value.get("type").is_some_and(|t| t == "object");
    let values = value
        .get("additionalProperties")
        .map(|values| schema.resolve(values));
    match value.get("type").and_then(Value::as_str) {
        Some("boolean") => "boolean",
        Some("object") if values.is_some_and(is_object) => "map of objects",
        Some("object") => "object",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    const CLIENT: &str = r##""experimental": {"type": "object", "additionalProperties": {"$ref": "#/$defs/JSONObject"}},
        "sampling": {"type": "object", "additionalProperties": true}"##;
    const LIST_CHANGED: &str =
        r#"{"type": "object", "properties": {"listChanged": {"type": "boolean"}}}"#;

    fn differing(roots: &str, extra: &str) -> Vec<String> {
        let text = format!(
            r##"{{"$defs": {{
                "JSONObject": {{"type": "object", "additionalProperties": {{"$ref": "#/$defs/JSONValue"}}}},
                "ClientCapabilities": {{"properties": {{{CLIENT}, "roots": {roots}{extra}}}}}
            }}}}"##
        );
        let mut comparison = Comparison::new(Revision::V2024_11_05);
        compare(&mut comparison, &Schema::parse(&text).unwrap());
        let names = comparison
            .differing()
            .into_iter()
            .filter(|name| name.starts_with("client"));
        names.map(str::to_owned).collect()
    }

    /// N34: the table of capabilities is held against the official schema.
    #[test]
    fn paths_of_both_sides_are_compared() {
        assert!(differing(LIST_CHANGED, "").is_empty());
        assert_eq!(
            differing(r#"{"type": "object"}"#, ""),
            ["client capability roots.listChanged"]
        );
        let extra = r#", "elicitation": {"type": "object"}, "dreams": {"type": "object"}"#;
        let found = differing(LIST_CHANGED, extra);
        assert_eq!(
            found,
            ["client capability dreams", "client capability elicitation"]
        );
    }

    #[test]
    fn shapes_are_compared() {
        let object = r#"{"type": "object", "properties": {"listChanged": {"type": "object"}}}"#;
        assert_eq!(
            differing(object, ""),
            ["client capability roots.listChanged"]
        );
    }

    #[test]
    fn objects_that_only_group_rows_are_no_difference() {
        let groups =
            r#", "tasks": {"type": "object", "properties": {"requests": {"type": "object"}}}"#;
        assert_eq!(differing(LIST_CHANGED, groups), ["client capability tasks"]);
    }
}
