//! Violations of the specification by a server: a table of checks over the messages of a probe.
//! Pure: each check reads a dialogue and returns what it found.

mod handshake;
mod http;
mod lists;
mod messages;

use std::collections::BTreeSet;

use mcpact_engine::pact::Pact;
use mcpact_spec::{Era, Revision};
use serde::Serialize;

use super::dialogue::{Carrier, Dialogue};
use super::record::Record;

/// Limit of findings of one check; the rest is counted.
const MAX_FINDINGS: usize = 5;

mcpact_spec::stable_strings! {
    /// Rule that a server violates: `violations[].rule` in `mcpact probe --json`.
    pub(crate) enum Rule {
        /// A JSON-RPC batch in a revision without batches.
        Batch = "batch",
        /// Requests before the server has received `notifications/initialized`.
        BeforeInitialized = "before-initialized",
        /// A modern result without cache hints.
        CacheHints = "cache-hints",
        /// No capability object in the handshake.
        Capabilities = "capabilities",
        /// A capability of the wrong type.
        CapabilityType = "capability-type",
        /// Status 401 without a challenge.
        Challenge = "challenge",
        /// A response of the wrong media type.
        ContentType = "content-type",
        /// The same cursor twice.
        CursorLoop = "cursor-loop",
        /// A cursor that is no string.
        CursorType = "cursor-type",
        /// A method of a declared capability is missing.
        DeclaredNotFound = "declared-not-found",
        /// Two items with the same name.
        DuplicateName = "duplicate-name",
        /// A second response to one request.
        DuplicateResponse = "duplicate-response",
        /// An error without integer code or message.
        ErrorShape = "error-shape",
        /// A tool without an object schema.
        InputSchema = "input-schema",
        /// Instructions that are no string.
        Instructions = "instructions",
        /// Not a JSON-RPC 2.0 message.
        JsonRpc = "json-rpc",
        /// A list that is no array.
        ListArray = "list-array",
        /// A list item without its required members.
        ListItem = "list-item",
        /// Text that is not JSON where only messages are allowed.
        NotJson = "not-json",
        /// A response to a notification, or to nothing.
        NotificationAnswered = "notification-answered",
        /// A notification answered with another status than 202.
        NotificationStatus = "notification-status",
        /// A ping whose result is not empty.
        PingResult = "ping-result",
        /// A handshake without a version.
        ProtocolVersion = "protocol-version",
        /// Both or none of result and error.
        ResponseShape = "response-shape",
        /// A response with an id that was not asked for.
        ResponseId = "response-id",
        /// A modern result without `resultType`.
        ResultType = "result-type",
        /// A handshake without name and version of the server.
        ServerInfo = "server-info",
        /// A session id with invisible characters.
        SessionId = "session-id",
        /// A discover result without a list of versions.
        SupportedVersions = "supported-versions",
        /// A tool name with characters that the specification advises against.
        ToolName = "tool-name",
        /// A message that the negotiated capabilities do not allow.
        Undeclared = "undeclared",
        /// A version that no revision has.
        UnknownVersion = "unknown-version",
    }
}

/// Pages of the specification, per era.
#[derive(Clone, Copy, Debug)]
struct Section {
    legacy: &'static str,
    modern: &'static str,
}

/// The same page in both eras.
const fn both(page: &'static str) -> Section {
    Section {
        legacy: page,
        modern: page,
    }
}

const fn of_eras(legacy: &'static str, modern: &'static str) -> Section {
    Section { legacy, modern }
}

/// A check: the rule, where it stands, and what violates it.
struct Check {
    rule: Rule,
    section: Section,
    find: fn(&Dialogue<'_>) -> Vec<String>,
}

const fn check(rule: Rule, section: Section, find: fn(&Dialogue<'_>) -> Vec<String>) -> Check {
    Check {
        rule,
        section,
        find,
    }
}

const STDIO: Section = of_eras(
    "basic/transports#stdio",
    "basic/transports/stdio#receiving-messages",
);
const POST: Section = of_eras(
    "basic/transports#sending-messages-to-the-server",
    "basic/transports/streamable-http#sending-messages",
);
const HANDSHAKE: Section = of_eras("basic/lifecycle#initialization", "server/discover#response");
const PAGES: Section = both("server/utilities/pagination#response-format");

/// Every check, in the order of the report: transport, messages, handshake, features.
const CHECKS: &[Check] = &[
    check(Rule::NotJson, STDIO, messages::not_json),
    check(Rule::ContentType, POST, http::content_type),
    check(Rule::NotificationStatus, POST, http::notification_status),
    check(
        Rule::Challenge,
        both("basic/authorization"),
        http::challenge,
    ),
    check(
        Rule::SessionId,
        of_eras(
            "basic/transports#session-management",
            "basic/transports/streamable-http#backward-compatibility",
        ),
        http::session_id,
    ),
    check(Rule::JsonRpc, both("basic#messages"), messages::json_rpc),
    check(Rule::Batch, both("basic#messages"), messages::batch),
    check(
        Rule::ResponseShape,
        both("basic#responses"),
        messages::response_shape,
    ),
    check(
        Rule::ErrorShape,
        both("basic#responses"),
        messages::error_shape,
    ),
    check(
        Rule::ResponseId,
        both("basic#responses"),
        messages::response_id,
    ),
    check(
        Rule::DuplicateResponse,
        both("basic#responses"),
        messages::duplicate_response,
    ),
    check(
        Rule::NotificationAnswered,
        both("basic#notifications"),
        messages::notification_answered,
    ),
    check(
        Rule::ProtocolVersion,
        of_eras("basic/lifecycle#version-negotiation", "basic/versioning"),
        handshake::protocol_version,
    ),
    check(
        Rule::UnknownVersion,
        of_eras("basic/lifecycle#version-negotiation", "basic/versioning"),
        handshake::unknown_version,
    ),
    check(
        Rule::SupportedVersions,
        HANDSHAKE,
        handshake::supported_versions,
    ),
    check(Rule::ServerInfo, HANDSHAKE, handshake::server_info),
    check(Rule::Capabilities, HANDSHAKE, handshake::capabilities),
    check(
        Rule::CapabilityType,
        of_eras(
            "basic/lifecycle#capability-negotiation",
            "server/discover#data-types",
        ),
        handshake::capability_type,
    ),
    check(Rule::Instructions, HANDSHAKE, handshake::instructions),
    check(
        Rule::ResultType,
        both("basic#responses"),
        lists::result_type,
    ),
    check(
        Rule::CacheHints,
        both("server/utilities/caching"),
        lists::cache_hints,
    ),
    check(
        Rule::BeforeInitialized,
        both("basic/lifecycle#initialization"),
        messages::before_initialized,
    ),
    check(
        Rule::Undeclared,
        of_eras(
            "basic/lifecycle#capability-negotiation",
            "basic#capability-negotiation",
        ),
        messages::undeclared,
    ),
    check(
        Rule::DeclaredNotFound,
        of_eras(
            "basic/lifecycle#capability-negotiation",
            "basic#capability-negotiation",
        ),
        lists::declared_not_found,
    ),
    check(
        Rule::PingResult,
        both("basic/utilities/ping"),
        lists::ping_result,
    ),
    check(Rule::ListArray, both("schema"), lists::list_array),
    check(Rule::ListItem, both("schema"), lists::list_item),
    check(
        Rule::DuplicateName,
        both("server/tools#tool"),
        lists::duplicate_name,
    ),
    check(Rule::ToolName, both("server/tools#tool"), lists::tool_name),
    check(
        Rule::InputSchema,
        both("server/tools#tool"),
        lists::input_schema,
    ),
    check(Rule::CursorType, PAGES, lists::cursor_type),
    check(Rule::CursorLoop, PAGES, lists::cursor_loop),
];

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// Stable name of the rule.
    pub(crate) rule: &'static str,
    /// What the server did. It may contain text of the server.
    pub(crate) detail: String,
    /// Revision and page of the specification.
    pub(crate) section: String,
}

/// Returns the violations in a record, in the order of the table.
pub(crate) fn violations(
    record: &Record,
    carrier: Carrier,
    pact: Option<&Pact>,
    asked: Revision,
) -> Vec<Violation> {
    let dialogue = Dialogue::new(record, carrier, pact);
    let revision = pact.map_or(asked, Pact::revision);
    CHECKS
        .iter()
        .flat_map(|check| {
            let page = match revision.era() {
                Era::Legacy => check.section.legacy,
                Era::Modern => check.section.modern,
            };
            let mut found = (check.find)(&dialogue);
            let mut seen = BTreeSet::new();
            found.retain(|detail| seen.insert(detail.clone()));
            let more = found.len().saturating_sub(MAX_FINDINGS);
            found.truncate(MAX_FINDINGS);
            if more > 0 {
                found.push(format!("and {more} more"));
            }
            found.into_iter().map(move |detail| Violation {
                rule: check.rule.as_str(),
                detail,
                section: format!("{revision} {page}"),
            })
        })
        .collect()
}

/// Longest excerpt of a server's text in a finding.
const EXCERPT: usize = 60;

/// Returns the beginning of a server's text.
fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(EXCERPT).collect();
    match chars.next() {
        Some(_) => format!("`{start}…`"),
        None => format!("`{start}`"),
    }
}

/// Returns the JSON type of a value, with an article.
const fn kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::Object(_) => "an object",
    }
}

/// Returns "no `key`" or "`key` is a TYPE".
fn wrong(key: &str, value: Option<&serde_json::Value>) -> String {
    match value {
        None => format!("has no `{key}`"),
        Some(value) => format!("has a `{key}` that is {}", kind(value)),
    }
}

#[cfg(test)]
mod tests;
