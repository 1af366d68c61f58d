//! Headers of requests over HTTP, derived from the body.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_engine::classify::param_headers::{Annotation, annotations, argument, header_for};
use mcpact_spec::{Header, Method, Revision};
use mcpact_wire::envelope::Envelope;
use mcpact_wire::header_value;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::{Object, elements, member};
use mcpact_wire::scan::text;

use super::RawRequest;
use crate::lock;

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// Maximum number of remembered tools.
const MAX_TOOLS: usize = 4096;

/// Tool parameters of a server that are sent as headers.
#[derive(Debug, Default)]
pub struct ToolHeaders {
    tools: Mutex<HashMap<Box<str>, Arc<[Annotation]>>>,
}

impl ToolHeaders {
    /// Reads a page of the tool list. Tools with invalid annotations are skipped, as modern clients do.
    pub fn learn(&self, result: &str) {
        let Some(list) = Object::parse(result).ok().and_then(|r| r.get("tools")) else {
            return;
        };
        let mut tools = lock(&self.tools);
        for raw in elements(list).unwrap_or_default() {
            let tool = Object::parse(raw).unwrap_or_default();
            let (Some(name), Some(schema)) = (tool.get_str("name"), tool.get("inputSchema")) else {
                continue;
            };
            match annotations(schema) {
                Ok(found) if !found.is_empty() && tools.len() < MAX_TOOLS => {
                    tools.insert(name.into(), found.into());
                }
                Ok(_) | Err(_) => drop(tools.remove(name.as_ref())),
            }
        }
    }

    /// Returns the annotated parameters of a tool.
    pub fn of(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        lock(&self.tools).get(tool).cloned()
    }
}

/// Adds the trace context, for proxies that do not read messages.
pub(super) fn traced(mut headers: HeaderMap, trace: &TraceContext) -> HeaderMap {
    insert(&mut headers, TRACE_PARENT, trace.parent());
    if let Some(state) = trace.state() {
        insert(&mut headers, TRACE_STATE, state);
    }
    headers
}

/// Returns the headers of a modern request.
///
/// `2026-07-28 basic/transports/streamable-http#protocol-headers`
pub(super) fn modern(
    request: RawRequest<'_>,
    revision: Revision,
    tool_headers: &ToolHeaders,
) -> HeaderMap {
    // A larger map would be slower to allocate.
    let mut headers = HeaderMap::with_capacity(6);
    if let Some(trace) = request.trace {
        headers = traced(headers, trace);
    }
    headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    match request.method {
        Some(method) => {
            headers.insert(METHOD, HeaderValue::from_static(method.as_str()));
        }
        None => insert(&mut headers, METHOD, &header_value::encode(request.name)),
    }
    let Some(key) = request.method.and_then(Method::name_param) else {
        return headers;
    };
    let params = request.params.unwrap_or("{}");
    let Some(name) = member(params, key).and_then(text) else {
        return headers;
    };
    insert(&mut headers, NAME, &header_value::encode(&name));
    if request.method == Some(Method::ToolsCall)
        && let Some(annotations) = tool_headers.of(&name)
    {
        let arguments = member(params, "arguments");
        for annotation in annotations.iter() {
            let value = argument(annotation, arguments).and_then(header_for);
            match (value, HeaderName::try_from(&*annotation.header)) {
                (Some(value), Ok(name)) => insert(&mut headers, name, &value),
                (Some(_), Err(_)) => tracing::warn!("header not sent: invalid name"),
                (None, _) => {}
            }
        }
    }
    headers
}

/// Returns the headers of all messages in a session, and of notifications without one.
pub(super) fn of_session(revision: Revision, session: Option<&HeaderValue>) -> HeaderMap {
    use mcpact_spec::HeaderRule;
    let mut headers = HeaderMap::with_capacity(4);
    if let HeaderRule::AfterInitialize | HeaderRule::Required =
        Header::ProtocolVersion.rule(revision)
    {
        headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    }
    if let Some(session) = session {
        headers.insert(SESSION_ID, session.clone());
    }
    headers
}

/// Adds a header, or skips it if the value is invalid.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    match HeaderValue::try_from(value) {
        Ok(value) => drop(headers.insert(name, value)),
        Err(_) => tracing::warn!(%name, "header not sent: invalid value"),
    }
}

/// Returns the headers of the first message to a server; none before 2026-07-28.
pub(super) fn opening(message: &str) -> HeaderMap {
    let Ok(Envelope::Request(request)) = Envelope::parse(message.as_bytes()) else {
        return HeaderMap::new();
    };
    let version = request.params.meta.protocol_version.and_then(text);
    match version.and_then(|version| Revision::parse(&version)) {
        Some(revision) => {
            let request = RawRequest {
                method: Method::parse(&request.method),
                name: &request.method,
                params: request.params.raw,
                trace: None,
            };
            modern(request, revision, &ToolHeaders::default())
        }
        None => HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_match_the_spec() {
        for (ours, header) in [
            (SESSION_ID, Header::SessionId),
            (VERSION, Header::ProtocolVersion),
            (METHOD, Header::Method),
            (NAME, Header::Name),
        ] {
            assert!(header.name().eq_ignore_ascii_case(ours.as_str()), "{ours}");
        }
    }

    #[test]
    fn method_names_need_no_encoding() {
        for method in Method::ALL {
            assert_eq!(header_value::encode(method.as_str()), method.as_str());
        }
    }
}
