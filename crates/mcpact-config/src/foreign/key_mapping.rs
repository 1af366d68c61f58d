//! Keys of other clients and their native equivalents.

use crate::keys;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Treatment of a key of another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMapping {
    /// Same as this native key.
    As(&'static str),
    /// Negation of this native key.
    Not(&'static str),
    /// Table of headers.
    Headers,
    /// Table of headers; the values are names of variables.
    HeadersFromVariables,
    /// Name of a variable with a bearer token.
    BearerFromVariable,
    /// Bearer token; replaces any `Authorization` header.
    Bearer,
    /// Table with more keys of the server.
    Inner,
    /// Kind of transport.
    Transport,
    /// Selects this strategy if `true`.
    Strategy(&'static str),
    /// Start condition of the server.
    Activation,
    /// Ignored: display text or client-specific.
    Silent,
    /// Not supported by mcpact.
    Unused,
}

use KeyMapping::{
    Activation, As, Bearer, BearerFromVariable, Headers, HeadersFromVariables, Inner, Not, Silent,
    Strategy, Transport, Unused,
};

/// Server keys of other clients and gateways.
const SERVER: &[(&str, KeyMapping)] = &[
    ("serverUrl", As("url")),
    ("httpUrl", As("url")),
    ("baseUrl", As("url")),
    ("endpoint", As("url")),
    ("uri", As("url")),
    ("cmd", As("command")),
    ("path", As("command")),
    ("arguments", As("args")),
    ("environment", As("env")),
    ("envs", As("env")),
    ("envFile", As("env_file")),
    ("env_vars", As("inherit")),
    ("env_keys", As("inherit")),
    ("workingDirectory", As("cwd")),
    ("isActive", As("enabled")),
    ("disabled", Not("enabled")),
    ("enabled_tools", As("tools")),
    ("enabledTools", As("tools")),
    ("includeTools", As("tools")),
    ("exposeTools", As("tools")),
    ("available_tools", As("tools")),
    ("disabled_tools", As("hidden_tools")),
    ("disabledTools", As("hidden_tools")),
    ("excludeTools", As("hidden_tools")),
    ("startup_timeout_sec", As("start_seconds")),
    ("tool_timeout_sec", As("call_seconds")),
    ("idleSeconds", As("idle_seconds")),
    ("maxConcurrent", As("max_concurrent")),
    ("maxInstances", As("max_instances")),
    ("minReady", As("min_ready")),
    ("drainTimeoutSeconds", As("drain_seconds")),
    ("sessionTTLSeconds", As("session_seconds")),
    ("protocolVersion", As("era")),
    ("protocol_version", As("era")),
    ("protocolEra", As("era")),
    ("sticky", Strategy("stateful")),
    ("persistent", Strategy("persistent")),
    ("activationMode", Activation),
    ("headers", Headers),
    ("http_headers", Headers),
    ("env_http_headers", HeadersFromVariables),
    ("bearer_token_env_var", BearerFromVariable),
    ("apiKey", Bearer),
    ("http", Inner),
    ("requestOptions", Inner),
    ("type", Transport),
    ("transport", Transport),
    ("transportType", Transport),
    ("name", Silent),
    ("displayName", Silent),
    ("display_name", Silent),
    ("description", Silent),
    ("title", Silent),
    ("icon", Silent),
    ("source", Silent),
    ("gallery", Silent),
    ("version", Silent),
    ("bundled", Silent),
    ("timeout", Unused),
    ("startup_timeout_ms", Unused),
    ("autoApprove", Unused),
    ("alwaysAllow", Unused),
    ("trust", Unused),
    ("oauth", Unused),
    ("auth", Unused),
    ("settings", Unused),
    ("dev", Unused),
    ("maxRetries", Unused),
    ("required", Unused),
];

/// Mapping of a non-native key.
pub(super) fn key_mapping(key: &str) -> Option<KeyMapping> {
    let row = SERVER.iter().find(|(name, _)| *name == key);
    row.map(|(_, key_mapping)| *key_mapping)
}

/// Returns whether the value of a server key is used.
pub(super) fn is_used(key: &str) -> bool {
    match key_mapping(key) {
        Some(Silent | Unused) => false,
        Some(_) => true,
        None => keys::find(keys::SERVER, key).is_some(),
    }
}

/// Native equivalent of a key of another client.
pub(crate) fn native(key: &str) -> Option<&'static str> {
    match key_mapping(key)? {
        As(native) | Not(native) => Some(native),
        Headers | HeadersFromVariables | BearerFromVariable | Bearer => Some("headers"),
        Strategy(_) => Some("strategy"),
        Inner | Transport | Activation | Silent | Unused => None,
    }
}

/// Transport named by `type` or `transport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportKind {
    Program,
    Address,
    /// Not supported by mcpact.
    Foreign,
}

const CARRIERS: &[(&str, TransportKind)] = &[
    ("stdio", TransportKind::Program),
    ("local", TransportKind::Program),
    ("http", TransportKind::Address),
    ("streamable-http", TransportKind::Address),
    ("streamable_http", TransportKind::Address),
    ("streamableHttp", TransportKind::Address),
    ("sse", TransportKind::Address),
    ("remote", TransportKind::Address),
    ("ws", TransportKind::Foreign),
    ("websocket", TransportKind::Foreign),
    ("builtin", TransportKind::Foreign),
    ("platform", TransportKind::Foreign),
    ("frontend", TransportKind::Foreign),
    ("inline_python", TransportKind::Foreign),
];

/// Parses a transport name.
pub(super) fn transport_kind(word: &str) -> Option<TransportKind> {
    let row = CARRIERS.iter().find(|(name, _)| *name == word);
    row.map(|(_, transport_kind)| *transport_kind)
}

/// Top-level keys that apply to every server.
const RUNTIME: &[(&str, &str)] = &[
    ("routeTimeoutSeconds", "call_seconds"),
    ("pingIntervalSeconds", "health_seconds"),
    ("serverInitRetryBaseSeconds", "backoff_seconds"),
    ("serverInitRetryMaxSeconds", "backoff_max_seconds"),
];

/// Settings for every server; zero means unset.
pub(super) fn runtime(root: &Table) -> Vec<Member> {
    let said = RUNTIME.iter().filter_map(|(theirs, ours)| {
        let member = root.member(theirs)?;
        (member.node.value != Value::Whole(0)).then(|| renamed(member, ours))
    });
    said.collect()
}

/// Settings of the gateway.
pub(super) fn gateway(root: &Table) -> Option<Member> {
    let names = renamed(root.member("toolNamespaceStrategy")?, "names");
    Some(table("gateway", names.key_span, vec![names]))
}

/// Copy of a member under another key.
pub(super) fn renamed(member: &Member, key: &str) -> Member {
    Member {
        key: key.to_owned(),
        theirs: Some(member.written().to_owned()),
        ..member.clone()
    }
}

/// Table member.
pub(super) fn table(key: &str, span: Span, members: Vec<Member>) -> Member {
    let node = Node::new(span, Value::Table(Table(members)));
    Member::new(key.to_owned(), span, node)
}
