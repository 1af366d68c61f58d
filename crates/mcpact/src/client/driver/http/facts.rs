//! Headers of a message, derived from the message.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_engine::classify::param_headers::{argument, header_for};
use mcpact_spec::{Header, HeaderRule, Method};
use mcpact_wire::envelope::{Envelope, Params};
use mcpact_wire::header_value;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use crate::client::core::Core;

/// Returns the headers of a message.
pub(super) fn of_message(
    envelope: &Envelope<'_>,
    core: &Core,
    session: Option<&HeaderValue>,
) -> HeaderMap {
    let version = envelope
        .params()
        .and_then(|params| params.meta.protocol_version)
        .and_then(text);
    match (version, envelope.method(), envelope.params()) {
        (Some(version), Some(method), Some(params)) => modern(&version, method, params, core),
        // 2025-11-25 basic/transports#protocol-version-header: on subsequent requests only.
        (None, Some(method), _) if method == Method::Initialize.as_str() => HeaderMap::new(),
        _ => of_session(core, session),
    }
}

/// Returns the headers of everything after the handshake.
pub(super) fn of_session(core: &Core, session: Option<&HeaderValue>) -> HeaderMap {
    let mut facts = HeaderMap::new();
    // The machine drops its pact when it closes; the server still needs the headers.
    if let Some(agreement) = core.shared.agreement() {
        let revision = agreement.pact.revision();
        match Header::ProtocolVersion.rule(revision) {
            HeaderRule::AfterInitialize | HeaderRule::Required => {
                insert(
                    &mut facts,
                    Header::ProtocolVersion.name(),
                    revision.as_str(),
                );
            }
            _ => {}
        }
    }
    if let Some(session) = session {
        facts.insert(HeaderName::from_static("mcp-session-id"), session.clone());
    }
    facts
}

/// `2026-07-28 basic/transports/streamable-http#protocol-headers`
fn modern(version: &str, method: &str, params: &Params<'_>, core: &Core) -> HeaderMap {
    let mut facts = HeaderMap::new();
    insert(&mut facts, Header::ProtocolVersion.name(), version);
    insert(
        &mut facts,
        Header::Method.name(),
        &header_value::encode(method),
    );
    let Some(known) = Method::parse(method) else {
        return facts;
    };
    let name = known
        .name_param()
        .and_then(|key| params.routing_member(key))
        .and_then(text);
    let Some(name) = name else {
        return facts;
    };
    insert(
        &mut facts,
        Header::Name.name(),
        &header_value::encode(&name),
    );
    if known == Method::ToolsCall
        && let Some(annotations) = core.shared.annotations(&name)
    {
        let body = Object::parse(params.raw.unwrap_or("{}")).unwrap_or_default();
        for annotation in annotations.iter() {
            let value = argument(annotation, body.get("arguments")).and_then(header_for);
            if let Some(value) = value {
                insert(&mut facts, &annotation.header, &value);
            }
        }
    }
    facts
}

/// Adds a header, unless its value is invalid.
fn insert(facts: &mut HeaderMap, name: &str, value: &str) {
    match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        (Ok(name), Ok(value)) => drop(facts.insert(name, value)),
        (Err(_), _) | (_, Err(_)) => tracing::warn!(name, "invalid header not sent"),
    }
}
