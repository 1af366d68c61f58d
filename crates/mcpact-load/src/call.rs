//! Messages of the load: calls with 1 KiB of text, results of 1 MiB, and echoes of source code with escaped quotes.

use crate::role::Era;

/// Length of the text that the tool gets and returns; an echo is longer.
pub const TEXT_LENGTH: usize = 1024;

/// The revision of the legacy conversations.
pub const LEGACY: &str = "2025-11-25";

/// The revision of the modern requests.
pub const MODERN: &str = "2026-07-28";

/// The tool that gives its text back.
pub const TOOL: &str = "echo";

/// The tool that gives [`LARGE_LENGTH`] bytes of text.
pub const LARGE_TOOL: &str = "large";

/// Length of the text of a large response.
pub const LARGE_LENGTH: usize = 1024 * 1024;

/// Tool to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The one that echoes.
    Small,
    /// The one with the large answer.
    Large,
    /// The one that echoes, with source code in which every fifth byte or so is escaped.
    Quoted {
        /// Length of the text as it is sent, with escapes.
        mebibytes: usize,
    },
}

impl Size {
    /// Its name.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Small | Self::Quoted { .. } => TOOL,
            Self::Large => LARGE_TOOL,
        }
    }

    fn arguments(self) -> String {
        match self {
            Self::Small => format!(r#"{{"text":"{}"}}"#, text()),
            Self::Large => String::from("{}"),
            Self::Quoted { mebibytes } => format!(r#"{{"text":"{}"}}"#, quoted(mebibytes)),
        }
    }

    /// Returns whether the length of a response is plausible.
    #[must_use]
    pub const fn fits(self, length: usize) -> bool {
        match self {
            Self::Small => length > TEXT_LENGTH,
            Self::Large => length > LARGE_LENGTH,
            Self::Quoted { mebibytes } => length > mebibytes * LARGE_LENGTH,
        }
    }

    /// Returns whether these bytes contain the tool's result.
    #[must_use]
    pub fn is_answer(self, body: &[u8]) -> bool {
        match self {
            Self::Small => is_echo(body, &text()),
            Self::Large => self.fits(body.len()),
            Self::Quoted { mebibytes } => is_echo(body, &quoted(mebibytes)),
        }
    }
}

/// Argument of the tool.
#[must_use]
pub fn text() -> String {
    "what goes in comes out again. "
        .chars()
        .cycle()
        .take(TEXT_LENGTH)
        .collect()
}

/// Source code as the content of a JSON string, with escapes.
fn quoted(mebibytes: usize) -> String {
    let line = r#"{\"id\":4711,\"state\":\"open\",\"path\":\"C:\\\\src\"},\n"#;
    let length = mebibytes * LARGE_LENGTH;
    let mut text = line.repeat(length / line.len());
    text.extend(std::iter::repeat_n('x', length - text.len()));
    text
}

/// Opens a legacy conversation.
#[must_use]
pub fn initialize() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"load","version":"1.0.0"}}}}}}"#
    )
}

/// Confirms a legacy conversation.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A call of a tool.
#[must_use]
pub fn request(era: Era, id: u64, size: Size) -> String {
    let (tool, arguments) = (size.tool(), size.arguments());
    match era {
        Era::Legacy => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ),
        Era::Modern => format!(
            concat!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","#,
                r#""arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"#,
                r#""{revision}","io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1.0.0"}},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
            ),
            id = id,
            tool = tool,
            arguments = arguments,
            revision = MODERN,
        ),
    }
}

/// A call of the echo in a legacy conversation.
#[must_use]
pub fn legacy(id: u64) -> String {
    request(Era::Legacy, id, Size::Small)
}

/// Asks for a page of the list of tools.
#[must_use]
pub fn list(cursor: Option<&str>) -> String {
    let params = match cursor {
        Some(cursor) => serde_json::json!({ "cursor": cursor }),
        None => serde_json::json!({}),
    };
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#)
}

/// A page of the list of tools.
#[derive(Debug)]
pub struct Page {
    /// The names on it.
    pub names: Vec<String>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// Reads a page, which may come as an event.
#[must_use]
pub fn page(body: &[u8]) -> Option<Page> {
    let text = std::str::from_utf8(body).ok()?;
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut messages = std::iter::once(text).chain(events);
    let result = messages.find_map(|text| {
        let mut message: serde_json::Value = serde_json::from_str(text).ok()?;
        Some(message.get_mut("result")?.take())
    })?;
    let tools = result.get("tools")?.as_array()?.iter();
    let names = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned));
    let next = result.get("nextCursor").and_then(|next| next.as_str());
    Some(Page {
        names: names.collect(),
        next: next.map(str::to_owned),
    })
}

/// The id of a message, which nothing in the texts resembles.
#[must_use]
pub fn id(message: &[u8]) -> Option<u64> {
    let key = b"\"id\":";
    let start = message.windows(key.len()).position(|part| part == key)? + key.len();
    let digits = message.get(start..)?.iter();
    let digits = digits.take_while(|b| b.is_ascii_digit());
    digits.fold(None, |number, digit| {
        Some(number.unwrap_or(0) * 10 + u64::from(digit - b'0'))
    })
}

/// Returns whether these bytes contain the whole text, as an honest echo must.
#[must_use]
pub fn is_echo(body: &[u8], text: &str) -> bool {
    std::str::from_utf8(body).is_ok_and(|body| body.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_json_of_the_stated_length() {
        let size = Size::Quoted { mebibytes: 1 };
        let request = request(Era::Legacy, 7, size);
        let message: serde_json::Value = serde_json::from_str(&request).unwrap();
        let text = message["params"]["arguments"]["text"].as_str().unwrap();
        let encoded = serde_json::to_string(text).unwrap();
        assert_eq!(encoded.len(), LARGE_LENGTH + 2);
        assert!(size.is_answer(request.as_bytes()));
        assert!(!size.is_answer(&request.as_bytes()[..LARGE_LENGTH]));
    }
}
