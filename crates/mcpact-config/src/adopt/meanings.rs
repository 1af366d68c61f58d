//! What the keys of others mean.

use crate::keys;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// What a key of another client means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The same as this native key.
    As(&'static str),
    /// The opposite of this native key.
    Not(&'static str),
    /// More headers.
    Headers,
    /// Headers whose values are names of variables.
    HeadersFromVariables,
    /// The name of a variable that holds a bearer token.
    BearerFromVariable,
    /// A bearer token, which takes the place of any other `Authorization`.
    Bearer,
    /// A table whose members belong to the server itself.
    Inner,
    /// How the server is reached, which its other keys say as well.
    Transport,
    /// With `true`: this strategy.
    Strategy(&'static str),
    /// When the server is started.
    Activation,
    /// For people, or for the other client only.
    Silent,
    /// Something that mcpact does not do.
    Unused,
}

use Meaning::{
    Activation, As, Bearer, BearerFromVariable, Headers, HeadersFromVariables, Inner, Not, Silent,
    Strategy, Transport, Unused,
};

/// Keys of one server, as other clients and gateways write them.
const SERVER: &[(&str, Meaning)] = &[
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

/// What a key of a server means, if it is not a native one.
pub(super) fn meaning(key: &str) -> Option<Meaning> {
    let row = SERVER.iter().find(|(name, _)| *name == key);
    row.map(|(_, meaning)| *meaning)
}

/// Whether what a key of a server says is used.
pub(super) fn is_used(key: &str) -> bool {
    match meaning(key) {
        Some(Silent | Unused) => false,
        Some(_) => true,
        None => keys::find(keys::SERVER, key).is_some(),
    }
}

/// The native key for what a key of another client means, if there is one that means the same.
pub(crate) fn native(key: &str) -> Option<&'static str> {
    match meaning(key)? {
        As(native) | Not(native) => Some(native),
        Headers | HeadersFromVariables | BearerFromVariable | Bearer => Some("headers"),
        Strategy(_) => Some("strategy"),
        Inner | Transport | Activation | Silent | Unused => None,
    }
}

/// What `type` and `transport` say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Program,
    Address,
    /// One that mcpact cannot reach.
    Foreign,
}

const CARRIERS: &[(&str, Carrier)] = &[
    ("stdio", Carrier::Program),
    ("local", Carrier::Program),
    ("http", Carrier::Address),
    ("streamable-http", Carrier::Address),
    ("streamable_http", Carrier::Address),
    ("streamableHttp", Carrier::Address),
    ("sse", Carrier::Address),
    ("remote", Carrier::Address),
    ("ws", Carrier::Foreign),
    ("websocket", Carrier::Foreign),
    ("builtin", Carrier::Foreign),
    ("platform", Carrier::Foreign),
    ("frontend", Carrier::Foreign),
    ("inline_python", Carrier::Foreign),
];

/// What a word for a carrier means.
pub(super) fn carrier(word: &str) -> Option<Carrier> {
    let row = CARRIERS.iter().find(|(name, _)| *name == word);
    row.map(|(_, carrier)| *carrier)
}

/// Keys beside the servers that hold for each of them.
const RUNTIME: &[(&str, &str)] = &[
    ("routeTimeoutSeconds", "call_seconds"),
    ("pingIntervalSeconds", "health_seconds"),
    ("serverInitRetryBaseSeconds", "backoff_seconds"),
    ("serverInitRetryMaxSeconds", "backoff_max_seconds"),
];

/// What holds for every server; zero means that nothing is said.
pub(super) fn runtime(root: &Table) -> Vec<Member> {
    let said = RUNTIME.iter().filter_map(|(theirs, ours)| {
        let member = root.member(theirs)?;
        (member.node.value != Value::Whole(0)).then(|| renamed(member, ours))
    });
    said.collect()
}

/// What is said about the gateway itself.
pub(super) fn gateway(root: &Table) -> Option<Member> {
    let names = renamed(root.member("toolNamespaceStrategy")?, "names");
    Some(table("gateway", names.key_span, vec![names]))
}

/// A member under another key.
pub(super) fn renamed(member: &Member, key: &str) -> Member {
    Member {
        key: key.to_owned(),
        theirs: Some(member.written().to_owned()),
        ..member.clone()
    }
}

/// A table under a key.
pub(super) fn table(key: &str, span: Span, members: Vec<Member>) -> Member {
    let node = Node::new(span, Value::Table(Table(members)));
    Member::new(key.to_owned(), span, node)
}
