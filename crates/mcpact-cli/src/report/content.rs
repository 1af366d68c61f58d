//! Content of results: text as it is, everything else in one line each.

use mcpact::model::{
    Content, LogMessage, PromptResult, ReadResult, Resource, ResourceContents, Role, ToolResult,
};

use super::layout::{in_one_line, printable};
use super::{count, json};

/// Binary part of a result, as Base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binary<'a> {
    /// Media type.
    pub(crate) mime_type: &'a str,
    /// Base64 data.
    pub(crate) data: &'a str,
}

/// Note about binary parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryNote {
    /// They can be saved with `--out`.
    CanBeSaved,
    /// The command does not save them.
    None,
}

impl BinaryNote {
    const fn as_str(self) -> &'static str {
        match self {
            Self::CanBeSaved => "; save it with `--out PATH`",
            Self::None => "",
        }
    }
}

/// Formats the result of a tool. Structured content is shown if there is no text.
pub(crate) fn tool_result(result: &ToolResult, note: BinaryNote) -> String {
    let mut out = blocks(&result.content, note);
    let has_text = result.content.iter().any(|block| block.as_text().is_some());
    if let Some(structured) = result.structured_content.as_ref().filter(|_| !has_text) {
        out.push_str(&json(structured));
    }
    out
}

/// Formats the contents of a resource.
pub(crate) fn read_result(result: &ReadResult, note: BinaryNote) -> String {
    result
        .contents
        .iter()
        .map(|one| contents(one, note))
        .collect()
}

/// Formats the messages of a prompt.
pub(crate) fn prompt_result(result: &PromptResult) -> String {
    let messages = result.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let content = block(&message.content, BinaryNote::None);
        format!("{role}:\n{content}")
    });
    messages.collect::<Vec<_>>().join("\n")
}

/// Formats a log message of a server.
pub(crate) fn log_line(message: &LogMessage) -> String {
    let level = message.level.as_str();
    let text = in_one_line(&message.text());
    match &message.logger {
        Some(logger) => format!("{level}: {}: {text}\n", in_one_line(logger)),
        None => format!("{level}: {text}\n"),
    }
}

/// Returns the binary parts of a tool result.
pub(crate) fn binaries(content: &[Content]) -> Vec<Binary<'_>> {
    content.iter().filter_map(binary).collect()
}

fn binary(block: &Content) -> Option<Binary<'_>> {
    match block {
        Content::Image(media) | Content::Audio(media) => Some(Binary {
            mime_type: &media.mime_type,
            data: &media.data,
        }),
        Content::Resource(embedded) => blob(&embedded.resource),
        _ => None,
    }
}

/// Returns the binary data of a resource.
pub(crate) fn blob(contents: &ResourceContents) -> Option<Binary<'_>> {
    Some(Binary {
        mime_type: contents.mime_type.as_deref().unwrap_or("binary"),
        data: contents.blob.as_deref()?,
    })
}

fn blocks(content: &[Content], note: BinaryNote) -> String {
    content.iter().map(|one| block(one, note)).collect()
}

fn block(block: &Content, note: BinaryNote) -> String {
    match block {
        Content::Text(text) => line(&text.text),
        Content::ResourceLink(resource) => link(resource),
        Content::Resource(embedded) => {
            let resource = &embedded.resource;
            match &resource.text {
                Some(text) => format!("[resource {}]\n{}", printable(&resource.uri), line(text)),
                None => contents(resource, note),
            }
        }
        Content::Image(media) => described("image", &media.mime_type, &media.data, note),
        Content::Audio(media) => described("audio", &media.mime_type, &media.data, note),
        other => json(other),
    }
}

fn contents(contents: &ResourceContents, note: BinaryNote) -> String {
    match (&contents.text, blob(contents)) {
        (Some(text), _) => line(text),
        (None, Some(binary)) => {
            let what = format!("resource {}", contents.uri);
            described(&what, binary.mime_type, binary.data, note)
        }
        (None, None) => format!("[empty resource {}]\n", printable(&contents.uri)),
    }
}

fn described(what: &str, mime_type: &str, data: &str, note: BinaryNote) -> String {
    let (what, mime_type) = (printable(what), printable(mime_type));
    let size = count(decoded_length(data), "byte");
    format!("[{what}, {mime_type}, {size}{}]\n", note.as_str())
}

fn link(resource: &Resource) -> String {
    let title = resource.title.as_ref().unwrap_or(&resource.name);
    format!(
        "[link {}: {}]\n",
        printable(&resource.uri),
        in_one_line(title)
    )
}

/// Ends a text with a line feed.
fn line(text: &str) -> String {
    match text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// Returns the length of Base64 data after decoding.
fn decoded_length(data: &str) -> usize {
    let digits = data
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
    digits.count() * 3 / 4
}

#[cfg(test)]
mod tests {
    use mcpact::model::LogLevel;
    use serde_json::json;

    use super::*;

    #[test]
    fn content_is_formatted_by_its_kind() {
        let contents = ResourceContents::text("a:b", "inner\n");
        let empty = ResourceContents {
            uri: String::from("a:e"),
            ..ResourceContents::default()
        };
        for (content, expected) in [
            (Content::text("one\ntwo"), "one\ntwo\n"),
            (
                Content::image("aGk=", "image/png"),
                "[image, image/png, 2 bytes; save it with `--out PATH`]\n",
            ),
            (
                Content::audio("YQ==", "audio/wav"),
                "[audio, audio/wav, 1 byte; save it with `--out PATH`]\n",
            ),
            (
                Content::link(Resource::new("a:b", "notes")),
                "[link a:b: notes]\n",
            ),
            (Content::resource(contents), "[resource a:b]\ninner\n"),
            (Content::resource(empty), "[empty resource a:e]\n"),
            (
                Content::image("", "x\u{1b}y"),
                "[image, x\\u{1b}y, 0 bytes; save it with `--out PATH`]\n",
            ),
        ] {
            let result = ToolResult::new([content]);
            assert_eq!(tool_result(&result, BinaryNote::CanBeSaved), expected);
        }
    }

    #[test]
    fn structured_content_is_shown_without_text() {
        let structured = ToolResult {
            structured_content: Some(json!({"n": 1})),
            ..ToolResult::default()
        };
        assert_eq!(
            tool_result(&structured, BinaryNote::None),
            "{\n  \"n\": 1\n}\n"
        );
        let both = structured.with("text");
        assert_eq!(tool_result(&both, BinaryNote::None), "text\n");
    }

    #[test]
    fn log_messages_take_one_line() {
        let message = LogMessage::new(LogLevel::Info, "a\nb").logger("db");
        assert_eq!(log_line(&message), "info: db: a | b\n");
    }
}
