//! A content block of a tool result, a prompt or a sampling message.
//!
//! The kinds are closed unions: a client that meets an unknown one may refuse the whole result. So
//! a block of a kind that the revision does not have becomes one that it has, never nothing.

use alloc::format;
use alloc::string::String;

use mcpact_spec::{ContentKind, Object, Revision};
use mcpact_wire::raw::ObjectWriter;

use super::members::{Members, trim};
use super::{ShapeError, list_items};

/// Position of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentPosition {
    /// In the result of a tool.
    ToolResult,
    /// In a message of a prompt.
    Prompt,
    /// In a message of a sampling request or of its answer.
    Sampling,
}

impl ContentPosition {
    fn admits(self, kind: ContentKind, to: Revision) -> bool {
        match self {
            Self::ToolResult | Self::Prompt => kind.in_blocks(to),
            Self::Sampling => kind.in_sampling(to),
        }
    }
}

/// A block for a peer of another revision.
pub(super) fn adapt(
    raw: &str,
    place: ContentPosition,
    to: Revision,
) -> Result<Option<String>, ShapeError> {
    let block = Members::of_value(raw)?;
    block.map_or(Ok(None), |block| adapt_block(block, place, to))
}

/// The same for one that came apart already.
pub(super) fn adapt_block(
    mut block: Members<'_>,
    place: ContentPosition,
    to: Revision,
) -> Result<Option<String>, ShapeError> {
    let Some(name) = block.get_str("type").map(|name| name.into_owned()) else {
        return Ok(None);
    };
    block.rewrite("annotations", |raw| trim(raw, Object::Annotations, to))?;
    match ContentKind::parse(&name) {
        Some(kind) if place.admits(kind, to) => {
            block.trim(kind.object(), to);
            if kind == ContentKind::Resource {
                block.rewrite("resource", |raw| list_items::adapt_contents(raw, to))?;
            }
            Ok(block.finish())
        }
        kind => Ok(Some(substitute(&block, kind, &name, place))),
    }
}

/// A text block, with the annotations of the block that it stands for.
pub(super) fn text_block(text: &str, annotations: Option<&str>) -> String {
    ObjectWriter::new()
        .text("type", ContentKind::Text.as_str())
        .text("text", text)
        .maybe_raw("annotations", annotations)
        .finish()
}

fn substitute(
    block: &Members<'_>,
    kind: Option<ContentKind>,
    name: &str,
    place: ContentPosition,
) -> String {
    let data = block.get_str("data");
    let note = match (kind, data) {
        (Some(ContentKind::Audio), Some(data)) if place == ContentPosition::ToolResult => {
            return embedded_audio(block, &data);
        }
        (Some(ContentKind::Audio), _) => audio_note(block),
        (Some(ContentKind::ResourceLink), _) => link_text(block),
        (Some(_) | None, _) => format!("[content of type {name}]"),
    };
    text_block(&note, block.get_present("annotations"))
}

fn embedded_audio(block: &Members<'_>, data: &str) -> String {
    let resource = ObjectWriter::new()
        .text(
            "uri",
            &format!("mcpact://content/{:016x}", fingerprint(data)),
        )
        .maybe_raw("mimeType", block.get_raw_str("mimeType"))
        .maybe_raw("blob", block.get_raw_str("data"))
        .finish();
    ObjectWriter::new()
        .text("type", ContentKind::Resource.as_str())
        .raw("resource", &resource)
        .maybe_raw("annotations", block.get_present("annotations"))
        .finish()
}

/// A name that the same content always gets (FNV-1a); it identifies, it does not protect.
fn fingerprint(data: &str) -> u64 {
    data.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn audio_note(block: &Members<'_>) -> String {
    let mime = block.get_str("mimeType").unwrap_or_default();
    let data = block.get_str("data").unwrap_or_default();
    let bytes =
        data.trim_end_matches('=').len() / 4 * 3 + data.trim_end_matches('=').len() % 4 * 3 / 4;
    let space = if mime.is_empty() { "" } else { " " };
    format!("[audio{space}{mime}, {bytes} bytes]")
}

fn link_text(block: &Members<'_>) -> String {
    let uri = block.get_str("uri").unwrap_or_default();
    let title = block.get_str("title").filter(|title| !title.is_empty());
    let label = title.or_else(|| block.get_str("name"));
    let link = format!("[{}]({uri})", label.as_deref().unwrap_or(&uri));
    match block.get_str("description") {
        Some(description) if !description.is_empty() => format!("{link} {description}"),
        Some(_) | None => link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentPosition::{Prompt, Sampling, ToolResult};
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

    const AUDIO: &str = r#"{"type":"audio","data":"AAA=","mimeType":"audio/wav","annotations":{"priority":1,"lastModified":"d"},"_meta":{}}"#;
    const LINK: &str = r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"A","description":"first","icons":[]}"#;

    /// XR-01, XR-02: no block of an unknown kind arrives, and none is lost.
    #[test]
    fn blocks_become_what_the_revision_has() {
        let cells = [
            (
                "audio becomes a resource",
                AUDIO,
                ToolResult,
                V2024_11_05,
                r#"{"type":"resource","resource":{"uri":"mcpact://content/8943de8b9f3489cd","mimeType":"audio/wav","blob":"AAA="},"annotations":{"priority":1}}"#,
            ),
            (
                "audio in a prompt becomes a note",
                AUDIO,
                Prompt,
                V2024_11_05,
                r#"{"type":"text","text":"[audio audio/wav, 2 bytes]","annotations":{"priority":1}}"#,
            ),
            (
                "audio is known",
                AUDIO,
                Sampling,
                V2025_03_26,
                r#"{"type":"audio","data":"AAA=","mimeType":"audio/wav","annotations":{"priority":1}}"#,
            ),
            (
                "audio with all members",
                AUDIO,
                ToolResult,
                V2025_06_18,
                AUDIO,
            ),
            (
                "audio without data",
                r#"{"type":"audio"}"#,
                ToolResult,
                V2024_11_05,
                r#"{"type":"text","text":"[audio, 0 bytes]"}"#,
            ),
            (
                "link becomes text",
                LINK,
                ToolResult,
                V2025_03_26,
                r#"{"type":"text","text":"[A](file:///a) first"}"#,
            ),
            (
                "link without title or description",
                r#"{"type":"resource_link","uri":"u","name":"n"}"#,
                Prompt,
                V2024_11_05,
                r#"{"type":"text","text":"[n](u)"}"#,
            ),
            (
                "link without icons",
                LINK,
                ToolResult,
                V2025_06_18,
                r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"A","description":"first"}"#,
            ),
            ("link is known", LINK, ToolResult, V2025_11_25, LINK),
            (
                "embedded contents lose meta",
                r#"{"type":"resource","resource":{"uri":"u","text":"t","_meta":{}},"_meta":{}}"#,
                ToolResult,
                V2025_03_26,
                r#"{"type":"resource","resource":{"uri":"u","text":"t"}}"#,
            ),
            (
                "an unknown kind",
                r#"{"type":"hologram","x":1}"#,
                ToolResult,
                V2025_11_25,
                r#"{"type":"text","text":"[content of type hologram]"}"#,
            ),
            (
                "a kind of another place",
                r#"{"type":"tool_use","id":"1"}"#,
                ToolResult,
                V2025_11_25,
                r#"{"type":"text","text":"[content of type tool_use]"}"#,
            ),
            (
                "no kind",
                r#"{"x":1}"#,
                ToolResult,
                V2024_11_05,
                r#"{"x":1}"#,
            ),
            ("no block", "[1]", ToolResult, V2024_11_05, "[1]"),
        ];
        for (name, raw, place, to, expected) in cells {
            let adapted = adapt(raw, place, to).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{name}");
        }
    }
}
