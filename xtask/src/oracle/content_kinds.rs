//! Kinds of content blocks in results and messages.

use mcpact_spec::ContentKind;
use serde_json::Value;

use super::comparison::{Comparison, yes_no};
use super::schema::{Schema, reference};

/// Compares the blocks of tool results, prompt messages and sampling messages.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    let revision = comparison.revision();
    for kind in ContentKind::ALL {
        let places = [
            (
                "CallToolResult/properties/content/items",
                kind.in_blocks(revision),
            ),
            ("PromptMessage/properties/content", kind.in_blocks(revision)),
            (
                "SamplingMessage/properties/content",
                kind.in_sampling(revision),
            ),
        ];
        for (place, table) in places {
            let shown = schema
                .find(place)
                .is_some_and(|value| holds(schema, value, kind.object().name()));
            let name = place.split('/').next().unwrap_or(place);
            comparison.record(
                format_args!("content kind {} in {name}", kind.as_str()),
                yes_no(table),
                yes_no(shown),
            );
        }
    }
}

/// Returns `true` if a union, or its target, contains the definition.
fn holds(schema: &Schema, value: &Value, name: &str) -> bool {
    if reference(value) == Some(name) {
        return true;
    }
    let members = schema.resolve(value).get("anyOf").and_then(Value::as_array);
    members
        .into_iter()
        .flatten()
        .any(|member| reference(member) == Some(name))
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    #[test]
    fn kinds_are_found_through_a_union_with_or_without_a_name() {
        let text = r##"{"$defs": {
            "ContentBlock": {"anyOf": [{"$ref": "#/$defs/TextContent"}, {"$ref": "#/$defs/ImageContent"}]},
            "CallToolResult": {"properties": {"content": {"items": {"$ref": "#/$defs/ContentBlock"}}}},
            "PromptMessage": {"properties": {"content": {"anyOf": [
                {"$ref": "#/$defs/TextContent"}, {"$ref": "#/$defs/ImageContent"},
                {"$ref": "#/$defs/EmbeddedResource"}, {"$ref": "#/$defs/AudioContent"}]}}},
            "SamplingMessage": {"properties": {"content": {"anyOf": [
                {"$ref": "#/$defs/TextContent"}, {"$ref": "#/$defs/ImageContent"}]}}}
        }}"##;
        let mut comparison = Comparison::new(Revision::V2024_11_05);
        compare(&mut comparison, &Schema::parse(text).unwrap());
        assert_eq!(
            comparison.differing(),
            [
                "content kind audio in PromptMessage",
                "content kind resource in CallToolResult"
            ]
        );
    }
}
