//! The headers of a modern request, told from its body.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_engine::classify::param_headers::{Annotation, annotations, argument, header_for};
use mcpact_spec::{Header, Method, Revision};
use mcpact_wire::header_value;
use mcpact_wire::raw::{Object, elements};

use super::Ordered;

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

/// `2026-07-28 basic/transports/streamable-http#protocol-headers`
pub(super) fn modern(order: Ordered<'_>, revision: Revision, book: &HeaderBook) -> HeaderMap {
    let mut facts = HeaderMap::with_capacity(4);
    insert(
        &mut facts,
        Header::ProtocolVersion.name(),
        revision.as_str(),
    );
    insert(
        &mut facts,
        Header::Method.name(),
        &header_value::encode(order.name),
    );
    let Some(key) = order.method.and_then(Method::name_param) else {
        return facts;
    };
    let params = Object::parse(order.params).unwrap_or_default();
    let Some(name) = params.get_str(key) else {
        return facts;
    };
    insert(
        &mut facts,
        Header::Name.name(),
        &header_value::encode(&name),
    );
    if order.method == Some(Method::ToolsCall)
        && let Some(annotations) = book.of(&name)
    {
        for annotation in annotations.iter() {
            let value = argument(annotation, params.get("arguments")).and_then(header_for);
            if let Some(value) = value {
                insert(&mut facts, &annotation.header, &value);
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
        insert(
            &mut facts,
            Header::ProtocolVersion.name(),
            revision.as_str(),
        );
    }
    if let Some(session) = session {
        facts.insert(HeaderName::from_static("mcp-session-id"), session.clone());
    }
    facts
}

/// Adds a header; what cannot stand in one is left for the server to miss.
fn insert(facts: &mut HeaderMap, name: &str, value: &str) {
    match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        (Ok(name), Ok(value)) => drop(facts.insert(name, value)),
        (Err(_), _) | (_, Err(_)) => tracing::warn!(name, "a header cannot be sent"),
    }
}
