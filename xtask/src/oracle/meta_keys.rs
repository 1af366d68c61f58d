//! The keys that the protocol reserves in `_meta`.

use std::collections::BTreeSet;

use mcpact_spec::{Feature, Revision, tables::meta};
use serde_json::{Map, Value};

use super::comparison::{Comparison, yes_no};
use super::schema::Schema;

/// Keys of every revision.
const ALWAYS: [&str; 1] = [meta::PROGRESS_TOKEN];

/// Keys of revisions with version and capabilities in every request.
const WITH_REQUEST_META: [&str; 6] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
];

/// Compares the keys that either side knows.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    let mut shown = BTreeSet::new();
    for (name, definition) in schema.definitions() {
        if name.ends_with("MetaObject") {
            shown.extend(property_names(definition));
        }
        collect(definition, &mut shown);
    }
    let expected = expected(comparison.revision());
    for key in expected.union(&shown) {
        let (table, schema) = (expected.contains(key), shown.contains(key));
        comparison.record(
            format_args!("_meta key {key}"),
            yes_no(table),
            yes_no(schema),
        );
    }
}

fn expected(revision: Revision) -> BTreeSet<&'static str> {
    let modern = WITH_REQUEST_META
        .into_iter()
        .filter(|_| revision.has(Feature::RequestMeta));
    ALWAYS.into_iter().chain(modern).collect()
}

/// The older schemas write the object out at every `_meta`.
fn collect<'a>(value: &'a Value, shown: &mut BTreeSet<&'a str>) {
    if let Some(object) = value.pointer("/properties/_meta") {
        shown.extend(property_names(object));
    }
    match value {
        Value::Object(members) => members.values().for_each(|v| collect(v, shown)),
        Value::Array(items) => items.iter().for_each(|v| collect(v, shown)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn property_names(object: &Value) -> impl Iterator<Item = &str> {
    let properties = object.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    #[test]
    fn keys_are_found_where_either_style_writes_them() {
        let text = r#"{"$defs": {
            "Request": {"properties": {"params": {"properties": {"_meta": {"properties": {"progressToken": {}}}}}}},
            "RequestMetaObject": {"properties": {"io.modelcontextprotocol/newKey": {}}}
        }}"#;
        let mut comparison = Comparison::new(Revision::V2025_11_25);
        compare(&mut comparison, &Schema::parse(text).unwrap());
        assert_eq!(
            comparison.differing(),
            ["_meta key io.modelcontextprotocol/newKey"]
        );
    }
}
