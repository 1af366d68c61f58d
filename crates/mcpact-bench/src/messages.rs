//! Messages of the sizes and shapes that pass between real peers.

/// How long the small message is.
const CALL_LENGTH: usize = 400;

/// How long the large messages are, at least.
const RESULT_LENGTH: usize = 1024 * 1024;

/// A `tools/call` of a legacy conversation, 400 bytes long.
#[must_use]
pub fn legacy_call() -> String {
    let head = concat!(
        r#"{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"search_issues","#,
        r#""arguments":{"repository":"modelcontextprotocol/specification","state":"open","#,
        r#""labels":["bug","needs triage"],"page":2,"perPage":50,"includeComments":true,"query":""#,
    );
    let tail = r#""},"_meta":{"progressToken":"search-4711"}}}"#;
    let query = filler(CALL_LENGTH - head.len() - tail.len());
    format!("{head}{query}{tail}")
}

/// A `tools/call` that asks for a task: the one parameter of it that is gated.
#[must_use]
pub fn task_call() -> String {
    legacy_call().replace(r#","_meta":{"#, r#","task":{"ttl":60000},"_meta":{"#)
}

/// A `tools/call` with the metadata of a modern request.
#[must_use]
pub fn modern_call() -> String {
    String::from(concat!(
        r#"{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"search_issues","#,
        r#""arguments":{"repository":"modelcontextprotocol/specification","state":"open","page":2},"#,
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"#,
        r#""extensions":{"io.modelcontextprotocol/tasks":{}}},"#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#,
        r#""progressToken":"search-4711"}}}"#,
    ))
}

/// A complete `initialize`.
#[must_use]
pub fn initialize() -> String {
    String::from(concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
        r#""capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"#,
        r#""elicitation":{"form":{},"url":{}},"experimental":{"vendor":{"x":1}}},"#,
        r#""clientInfo":{"name":"bench","title":"A benchmark","version":"1.0.0"}}}"#,
    ))
}

/// A result of 1 MiB: many content blocks, each with structured data beside its text.
#[must_use]
pub fn result_with_blocks() -> String {
    let mut out = String::from(r#"{"jsonrpc":"2.0","id":4711,"result":{"content":["#);
    let mut number = 0_u64;
    while out.len() < RESULT_LENGTH {
        if number > 0 {
            out.push(',');
        }
        number += 1;
        out.push_str(&format!(
            concat!(
                r#"{{"type":"text","text":"issue {0}: the scanner stops at \"{0}\"\nsee below","#,
                r#""annotations":{{"audience":["user","assistant"],"priority":0.{0}}}}},"#,
                r#"{{"type":"resource_link","uri":"https://example.com/issues/{0}","name":"#,
                r#""issue-{0}","mimeType":"application/json","size":{1},"_meta":{{"score":"#,
                r#"{0}.5e-3,"open":true,"assignee":null,"labels":["bug",{{"id":{0},"name":"t"}}]}}}}"#,
            ),
            number,
            number * 37
        ));
    }
    out.push_str(r#"],"isError":false}}"#);
    out
}

/// A result of 1 MiB: one text of many lines, as a tool that reads files gives it.
#[must_use]
pub fn result_with_text() -> String {
    let mut out =
        String::from(r#"{"jsonrpc":"2.0","id":4711,"result":{"content":[{"type":"text","text":""#);
    while out.len() < RESULT_LENGTH {
        out.push_str(r#"    let found = scan(&bytes, \"needle\").map(|at| at + 1); // Größe\n"#);
        out.push_str(&filler(72));
        out.push_str("\\n");
    }
    out.push_str(r#""}],"isError":false}}"#);
    out
}

/// A result of 1 MiB: one text of JSON source code, in which every fifth byte or so is escaped.
#[must_use]
pub fn result_with_quotes() -> String {
    let mut out =
        String::from(r#"{"jsonrpc":"2.0","id":4711,"result":{"content":[{"type":"text","text":""#);
    while out.len() < RESULT_LENGTH {
        out.push_str(r#"{\"id\":4711,\"state\":\"open\",\"path\":\"C:\\\\src\"},\n"#);
    }
    out.push_str(r#""}],"isError":false}}"#);
    out
}

fn filler(length: usize) -> String {
    "where does the envelope end "
        .chars()
        .cycle()
        .take(length)
        .collect()
}
