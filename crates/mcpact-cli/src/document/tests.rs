use mcpact_engine::revisions::RevisionId;
use mcpact_spec::Side;

use super::shape::{Misfit, ShapeFault};
use super::{Document, Unfit, compact};

/// A document in one line: the versions, the capabilities, the name.
fn told(side: Side, text: &str) -> String {
    let document = Document::parse(side, text).unwrap();
    let versions: Vec<&str> = document.versions.iter().map(RevisionId::as_str).collect();
    format!(
        "{} | {} | {}",
        versions.join(" "),
        document.capabilities().unwrap_or("-"),
        document.info().map_or("-", |info| info.name()),
    )
}

fn misfit(side: Side, text: &str) -> Misfit {
    match Document::parse(side, text).unwrap_err() {
        Unfit::Shape(ShapeFault::Misfit(misfit)) => misfit,
        other => panic!("{other:?}"),
    }
}

const EVERY: &str = "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05";

#[test]
fn every_natural_shape_is_understood() {
    let sheet = [
        (Side::Client, "{}", format!("{EVERY} | {{}} | -")),
        (
            Side::Server,
            r#" { "tools" : {} } "#,
            format!(r#"{EVERY} | {{"tools":{{}}}} | -"#),
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
            format!("{EVERY} | [] | -"),
        ),
    ];
    for (side, text, expected) in sheet {
        assert_eq!(told(side, text), expected, "{text}");
    }
}

#[test]
fn other_documents_are_told_apart() {
    let sheet = [
        (Side::Client, "[]", "holds a JSON array, not an object"),
        (
            Side::Client,
            r#"{"tools":{},"tools":{}}"#,
            "names the same member twice in one object",
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":""}}"#,
            "holds an error response, which declares nothing",
        ),
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            "holds a message that declares no capabilities (`tools/list`)",
        ),
        (
            Side::Client,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "holds a message that declares no capabilities (`notifications/initialized`)",
        ),
        (
            Side::Server,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "speaks for the client, not for the server",
        ),
        (
            Side::Client,
            r#"{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
            "speaks for the server, not for the client",
        ),
        (
            Side::Client,
            r#"{"supportedVersions":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
            "speaks for the server, not for the client",
        ),
        (
            Side::Server,
            r#"{"mcpServers":{}}"#,
            "is neither a capability object nor a message of the handshake",
        ),
    ];
    for (side, text, expected) in sheet {
        assert_eq!(misfit(side, text).to_string(), expected, "{text}");
    }
}

#[test]
fn white_space_goes_and_tokens_stay() {
    let raw = "{ \"a b\" : [ 1e400 , \"\\\" \\\\\" , { } ] ,\r\n\t\"c\" : \" \" }";
    assert_eq!(compact(raw), r#"{"a b":[1e400,"\" \\",{}],"c":" "}"#);
}

#[test]
fn swapped_capabilities_are_noticed() {
    for (side, text) in [
        (Side::Client, r#"{"tools":{},"logging":{}}"#),
        (Side::Server, r#"{"roots":{"listChanged":true}}"#),
    ] {
        assert_eq!(misfit(side, text), Misfit::WrongSide { expected: side });
    }
    // What both may declare, or one of each, says nothing about the side.
    for side in [Side::Client, Side::Server] {
        for text in [r#"{"experimental":{}}"#, r#"{"roots":{},"tools":{}}"#] {
            assert!(Document::parse(side, text).is_ok(), "{side} {text}");
        }
    }
}
