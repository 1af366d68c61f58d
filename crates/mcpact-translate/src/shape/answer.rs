//! Results of a client for a server of another revision.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{ContentKind, Feature, Method, Object, Revision};
use mcpact_wire::raw::{self, JsonKind};

use super::content::text_block;
use super::members::{Members, each_element, or_same, trim};
use super::{ShapeError, Unrepresentable, sampling};

/// A client's answer for a server that speaks the revision `to`.
///
/// Members that `to` took away go as well as those that it does not have yet. Answers to methods
/// that only a server answers come back as they are, and so does what a server asks that should not know the
/// method: it saw that the client can be asked before there was an agreement, and knows what it asks.
///
/// # Errors
/// The answer is malformed, or `to` has no way to say it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a client answers nothing else that differs"
)]
pub fn adapt_client_result(
    method: Method,
    raw: &str,
    to: Revision,
) -> Result<Cow<'_, str>, ShapeError> {
    let adapted = match method {
        Method::SamplingCreateMessage => adapt_sampled(raw, to)?,
        Method::ElicitationCreate if to.has(Feature::ElicitationForm) => {
            let mut answer = Members::of_body(raw)?;
            answer.trim(Object::ElicitResult, to);
            answer.finish()
        }
        Method::RootsList => {
            let mut answer = Members::of_body(raw)?;
            answer.trim(Object::ListRootsResult, to);
            answer.rewrite("roots", |raw| {
                each_element(raw, |raw| trim(raw, Object::Root, to))
            })?;
            answer.finish()
        }
        _ => None,
    };
    Ok(or_same(adapted, raw))
}

fn adapt_sampled(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    let mut answer = Members::of_body(raw)?;
    if !to.has(Feature::SamplingTools) {
        answer.rewrite("content", |raw| one_block(raw, to))?;
    }
    answer.rewrite("content", |raw| sampling::adapt_content(raw, to))?;
    Ok(answer.finish())
}

/// The only block of an array, or the text of all of them.
fn one_block(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Array {
        return Ok(None);
    }
    let blocks = raw::elements(raw)?;
    if let [block] = blocks.as_slice() {
        return Ok(Some(String::from(*block)));
    }
    let mut texts = Vec::new();
    for block in blocks {
        let text = text_of(block)?.ok_or(Unrepresentable::SampledBlocks.to(to))?;
        texts.push(text);
    }
    Ok(Some(text_block(&texts.join("\n"), None)))
}

fn text_of(block: &str) -> Result<Option<String>, ShapeError> {
    let Some(block) = Members::of_value(block)? else {
        return Ok(None);
    };
    let is_text = block.get_str("type").as_deref() == Some(ContentKind::Text.as_str());
    let text = block.get_str("text").filter(|_| is_text);
    Ok(text.map(Cow::into_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    /// BB-28: an array of one block is that block where there are no arrays.
    #[test]
    fn answers_follow_the_revision() {
        let sampled = Method::SamplingCreateMessage;
        let image = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":""}]}"#;
        let cells = [
            (
                "one block",
                sampled,
                r#"{"role":"assistant","content":[{"type":"image","data":""}]}"#,
                V2025_06_18,
                Ok(r#"{"role":"assistant","content":{"type":"image","data":""}}"#),
            ),
            (
                "several texts",
                sampled,
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                V2025_06_18,
                Ok(r#"{"content":{"type":"text","text":"a\nb"}}"#),
            ),
            (
                "several blocks",
                sampled,
                image,
                V2025_06_18,
                Err(Unrepresentable::SampledBlocks.to(V2025_06_18)),
            ),
            (
                "several blocks are known",
                sampled,
                image,
                V2025_11_25,
                Ok(image),
            ),
            (
                "the use of a tool",
                sampled,
                r#"{"content":[{"type":"tool_use","id":"1"}]}"#,
                V2025_06_18,
                Err(Unrepresentable::SamplingTools.to(V2025_06_18)),
            ),
            (
                "roots",
                Method::RootsList,
                r#"{"roots":[{"uri":"file:///","_meta":{}}]}"#,
                V2025_03_26,
                Ok(r#"{"roots":[{"uri":"file:///"}]}"#),
            ),
            (
                "an embedded answer has no meta",
                Method::ElicitationCreate,
                r#"{"action":"accept","_meta":{}}"#,
                V2026_07_28,
                Ok(r#"{"action":"accept"}"#),
            ),
            (
                "a server that should not have asked",
                Method::ElicitationCreate,
                r#"{"action":"accept","content":{"v":1}}"#,
                V2024_11_05,
                Ok(r#"{"action":"accept","content":{"v":1}}"#),
            ),
            ("others", Method::Ping, "{ }", V2025_03_26, Ok("{ }")),
        ];
        for (name, method, raw, to, expected) in cells {
            let adapted = adapt_client_result(method, raw, to);
            assert_eq!(adapted.as_deref().map_err(|e| *e), expected, "{name}");
        }
    }
}
