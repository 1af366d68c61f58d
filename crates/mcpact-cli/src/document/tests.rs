use mcpact_engine::revisions::RevisionId;
use mcpact_spec::Side;

use super::{Document, DocumentFault, compact};

/// Summarizes a document: versions, capabilities, name.
fn summary(side: Side, text: &str) -> String {
    let document = Document::parse(side, text).unwrap();
    let versions: Vec<&str> = document.versions.iter().map(RevisionId::as_str).collect();
    format!(
        "{} | {} | {}",
        versions.join(" "),
        document.capabilities.as_deref().unwrap_or("-"),
        document.info.as_ref().map_or("-", |info| info.name()),
    )
}

fn unsupported(side: Side, text: &str) -> DocumentFault {
    Document::parse(side, text).unwrap_err()
}

const ALL: &str = "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05";

#[test]
fn every_shape_is_parsed() {
    let cases = [
        (Side::Client, "{}", format!("{ALL} | {{}} | -")),
        (
            Side::Server,
            r#" { "tools" : {} } "#,
            format!(r#"{ALL} | {{"tools":{{}}}} | -"#),
        ),
        (
            Side::Client,
            r#"{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}"#,
            String::from(r#"2024-11-05 | {"roots":{}} | c"#),
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
            String::from("2025-06-18 | {} | s"),
        ),
        (
            Side::Server,
            r#"{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
            String::from("2026-07-28 2025-11-25 | {} | s"),
        ),
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}"#,
            String::from(r#"2026-07-28 | {"sampling":{}} | c"#),
        ),
        (
            Side::Client,
            r#"{"capabilities":{"somethingNew":{}},"protocolVersions":["2099-01-01"]}"#,
            String::from(r#"2099-01-01 | {"somethingNew":{}} | -"#),
        ),
        (
            Side::Client,
            r#"{"capabilities":[],"protocolVersion":null}"#,
            format!("{ALL} | [] | -"),
        ),
    ];
    for (side, text, expected) in cases {
        assert_eq!(summary(side, text), expected, "{text}");
    }
}

#[test]
fn unsupported_documents_name_the_reason() {
    let cases = [
        (Side::Client, "[]", "is a JSON array, expected an object"),
        (
            Side::Client,
            r#"{"tools":{},"tools":{}}"#,
            "has a duplicate field",
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":""}}"#,
            "is an error response, which declares no capabilities",
        ),
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            "is a message without capabilities (`tools/list`)",
        ),
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "is a message without capabilities (`notifications/initialized`)",
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "is a client document, expected a server document",
        ),
        (
            Side::Client,
            r#"{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
            "is a server document, expected a client document",
        ),
        (
            Side::Client,
            r#"{"supportedVersions":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
            "is a server document, expected a client document",
        ),
        (
            Side::Server,
            r#"{"mcpServers":{}}"#,
            "is neither a capability object nor a handshake message",
        ),
    ];
    for (side, text, expected) in cases {
        assert_eq!(unsupported(side, text).to_string(), expected, "{text}");
    }
}

#[test]
fn whitespace_is_removed_and_tokens_are_kept() {
    let raw = "{ \"a b\" : [ 1e400 , \"\\\" \\\\\" , { } ] ,\r\n\t\"c\" : \" \" }";
    assert_eq!(compact(raw), r#"{"a b":[1e400,"\" \\",{}],"c":" "}"#);
}

#[test]
fn swapped_sides_are_detected() {
    for (side, text) in [
        (Side::Client, r#"{"tools":{},"logging":{}}"#),
        (Side::Server, r#"{"roots":{"listChanged":true}}"#),
    ] {
        assert_eq!(
            unsupported(side, text),
            DocumentFault::WrongSide { expected: side }
        );
    }
    // Capabilities of both sides do not decide.
    for side in [Side::Client, Side::Server] {
        for text in [r#"{"experimental":{}}"#, r#"{"roots":{},"tools":{}}"#] {
            assert!(Document::parse(side, text).is_ok(), "{side} {text}");
        }
    }
}
