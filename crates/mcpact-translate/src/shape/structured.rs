//! `structuredContent` toward revisions that do not have it, or have it for objects only.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{ContentKind, Feature, Revision};
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, compact, elements};
use mcpact_wire::scan::check;

use super::ShapeError;
use super::content::text_block;
use super::members::{Members, array};
use super::output_schema::WRAPPER;

const MEMBER: &str = "structuredContent";

/// Makes sure that the client can read the content: as text if it knows no other way, wrapped in
/// an object if it knows only objects.
pub(super) fn adapt(result: &mut Members<'_>, to: Revision) -> Result<(), ShapeError> {
    if to.has(Feature::AnyStructuredContent) {
        return Ok(());
    }
    let Some(value) = result.get(MEMBER).map(ToOwned::to_owned) else {
        return Ok(());
    };
    if !to.has(Feature::StructuredOutput) {
        say_as_text(result, &value)?;
        result.remove(MEMBER);
    } else if JsonKind::of(&value) != JsonKind::Object {
        // Who made the schema did not think of a wrapper, and its model may not either.
        say_as_text(result, &value)?;
        wrap(result);
    }
    Ok(())
}

/// Content that is not an object becomes the one member of an object.
pub(super) fn wrap(holder: &mut Members<'_>) {
    let Some(value) = holder.get(MEMBER) else {
        return;
    };
    if JsonKind::of(value) != JsonKind::Object {
        let wrapped = ObjectWriter::new().raw(WRAPPER, value).finish();
        holder.set(MEMBER, wrapped);
    }
}

/// 2025-06-18 server/tools#structured-content: the serialized JSON should also be a text block;
/// where the server left that out, it is made up for.
fn say_as_text(result: &mut Members<'_>, value: &str) -> Result<(), ShapeError> {
    let content = result.get_present("content").unwrap_or("[]");
    if JsonKind::of(content) != JsonKind::Array {
        return Ok(());
    }
    let blocks = elements(content)?;
    let value_alone = compact(value);
    if blocks.iter().any(|block| carries(block, &value_alone)) {
        return Ok(());
    }
    let text = text_block(value, None);
    let mut all: Vec<&str> = blocks;
    all.push(&text);
    let content: String = array(all);
    result.set("content", content);
    Ok(())
}

fn carries(block: &str, compact_value: &str) -> bool {
    let Ok(block) = Object::parse(block) else {
        return false;
    };
    let is_text = block.get_str("type").as_deref() == Some(ContentKind::Text.as_str());
    let text = block.get_str("text").filter(|_| is_text);
    text.is_some_and(|text| check(&text).is_ok() && compact(&text) == compact_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    /// XR-03, BA-20: what only the structured content says, or says in another form, is said in
    /// text.
    #[test]
    fn content_stays_readable() {
        let cells = [
            (
                "no text",
                r#"{"content":[],"structuredContent":{"a": 1}}"#,
                V2024_11_05,
                r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#,
            ),
            (
                "another text",
                r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}"#,
                V2025_03_26,
                r#"{"content":[{"type":"text","text":"one"},{"type":"text","text":"{\"a\":1}"}]}"#,
            ),
            (
                "the same text, prettier",
                r#"{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}],"structuredContent":{"a":1}}"#,
                V2025_03_26,
                r#"{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}]}"#,
            ),
            (
                "no content",
                r#"{"structuredContent":[1]}"#,
                V2025_03_26,
                r#"{"content":[{"type":"text","text":"[1]"}]}"#,
            ),
            (
                "an object is known",
                r#"{"content":[],"structuredContent":{"a": 1}}"#,
                V2025_06_18,
                r#"{"content":[],"structuredContent":{"a": 1}}"#,
            ),
            (
                "an array is wrapped",
                r#"{"content":[],"structuredContent":[1, 2]}"#,
                V2025_11_25,
                r#"{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1, 2]}}"#,
            ),
            (
                "null is a value",
                r#"{"content":[],"structuredContent":null}"#,
                V2025_06_18,
                r#"{"content":[{"type":"text","text":"null"}],"structuredContent":{"result":null}}"#,
            ),
            (
                "anything goes",
                r#"{"content":[],"structuredContent":3}"#,
                V2026_07_28,
                r#"{"content":[],"structuredContent":3}"#,
            ),
        ];
        for (name, raw, to, expected) in cells {
            let mut result = Members::of_body(raw).unwrap();
            adapt(&mut result, to).unwrap();
            assert_eq!(
                result.finish().as_deref().unwrap_or(raw),
                expected,
                "{name}"
            );
        }
    }
}
