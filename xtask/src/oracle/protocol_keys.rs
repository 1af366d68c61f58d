//! Keys of params and results.

use mcpact_spec::{Method, ProtocolKeys};
use serde_json::{Map, Value};

use super::comparison::{Comparison, yes_no};
use super::schema::{Schema, method_name, parts};

/// Checks that the tables have every key of a schema. They may have more, because they hold for all revisions.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    for (name, request) in schema.members("ClientRequest") {
        let method = method_name(request).and_then(Method::parse);
        let Some(method) = method else {
            continue;
        };
        let params = parts(request).find_map(|part| part.pointer("/properties/params"));
        if let Some(params) = params {
            let what = format!("params of {method}");
            compare_keys(
                comparison,
                &what,
                method.param_keys(),
                schema.resolve(params),
            );
        }
        let stem = name.strip_suffix("Request").unwrap_or(name);
        if let Some(result) = schema.definition(&format!("{stem}Result")) {
            let what = format!("result of {method}");
            compare_keys(comparison, &what, method.result_keys(), result);
        }
    }
}

fn compare_keys(comparison: &mut Comparison, what: &str, keys: &ProtocolKeys, object: &Value) {
    for part in parts(object) {
        let properties = part.get("properties").and_then(Value::as_object);
        for key in properties.into_iter().flat_map(Map::keys) {
            let is_known = yes_no(keys.find(key).is_some());
            comparison.record(format_args!("{what}: key {key}"), is_known, yes_no(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    #[test]
    fn unknown_keys_are_found_in_params_and_results() {
        let text = r##"{"$defs": {
            "ClientRequest": {"anyOf": [{"$ref": "#/$defs/CallToolRequest"}]},
            "CallToolRequest": {"properties": {
                "method": {"const": "tools/call"},
                "params": {"$ref": "#/$defs/CallToolRequestParams"}
            }},
            "CallToolRequestParams": {"properties": {"name": {}, "newParam": {}}},
            "CallToolResult": {"properties": {"content": {}, "newMember": {}}}
        }}"##;
        let mut comparison = Comparison::new(Revision::V2026_07_28);
        compare(&mut comparison, &Schema::parse(text).unwrap());
        assert_eq!(comparison.facts(), 4);
        assert_eq!(
            comparison.differing(),
            [
                "params of tools/call: key newParam",
                "result of tools/call: key newMember"
            ],
        );
    }
}
