//! Optional parts of a result: cursor, cache hints, input request.

use mcpact_spec::{Feature, Method};
use serde_json::Value;

use super::comparison::{Comparison, yes_no};
use super::schema::{Schema, method_name, reference};

const REQUESTS: [&str; 3] = ["ClientRequest", "ServerRequest", "InputRequest"];

/// Compares the results of every request that the schema defines.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    let mut requests: Vec<_> = REQUESTS
        .iter()
        .flat_map(|union| schema.members(union))
        .collect();
    requests.sort_by_key(|(name, _)| *name);
    requests.dedup_by_key(|(name, _)| *name);
    for (name, request) in requests {
        let method = method_name(request).and_then(Method::parse);
        if let (Some(method), Some(stem)) = (method, name.strip_suffix("Request")) {
            compare_result(comparison, schema, method, stem);
        }
    }
}

/// The schemas name the result of `FooRequest` `FooResult`, and its envelope `FooResultResponse`.
fn compare_result(comparison: &mut Comparison, schema: &Schema, method: Method, stem: &str) {
    let revision = comparison.revision();
    let carries = |member: &str| yes_no(schema.has(&format!("{stem}Result/properties/{member}")));
    let cacheable = method.is_cacheable() && revision.has(Feature::CacheHints);
    let asks = method.may_ask_for_input() && revision.has(Feature::MultiRoundTrip);
    comparison.record(
        format_args!("pages of {method}"),
        yes_no(method.is_paginated()),
        carries("nextCursor"),
    );
    comparison.record(
        format_args!("cache hints of {method}"),
        yes_no(cacheable),
        carries("ttlMs"),
    );
    comparison.record(
        format_args!("input_required from {method}"),
        yes_no(asks),
        yes_no(may_ask(schema, stem)),
    );
}

fn may_ask(schema: &Schema, stem: &str) -> bool {
    let answers = schema
        .definition(&format!("{stem}ResultResponse"))
        .and_then(|response| response.pointer("/properties/result/anyOf"))
        .and_then(Value::as_array);
    answers
        .into_iter()
        .flatten()
        .any(|answer| reference(answer) == Some("InputRequiredResult"))
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    fn differing(result: &str, response: &str) -> Vec<String> {
        let text = format!(
            r##"{{"$defs": {{
                "ClientRequest": {{"anyOf": [{{"$ref": "#/$defs/ReadResourceRequest"}}]}},
                "ReadResourceRequest": {{"properties": {{"method": {{"const": "resources/read"}}}}}},
                "ReadResourceResult": {{"properties": {result}}},
                "ReadResourceResultResponse": {{"properties": {{"result": {response}}}}}
            }}}}"##
        );
        let mut comparison = Comparison::new(Revision::V2026_07_28);
        compare(&mut comparison, &Schema::parse(&text).unwrap());
        assert_eq!(comparison.facts(), 3);
        comparison
            .differing()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn pages_cache_hints_and_questions_are_compared() {
        let asks = r##"{"anyOf": [{"$ref": "#/$defs/InputRequiredResult"}]}"##;
        assert!(differing(r#"{"ttlMs": {}}"#, asks).is_empty());
        assert_eq!(
            differing(r#"{"nextCursor": {}}"#, "{}"),
            [
                "pages of resources/read",
                "cache hints of resources/read",
                "input_required from resources/read"
            ],
        );
    }
}
