//! Keys of other clients and their native equivalents.

use crate::keys;
use crate::policy::has;
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
    /// Use of a proxy.
    Proxy,
    /// Ignored: display text or client-specific.
    Silent,
    /// Not supported by mcpact.
    Unused,
}

use KeyMapping::{
    Activation, As, Bearer, BearerFromVariable, Headers, HeadersFromVariables, Inner, Not, Proxy,
    Silent, Strategy, Transport, Unused,
};

/// Server keys of other clients and gateways, separated by spaces.
const SERVER: &[(KeyMapping, &str)] = &[
    (As("url"), "serverUrl httpUrl baseUrl endpoint uri"),
    (As("command"), "cmd path"),
    (As("args"), "arguments"),
    (As("env"), "environment envs"),
    (As("env_file"), "envFile"),
    (As("inherit"), "env_vars env_keys"),
    (As("cwd"), "workingDirectory"),
    (As("enabled"), "isActive"),
    (Not("enabled"), "disabled"),
    (
        As("tools"),
        "enabled_tools enabledTools includeTools exposeTools available_tools",
    ),
    (
        As("hidden_tools"),
        "disabled_tools disabledTools excludeTools",
    ),
    (As("start_seconds"), "startup_timeout_sec"),
    (As("call_seconds"), "tool_timeout_sec"),
    (As("idle_seconds"), "idleSeconds"),
    (As("max_concurrent"), "maxConcurrent"),
    (As("max_instances"), "maxInstances"),
    (As("min_ready"), "minReady"),
    (As("drain_seconds"), "drainTimeoutSeconds"),
    (As("session_seconds"), "sessionTTLSeconds"),
    (As("era"), "protocolVersion protocol_version protocolEra"),
    (Strategy("stateful"), "sticky"),
    (Strategy("persistent"), "persistent"),
    (Activation, "activationMode"),
    (Proxy, "proxy"),
    (Headers, "headers http_headers"),
    (HeadersFromVariables, "env_http_headers"),
    (BearerFromVariable, "bearer_token_env_var"),
    (Bearer, "apiKey"),
    (Inner, "http requestOptions"),
    (Transport, "type transport transportType"),
    (
        Silent,
        "name displayName display_name description title icon source gallery version bundled",
    ),
    (
        Unused,
        "timeout startup_timeout_ms autoApprove alwaysAllow trust oauth auth settings dev \
         maxRetries required",
    ),
];

/// Mapping of a non-native key.
pub(super) fn key_mapping(key: &str) -> Option<KeyMapping> {
    let row = SERVER.iter().find(|(_, names)| has(names, key));
    row.map(|(key_mapping, _)| *key_mapping)
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
        Proxy => Some("proxy"),
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

const TRANSPORTS: &[(TransportKind, &str)] = &[
    (TransportKind::Program, "stdio local"),
    (
        TransportKind::Address,
        "http streamable-http streamable_http streamableHttp sse remote",
    ),
    (
        TransportKind::Foreign,
        "ws websocket builtin platform frontend inline_python",
    ),
];

/// Parses a transport name.
pub(super) fn transport_kind(word: &str) -> Option<TransportKind> {
    let row = TRANSPORTS.iter().find(|(_, names)| has(names, word));
    row.map(|(transport_kind, _)| *transport_kind)
}

/// Top-level keys that apply to every server.
const RUNTIME: &[(&str, &str)] = &[
    ("routeTimeoutSeconds", "call_seconds"),
    ("pingIntervalSeconds", "health_seconds"),
    ("serverInitRetryBaseSeconds", "backoff_seconds"),
    ("serverInitRetryMaxSeconds", "backoff_max_seconds"),
    ("serverInitMaxRetries", "failures"),
];

/// Settings for every server; zero means unset, and no health checks for their interval.
pub(super) fn runtime(root: &Table) -> Vec<Member> {
    let said = RUNTIME.iter().filter_map(|(theirs, ours)| {
        let member = root.member(theirs)?;
        match (&member.node.value, *ours) {
            (Value::Whole(0), "health_seconds") => {
                Some(with_text(&renamed(member, "health"), "off"))
            }
            (Value::Whole(0), _) => None,
            (_, ours) => Some(renamed(member, ours)),
        }
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

/// Copy of a member with another text.
pub(super) fn with_text(member: &Member, text: &str) -> Member {
    let mut member = member.clone();
    member.node.value = Value::from(text);
    member
}

/// Table member.
pub(super) fn table(key: &str, span: Span, members: Vec<Member>) -> Member {
    let node = Node::new(span, Value::Table(Table(members)));
    Member::new(key.to_owned(), span, node)
}
