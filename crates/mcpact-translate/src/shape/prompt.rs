//! A prompt in a list, and a message of a prompt.

use alloc::string::String;

use mcpact_spec::{Object, Revision};

use super::content::{self, ContentPosition};
use super::members::{each_element, edit, trim};
use super::shape_error::ShapeError;

/// A prompt in a list.
pub(super) fn adapt(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |prompt| {
        prompt.trim(Object::Prompt, to);
        prompt.rewrite("arguments", |raw| {
            each_element(raw, |argument| trim(argument, Object::PromptArgument, to))
        })
    })
}

/// A message of a prompt.
pub(super) fn adapt_message(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |message| {
        message.rewrite("content", |raw| {
            content::adapt(raw, ContentPosition::Prompt, to)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

    #[test]
    fn members_follow_the_revision() {
        let raw = r#"{"name":"p","title":"P","icons":[],"arguments":[{"name":"a","title":"A"},7],"_meta":{}}"#;
        let cells = [
            (V2024_11_05, r#"{"name":"p","arguments":[{"name":"a"},7]}"#),
            (V2025_03_26, r#"{"name":"p","arguments":[{"name":"a"},7]}"#),
            (
                V2025_06_18,
                r#"{"name":"p","title":"P","arguments":[{"name":"a","title":"A"},7],"_meta":{}}"#,
            ),
            (V2025_11_25, raw),
        ];
        for (to, expected) in cells {
            let adapted = adapt(raw, to).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{to}");
        }
    }

    #[test]
    fn audio_in_a_message_becomes_a_note() {
        let raw =
            r#"{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}"#;
        assert_eq!(
            adapt_message(raw, V2024_11_05).unwrap().as_deref(),
            Some(
                r#"{"role":"user","content":{"type":"text","text":"[audio audio/wav, 3 bytes]"}}"#
            )
        );
        assert_eq!(adapt_message(raw, V2025_03_26).unwrap(), None);
    }
}
