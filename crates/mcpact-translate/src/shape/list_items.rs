//! Items of lists: tools, prompts, resources and templates; prompt messages and resource contents.

use alloc::borrow::ToOwned;
use alloc::string::String;

use mcpact_spec::{Feature, Object, Revision};

use super::ShapeError;
use super::content::{self, ContentPosition};
use super::members::{Members, each_element, edit, trim};
use super::output_schema::{self, Fit};

/// A tool for an older client; `inputSchema` is never touched.
pub(super) fn adapt_tool(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |tool| {
        keep_title(tool, to)?;
        tool.trim(Object::Tool, to);
        if to.has(Feature::StructuredOutput) && !to.has(Feature::AnyStructuredContent) {
            fit_output_schema(tool)?;
        }
        Ok(())
    })
}

/// Moves the title into the annotations where tools have no title of their own.
fn keep_title(tool: &mut Members<'_>, to: Revision) -> Result<(), ShapeError> {
    if to.has(Feature::Titles) || !to.has(Feature::ToolAnnotations) {
        return Ok(());
    }
    let Some(title) = tool.get_raw_str("title").map(ToOwned::to_owned) else {
        return Ok(());
    };
    let raw = tool.get_present("annotations").unwrap_or("{}").to_owned();
    let Some(mut annotations) = Members::of_value(&raw)? else {
        return Ok(());
    };
    if annotations.get_raw_str("title").is_none() {
        annotations.set("title", title);
    }
    if let Some(annotations) = annotations.finish() {
        tool.set("annotations", annotations);
    }
    Ok(())
}

fn fit_output_schema(tool: &mut Members<'_>) -> Result<(), ShapeError> {
    let Some(schema) = tool.get("outputSchema") else {
        return Ok(());
    };
    match output_schema::fit(schema)? {
        Fit::AsItIs => {}
        Fit::Wrapped(schema) => tool.set("outputSchema", schema),
        Fit::Never => tool.remove("outputSchema"),
    }
    Ok(())
}

/// A prompt in a list.
pub(super) fn adapt_prompt(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |prompt| {
        prompt.trim(Object::Prompt, to);
        prompt.rewrite("arguments", |raw| {
            each_element(raw, |argument| trim(argument, Object::PromptArgument, to))
        })
    })
}

/// A message of a prompt.
pub(super) fn adapt_prompt_message(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |message| {
        message.rewrite("content", |raw| {
            content::adapt(raw, ContentPosition::Prompt, to)
        })
    })
}

/// A resource or a template in a list.
pub(super) fn adapt_resource(
    raw: &str,
    object: Object,
    to: Revision,
) -> Result<Option<String>, ShapeError> {
    edit(raw, |resource| {
        resource.trim(object, to);
        resource.rewrite("annotations", |raw| trim(raw, Object::Annotations, to))
    })
}

/// Contents of a resource, read or embedded.
pub(super) fn adapt_contents(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |contents| {
        let object = match contents.get("blob") {
            Some(_) => Object::BlobResourceContents,
            None => Object::TextResourceContents,
        };
        contents.trim(object, to);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    const RICH: &str = r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","x":[1, 2]},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"i"}],"execution":{"taskSupport":"optional"},"_meta":{"k":1}}"#;

    /// XR-04, XR-05: each revision gets the members that it has.
    #[test]
    fn members_follow_the_revision() {
        let cells = [
            (
                "first",
                V2024_11_05,
                r#"{"name":"t","description":"d","inputSchema":{"type":"object","x":[1, 2]}}"#,
            ),
            (
                "annotations take the title",
                V2025_03_26,
                r#"{"name":"t","description":"d","inputSchema":{"type":"object","x":[1, 2]},"annotations":{"readOnlyHint":true,"title":"T"}}"#,
            ),
            (
                "no icons",
                V2025_06_18,
                r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","x":[1, 2]},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"k":1}}"#,
            ),
            ("everything", V2025_11_25, RICH),
        ];
        for (name, to, expected) in cells {
            let adapted = adapt_tool(RICH, to).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(RICH), expected, "{name}");
        }
    }

    /// XR-05: a title in the annotations is not overwritten, and none is invented.
    #[test]
    fn titles_move_into_annotations() {
        let cells = [
            (
                "no annotations",
                r#"{"title":"T"}"#,
                r#"{"annotations":{"title":"T"}}"#,
            ),
            (
                "null annotations",
                r#"{"title":"T","annotations":null}"#,
                r#"{"annotations":{"title":"T"}}"#,
            ),
            (
                "own title",
                r#"{"title":"T","annotations":{"title":"U"}}"#,
                r#"{"annotations":{"title":"U"}}"#,
            ),
            ("no title", r#"{"name":"t"}"#, r#"{"name":"t"}"#),
            (
                "strange annotations",
                r#"{"title":"T","annotations":[]}"#,
                r#"{"annotations":[]}"#,
            ),
        ];
        for (name, raw, expected) in cells {
            let adapted = adapt_tool(raw, V2025_03_26).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{name}");
        }
    }

    /// XR-10: 2026-07-28 does not say how a tool takes tasks.
    #[test]
    fn tools_for_modern_clients_lose_only_removed_members() {
        let raw = r#"{"name":"t","execution":{},"x":1}"#;
        let adapted = crate::shape::members::trim(raw, Object::Tool, V2026_07_28).unwrap();
        assert_eq!(adapted.as_deref(), Some(r#"{"name":"t","x":1}"#));
    }
}

#[cfg(test)]
mod prompt_tests {
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
            let adapted = adapt_prompt(raw, to).unwrap();
            assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{to}");
        }
    }

    #[test]
    fn audio_in_a_message_becomes_a_note() {
        let raw =
            r#"{"role":"user","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}"#;
        assert_eq!(
            adapt_prompt_message(raw, V2024_11_05).unwrap().as_deref(),
            Some(
                r#"{"role":"user","content":{"type":"text","text":"[audio audio/wav, 3 bytes]"}}"#
            )
        );
        assert_eq!(adapt_prompt_message(raw, V2025_03_26).unwrap(), None);
    }
}

#[cfg(test)]
mod resource_tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

    #[test]
    fn members_follow_the_revision() {
        let raw = r#"{"uri":"u","name":"n","title":"t","size":1,"icons":[],"annotations":{"priority":1,"lastModified":"d"},"_meta":{},"x":1}"#;
        let cells = [
            (
                V2024_11_05,
                r#"{"uri":"u","name":"n","size":1,"annotations":{"priority":1},"x":1}"#,
            ),
            (
                V2025_03_26,
                r#"{"uri":"u","name":"n","size":1,"annotations":{"priority":1},"x":1}"#,
            ),
            (
                V2025_06_18,
                r#"{"uri":"u","name":"n","title":"t","size":1,"annotations":{"priority":1,"lastModified":"d"},"_meta":{},"x":1}"#,
            ),
            (V2025_11_25, raw),
        ];
        for (to, expected) in cells {
            for object in [Object::Resource, Object::ResourceTemplate] {
                let adapted = adapt_resource(raw, object, to).unwrap();
                assert_eq!(adapted.as_deref().unwrap_or(raw), expected, "{to}");
            }
        }
    }

    #[test]
    fn contents_lose_meta_where_it_is_unknown() {
        let cells = [
            (
                r#"{"uri":"u","text":"a","_meta":{}}"#,
                r#"{"uri":"u","text":"a"}"#,
            ),
            (
                r#"{"uri":"u","blob":"YQ==","_meta":{}}"#,
                r#"{"uri":"u","blob":"YQ=="}"#,
            ),
        ];
        for (raw, expected) in cells {
            assert_eq!(
                adapt_contents(raw, V2025_03_26).unwrap().as_deref(),
                Some(expected)
            );
            assert_eq!(adapt_contents(raw, V2025_06_18).unwrap(), None);
        }
    }
}
