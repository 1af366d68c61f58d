//! Error codes that a schema fixes as constants.

use std::collections::BTreeSet;

use mcpact_spec::ErrorCode;
use serde_json::Value;

use super::comparison::{Comparison, yes_no};
use super::schema::Schema;

/// Compares the codes as far as the schema names them.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    let mut constants = BTreeSet::new();
    for (_, definition) in schema.definitions() {
        collect(definition, &mut constants);
    }
    let known = ErrorCode::ALL.iter().map(|code| code.code());
    let codes: BTreeSet<i64> = known.chain(constants.iter().copied()).collect();
    for code in codes {
        let emitted =
            ErrorCode::parse(code).is_some_and(|known| known.emitted_in(comparison.revision()));
        let named = constants.contains(&code);
        if named || !emitted || is_complete(&constants) {
            comparison.record(
                format_args!("error code {code}"),
                yes_no(emitted),
                yes_no(named),
            );
        }
    }
}

/// Only a schema that names the codes of JSON-RPC itself names all its codes; in the others most
/// codes live in the prose, so that a missing constant says nothing.
fn is_complete(constants: &BTreeSet<i64>) -> bool {
    constants.contains(&ErrorCode::InvalidRequest.code())
}

fn collect(value: &Value, constants: &mut BTreeSet<i64>) {
    constants.extend(
        value
            .pointer("/properties/code/const")
            .and_then(Value::as_i64),
    );
    match value {
        Value::Object(members) => members.values().for_each(|v| collect(v, constants)),
        Value::Array(items) => items.iter().for_each(|v| collect(v, constants)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    fn differing(revision: Revision, codes: &[i64]) -> Vec<String> {
        let definitions: Vec<String> = codes
            .iter()
            .map(|code| {
                format!(
                    r#""E{code}": {{"allOf": [{{"properties": {{"code": {{"const": {code}}}}}}}]}}"#
                )
            })
            .collect();
        let text = format!(r#"{{"$defs": {{{}}}}}"#, definitions.join(","));
        let mut comparison = Comparison::new(revision);
        compare(&mut comparison, &Schema::parse(&text).unwrap());
        comparison
            .differing()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_constant_must_be_a_code_that_is_sent() {
        assert!(differing(Revision::V2025_11_25, &[-32042]).is_empty());
        assert_eq!(
            differing(Revision::V2025_06_18, &[-32042]),
            ["error code -32042"]
        );
        assert_eq!(differing(Revision::V2025_11_25, &[-5]), ["error code -5"]);
    }

    #[test]
    fn a_missing_constant_counts_in_a_complete_schema_only() {
        let most = [-32700, -32600, -32601, -32602, -32603, -32020, -32021];
        assert_eq!(
            differing(Revision::V2026_07_28, &most),
            ["error code -32022"]
        );
    }
}
