//! The headers of a modern request, told from its body.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_engine::classify::param_headers::{Annotation, annotations, argument, header_for};
use mcpact_spec::{Header, Method, Revision};
use mcpact_wire::envelope::Envelope;
use mcpact_wire::header_value;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::{Object, elements, member};
use mcpact_wire::scan::text;

use super::Ordered;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// How many tools are remembered.
const LIMIT: usize = 4096;

/// What is known about the tools of a server: which of their parameters have headers.
#[derive(Debug, Default)]
pub(crate) struct HeaderBook {
    tools: Mutex<HashMap<Box<str>, Arc<[Annotation]>>>,
}

impl HeaderBook {
    fn tools(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<[Annotation]>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a page of the tool list. Tools whose annotations are invalid are not remembered; a
    /// modern client leaves them out by itself.
    pub(crate) fn learn(&self, result: &str) {
        let Some(list) = Object::parse(result).ok().and_then(|r| r.get("tools")) else {
            return;
        };
        let mut tools = self.tools();
        for raw in elements(list).unwrap_or_default() {
            let tool = Object::parse(raw).unwrap_or_default();
            let (Some(name), Some(schema)) = (tool.get_str("name"), tool.get("inputSchema")) else {
                continue;
            };
            match annotations(schema) {
                Ok(found) if !found.is_empty() && tools.len() < LIMIT => {
                    tools.insert(name.into(), found.into());
                }
                Ok(_) | Err(_) => drop(tools.remove(name.as_ref())),
            }
        }
    }

    /// The parameters of a tool that have headers.
    pub(crate) fn of(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        self.tools().get(tool).cloned()
    }
}

/// The headers with the place in a trace, which those look for there who do not read messages.
pub(super) fn traced(mut facts: HeaderMap, trace: &TraceContext) -> HeaderMap {
    insert(&mut facts, TRACE_PARENT, trace.parent());
    if let Some(state) = trace.state() {
        insert(&mut facts, TRACE_STATE, state);
    }
    facts
}

/// `2026-07-28 basic/transports/streamable-http#protocol-headers`
pub(super) fn modern(order: Ordered<'_>, revision: Revision, book: &HeaderBook) -> HeaderMap {
    // More room than most need would be slow to get.
    let mut facts = HeaderMap::with_capacity(6);
    if let Some(trace) = order.trace {
        facts = traced(facts, trace);
    }
    facts.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    match order.method {
        Some(method) => {
            facts.insert(METHOD, HeaderValue::from_static(method.as_str()));
        }
        None => insert(&mut facts, METHOD, &header_value::encode(order.name)),
    }
    let Some(key) = order.method.and_then(Method::name_param) else {
        return facts;
    };
    let Some(name) = member(order.params, key).and_then(text) else {
        return facts;
    };
    insert(&mut facts, NAME, &header_value::encode(&name));
    if order.method == Some(Method::ToolsCall)
        && let Some(annotations) = book.of(&name)
    {
        let arguments = member(order.params, "arguments");
        for annotation in annotations.iter() {
            let value = argument(annotation, arguments).and_then(header_for);
            match (value, HeaderName::try_from(&*annotation.header)) {
                (Some(value), Ok(name)) => insert(&mut facts, name, &value),
                (Some(_), Err(_)) => tracing::warn!("header not sent: invalid name"),
                (None, _) => {}
            }
        }
    }
    facts
}

/// What goes with everything in a session.
pub(super) fn legacy(revision: Revision, session: Option<&HeaderValue>) -> HeaderMap {
    use mcpact_spec::HeaderRule;
    let mut facts = HeaderMap::with_capacity(4);
    if let HeaderRule::AfterInitialize | HeaderRule::Required =
        Header::ProtocolVersion.rule(revision)
    {
        facts.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    }
    if let Some(session) = session {
        facts.insert(SESSION_ID, session.clone());
    }
    facts
}

/// Adds a header; what cannot stand in one is left for the server to miss.
fn insert(facts: &mut HeaderMap, name: HeaderName, value: &str) {
    match HeaderValue::try_from(value) {
        Ok(value) => drop(facts.insert(name, value)),
        Err(_) => tracing::warn!(%name, "header not sent: invalid value"),
    }
}

/// The headers of the first message to a server; none before 2026-07-28.
pub(super) fn of_opening(message: &str) -> HeaderMap {
    let Ok(Envelope::Request(request)) = Envelope::parse(message.as_bytes()) else {
        return HeaderMap::new();
    };
    let version = request.params.meta.protocol_version.and_then(text);
    match version.and_then(|version| Revision::parse(&version)) {
        Some(revision) => {
            let order = Ordered {
                method: Method::parse(&request.method),
                name: &request.method,
                params: request.params.raw.unwrap_or("{}"),
                trace: None,
            };
            modern(order, revision, &HeaderBook::default())
        }
        None => HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_names_of_the_table() {
        for (ours, header) in [
            (SESSION_ID, Header::SessionId),
            (VERSION, Header::ProtocolVersion),
            (METHOD, Header::Method),
            (NAME, Header::Name),
        ] {
            assert!(header.name().eq_ignore_ascii_case(ours.as_str()), "{ours}");
        }
    }

    /// A method is written as it is: none has a character that a header must not carry.
    #[test]
    fn methods_need_no_encoding() {
        for method in Method::ALL {
            assert_eq!(header_value::encode(method.as_str()), method.as_str());
        }
    }
}
