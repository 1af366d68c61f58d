use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::pact::Party;
use mcpact_spec::Side;

use super::*;
use crate::probe::record::{HttpHead, Item};

fn pact(revision: Revision, server: &str) -> Pact {
    let set = |side, raw| CapabilitySet::lenient(side, Some(raw));
    Pact::new(
        revision,
        Party::new(None, set(Side::Client, "{}")),
        Party::new(None, set(Side::Server, server)),
    )
}

/// Items of a record: `>` is sent, `<` is received, a number is an HTTP status with its media type.
fn record(lines: &[&str]) -> Record {
    let items = lines.iter().map(|line| match line.split_at(1) {
        (">", text) => Item::Sent(text.to_owned()),
        ("<", text) => Item::Received(text.to_owned()),
        _ => Item::Http(head(line)),
    });
    Record {
        items: items.collect(),
        is_truncated: false,
    }
}

/// Parses `STATUS [MEDIA TYPE] [challenge] [session=ID] [body]`.
fn head(text: &str) -> HttpHead {
    let mut words = text.split(' ');
    let status = words.next().unwrap_or_default();
    let mut head = HttpHead {
        is_post: true,
        status: status.parse().unwrap_or_default(),
        ..HttpHead::default()
    };
    for word in words {
        match word {
            "challenge" => head.has_challenge = true,
            "body" => head.has_body = true,
            word if word.starts_with("session=") => {
                head.session = Some(word.as_bytes()[8..].to_vec());
            }
            word => head.content_type = Some(word.to_owned()),
        }
    }
    head
}

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;
const INITIALIZE: &str = r#">{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}"#;
const DISCOVER: &str = r#">{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{}}"#;
const TOOLS: &str = r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const INITIALIZED: &str = r#">{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const GOOD_INITIALIZE: &str = r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;

fn found(carrier: Carrier, revision: Revision, lines: &[&str]) -> Vec<Violation> {
    let pact = pact(revision, r#"{"tools":{}}"#);
    violations(&record(lines), carrier, Some(&pact), revision)
}

fn rules(carrier: Carrier, revision: Revision, lines: &[&str]) -> Vec<&'static str> {
    let all = found(carrier, revision, lines);
    all.iter().map(|violation| violation.rule).collect()
}

#[test]
fn correct_conversations_have_no_violations() {
    let legacy = [
        DISCOVER,
        r#"<{"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"Method not found"}}"#,
        INITIALIZE,
        GOOD_INITIALIZE,
        INITIALIZED,
        r#"<{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
        r#">{"jsonrpc":"2.0","id":7,"result":{}}"#,
        r#">{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"<{"jsonrpc":"2.0","id":2,"result":{}}"#,
        TOOLS,
        r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a.b-c_1","inputSchema":{"type":"object"}}],"nextCursor":"x"}}"#,
        r#">{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"x"}}"#,
        r#"<{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#,
    ];
    assert_eq!(found(Carrier::Stdio, LEGACY, &legacy), []);
    let modern = [
        DISCOVER,
        "200 application/json body",
        r#"<{"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#,
        TOOLS,
        "200 text/event-stream body",
        r#"<{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}"#,
    ];
    assert_eq!(found(Carrier::Http, MODERN, &modern), []);
    let session = [INITIALIZED, "202 session=abc-1"];
    assert_eq!(found(Carrier::Http, LEGACY, &session), []);
}

/// Every rule is found in a conversation that violates it, and no other rule.
#[test]
fn every_rule_is_found() {
    type Case<'a> = (Rule, Carrier, Revision, &'a [&'a str]);
    let stdio = Carrier::Stdio;
    let http = Carrier::Http;
    let cases: &[Case<'_>] = &[
        (Rule::NotJson, stdio, LEGACY, &["<Server listening"]),
        (
            Rule::ContentType,
            http,
            LEGACY,
            &[TOOLS, "200 text/html body"],
        ),
        (
            Rule::NotificationStatus,
            http,
            LEGACY,
            &[INITIALIZED, "200"],
        ),
        (Rule::Challenge, http, LEGACY, &[TOOLS, "401"]),
        (
            Rule::SessionId,
            http,
            LEGACY,
            &[TOOLS, "200 application/json session=\u{7f} body"],
        ),
        (
            Rule::JsonRpc,
            stdio,
            LEGACY,
            &[TOOLS, r#"<{"id":1,"result":{"tools":[]}}"#],
        ),
        (
            Rule::Batch,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<[{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]"#,
            ],
        ),
        (
            Rule::ResponseShape,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":{"code":1,"message":""}}"#,
            ],
        ),
        (
            Rule::ErrorShape,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"error":{"code":"E","message":"no"}}"#,
            ],
        ),
        (
            Rule::ResponseId,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":"1","result":{"tools":[]}}"#,
            ],
        ),
        (
            Rule::DuplicateResponse,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
            ],
        ),
        (
            Rule::NotificationAnswered,
            stdio,
            LEGACY,
            &[INITIALIZED, r#"<{"jsonrpc":"2.0","id":null,"result":{}}"#],
        ),
        (
            Rule::ProtocolVersion,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
            ],
        ),
        (
            Rule::UnknownVersion,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"1.0","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
            ],
        ),
        (
            Rule::SupportedVersions,
            stdio,
            LEGACY,
            &[DISCOVER, r#"<{"jsonrpc":"2.0","id":"d","result":{}}"#],
        ),
        (
            Rule::ServerInfo,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s"}}}"#,
            ],
        ),
        (
            Rule::Capabilities,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}"#,
            ],
        ),
        (
            Rule::CapabilityType,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":true},"serverInfo":{"name":"s","version":"1"}}}"#,
            ],
        ),
        (
            Rule::Instructions,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-11-25","capabilities":{},"instructions":[],"serverInfo":{"name":"s","version":"1"}}}"#,
            ],
        ),
        (
            Rule::ResultType,
            stdio,
            MODERN,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"ttlMs":0,"cacheScope":"private","tools":[]}}"#,
            ],
        ),
        (
            Rule::CacheHints,
            stdio,
            MODERN,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"tools":[]}}"#,
            ],
        ),
        (
            Rule::BeforeInitialized,
            stdio,
            LEGACY,
            &[
                INITIALIZE,
                r#"<{"jsonrpc":"2.0","id":7,"method":"custom/ask"}"#,
            ],
        ),
        (
            Rule::Undeclared,
            stdio,
            LEGACY,
            &[r#"<{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#],
        ),
        (
            Rule::DeclaredNotFound,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#,
            ],
        ),
        (
            Rule::PingResult,
            stdio,
            LEGACY,
            &[
                r#">{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"pong":true}}"#,
            ],
        ),
        (
            Rule::ListArray,
            stdio,
            LEGACY,
            &[TOOLS, r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":{}}}"#],
        ),
        (
            Rule::ListItem,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"inputSchema":{"type":"object"}}]}}"#,
            ],
        ),
        (
            Rule::DuplicateName,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]}}"#,
            ],
        ),
        (
            Rule::ToolName,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a b","inputSchema":{"type":"object"}}]}}"#,
            ],
        ),
        (
            Rule::InputSchema,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{}}]}}"#,
            ],
        ),
        (
            Rule::CursorType,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":null}}"#,
            ],
        ),
        (
            Rule::CursorLoop,
            stdio,
            LEGACY,
            &[
                TOOLS,
                r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"x"}}"#,
                r#">{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
                r#"<{"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"x"}}"#,
            ],
        ),
    ];
    for (rule, carrier, revision, lines) in cases {
        let found = rules(*carrier, *revision, lines);
        assert_eq!(found, [rule.as_str()], "{}", rule.as_str());
    }
    for rule in Rule::ALL {
        assert!(
            cases.iter().any(|(tested, ..)| tested == rule),
            "{}",
            rule.as_str()
        );
        assert!(
            CHECKS.iter().any(|check| check.rule == *rule),
            "{}",
            rule.as_str()
        );
    }
}

#[test]
fn sections_name_the_revision_and_page() {
    let legacy = found(Carrier::Stdio, LEGACY, &["<noise"]);
    assert_eq!(legacy[0].section, "2025-11-25 basic/transports#stdio");
    let modern = found(Carrier::Stdio, MODERN, &["<noise"]);
    assert_eq!(
        modern[0].section,
        "2026-07-28 basic/transports/stdio#receiving-messages"
    );
}

#[test]
fn findings_of_one_rule_are_limited() {
    let lines: Vec<String> = (0..20).map(|line| format!("<noise {line}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let all = found(Carrier::Stdio, LEGACY, &lines);
    assert_eq!(all.len(), MAX_FINDINGS + 1);
    assert_eq!(all[MAX_FINDINGS].detail, "and 15 more");
}

#[test]
fn excerpts_are_short() {
    let long = format!("<{}", "x".repeat(200));
    let all = found(Carrier::Stdio, LEGACY, &[&long]);
    assert!(all[0].detail.chars().count() < 130, "{}", all[0].detail);
}
