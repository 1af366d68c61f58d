//! The messages of the load: one tool, called with 1 KiB of text.

/// How long the text is that the tool gets and gives back; an echo is longer.
pub const TEXT_LENGTH: usize = 1024;

/// The revision of the legacy conversations.
pub const LEGACY: &str = "2025-11-25";

/// The revision of the modern requests.
pub const MODERN: &str = "2026-07-28";

/// The only tool.
pub const TOOL: &str = "echo";

/// What the tool is called with.
#[must_use]
pub fn text() -> String {
    "what goes in comes out again. "
        .chars()
        .cycle()
        .take(TEXT_LENGTH)
        .collect()
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

/// A call of the tool in a legacy conversation.
#[must_use]
pub fn legacy(id: u64) -> String {
    let text = text();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{"text":"{text}"}}}}}}"#
    )
}

/// A call of the tool that stands alone.
#[must_use]
pub fn modern(id: u64) -> String {
    let text = text();
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","#,
            r#""arguments":{{"text":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"#,
            r#""{revision}","io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1.0.0"}},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
        ),
        id = id,
        tool = TOOL,
        text = text,
        revision = MODERN,
    )
}

/// Whether these bytes hold the whole text: what an honest echo must.
#[must_use]
pub fn is_echo(body: &[u8], text: &str) -> bool {
    std::str::from_utf8(body).is_ok_and(|body| body.contains(text))
}
