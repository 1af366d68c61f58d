//! A conversation that the client's model shall continue.

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::sampling_rule::{self, Block, Speaker};
use mcpact_spec::{ContentKind, Feature, Object, Revision};
use mcpact_wire::raw::{self, JsonKind};

use super::content::{self, ContentPosition};
use super::members::{Members, array, each_element};
use super::{ShapeError, Unrepresentable, structured};

/// The parameters of `sampling/createMessage` for a client of another revision.
pub(super) fn adapt(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    let mut params = Members::of_body(raw)?;
    let has_tools = ["tools", "toolChoice"]
        .iter()
        .any(|key| params.get_present(key).is_some());
    if has_tools && !to.has(Feature::SamplingTools) {
        return Err(Unrepresentable::SamplingTools.to(to));
    }
    if to.has(Feature::SamplingTools) {
        check_tool_messages(params.get("messages").unwrap_or("[]"))?;
    }
    params.trim(Object::CreateMessageRequestParams, to);
    match params.get("includeContext") {
        Some("true") => params.set_str("includeContext", "thisServer"),
        Some("false") => params.set_str("includeContext", "none"),
        Some(_) | None => {}
    }
    params.rewrite("messages", |raw| adapt_messages(raw, to))?;
    Ok(params.finish())
}

fn check_tool_messages(messages: &str) -> Result<(), ShapeError> {
    if JsonKind::of(messages) != JsonKind::Array {
        return Ok(());
    }
    let messages = raw::objects(messages)?.into_iter().map(|(_, message)| {
        let message = message.unwrap_or_default();
        let speaker = match message.get_str("role").as_deref() {
            Some("user") => Speaker::User,
            Some("assistant") => Speaker::Assistant,
            Some(_) | None => Speaker::Unknown,
        };
        (speaker, blocks(message.get("content").unwrap_or("null")))
    });
    sampling_rule::check(messages).map_err(ShapeError::ToolMessages)
}

fn blocks(content: &str) -> Vec<Block<'_>> {
    let blocks = match JsonKind::of(content) == JsonKind::Array {
        true => raw::elements(content).unwrap_or_default(),
        false => Vec::from([content]),
    };
    let block = |raw| {
        let block = raw::Object::parse(raw).unwrap_or_default();
        let id = |key| block.get_str(key).unwrap_or_default();
        match block
            .get_str("type")
            .and_then(|name| ContentKind::parse(&name))
        {
            Some(ContentKind::ToolUse) => Block::ToolUse(id("id")),
            Some(ContentKind::ToolResult) => Block::ToolResult(id("toolUseId")),
            Some(_) | None => Block::Other,
        }
    };
    blocks.into_iter().map(block).collect()
}

fn adapt_messages(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Array {
        return Ok(None);
    }
    let mut changed = false;
    let mut messages = Vec::new();
    for message in raw::elements(raw)? {
        match adapt_message(message, to)? {
            Some(several) => {
                changed = true;
                messages.extend(several);
            }
            None => messages.push(String::from(message)),
        }
    }
    Ok(changed.then(|| array(messages.iter().map(String::as_str))))
}

/// The messages that one message becomes; none when it stays as it is.
fn adapt_message(raw: &str, to: Revision) -> Result<Option<Vec<String>>, ShapeError> {
    let Some(mut message) = Members::of_value(raw)? else {
        return Ok(None);
    };
    let content = message.get("content").unwrap_or("null");
    if JsonKind::of(content) == JsonKind::Array && !to.has(Feature::SamplingTools) {
        return split(raw, content, to).map(Some);
    }
    message.trim(Object::SamplingMessage, to);
    message.rewrite("content", |raw| adapt_content(raw, to))?;
    Ok(message.finish().map(|message| Vec::from([message])))
}

/// Content of one block or of several.
pub(super) fn adapt_content(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) == JsonKind::Array {
        return each_element(raw, |raw| adapt_block(raw, to));
    }
    adapt_block(raw, to)
}

/// Splits a message with several blocks into messages of the same role.
fn split(raw: &str, content: &str, to: Revision) -> Result<Vec<String>, ShapeError> {
    let mut messages = Vec::new();
    for block in raw::elements(content)? {
        let mut message = Members::of_body(raw)?;
        message.trim(Object::SamplingMessage, to);
        let adapted = adapt_block(block, to)?;
        message.set("content", adapted.unwrap_or_else(|| String::from(block)));
        messages.extend(message.finish());
    }
    Ok(messages)
}

fn adapt_block(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    let Some(mut block) = Members::of_value(raw)? else {
        return Ok(None);
    };
    let kind = block
        .get_str("type")
        .and_then(|name| ContentKind::parse(&name));
    match kind {
        Some(kind @ (ContentKind::ToolUse | ContentKind::ToolResult)) if !kind.in_sampling(to) => {
            Err(Unrepresentable::SamplingTools.to(to))
        }
        Some(ContentKind::ToolResult) => {
            block.rewrite("content", |raw| {
                each_element(raw, |raw| {
                    content::adapt(raw, ContentPosition::ToolResult, to)
                })
            })?;
            if !to.has(Feature::AnyStructuredContent) {
                structured::wrap(&mut block);
            }
            Ok(block.finish())
        }
        Some(_) | None => content::adapt(raw, ContentPosition::Sampling, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
    use mcpact_engine::sampling_rule::ToolMessageError;

    const TWO: &str = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"_meta":{}}],"maxTokens":9}"#;
    const RESULT: &str = r#"{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":[1]}]}]}"#;

    /// XR-11: several blocks become several messages, in order, of the same role.
    #[test]
    fn messages_follow_the_revision() {
        let cells = [
            (
                "split",
                TWO,
                V2025_06_18,
                Ok(Some(
                    r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"b"}}],"maxTokens":9}"#,
                )),
            ),
            ("kept together", TWO, V2025_11_25, Ok(None)),
            (
                "audio becomes a note",
                r#"{"messages":[{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"a/b"}}]}"#,
                V2024_11_05,
                Ok(Some(
                    r#"{"messages":[{"role":"user","content":{"type":"text","text":"[audio a/b, 3 bytes]"}}]}"#,
                )),
            ),
            (
                "tools",
                r#"{"messages":[],"tools":[]}"#,
                V2025_06_18,
                Err(Unrepresentable::SamplingTools.to(V2025_06_18)),
            ),
            (
                "a choice among tools",
                r#"{"toolChoice":{}}"#,
                V2025_03_26,
                Err(Unrepresentable::SamplingTools.to(V2025_03_26)),
            ),
            (
                "the result of a tool",
                RESULT,
                V2025_06_18,
                Err(Unrepresentable::SamplingTools.to(V2025_06_18)),
            ),
            (
                "the result of a tool is wrapped",
                RESULT,
                V2025_11_25,
                Ok(Some(
                    r#"{"messages":[{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":{"result":[1]}}]}]}"#,
                )),
            ),
            (
                "a result without its call",
                r#"{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[]}}]}"#,
                V2025_11_25,
                Err(ShapeError::ToolMessages(ToolMessageError::Unmatched)),
            ),
            (
                "context as a boolean",
                r#"{"messages":[],"includeContext":true}"#,
                V2025_11_25,
                Ok(Some(r#"{"messages":[],"includeContext":"thisServer"}"#)),
            ),
            (
                "no context as a boolean",
                r#"{"messages":[],"includeContext":false}"#,
                V2024_11_05,
                Ok(Some(r#"{"messages":[],"includeContext":"none"}"#)),
            ),
            (
                "strange messages",
                r#"{"messages":[7,{"content":8}]}"#,
                V2024_11_05,
                Ok(None),
            ),
        ];
        for (name, raw, to, expected) in cells {
            let adapted = adapt(raw, to);
            assert_eq!(
                adapted.as_ref().map(Option::as_deref).map_err(|e| *e),
                expected,
                "{name}"
            );
        }
    }
}
