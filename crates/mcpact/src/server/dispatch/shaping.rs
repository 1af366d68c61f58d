//! Adaptation of results to the client's revision.

use std::borrow::Cow;

use mcpact_engine::server::ServerTerms;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method, Revision};
use mcpact_translate::shape;
use mcpact_wire::codec::modern::COMPLETE;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::ObjectWriter;

use super::Served;
use crate::model::ToolResult;
use crate::server::handler_error::HandlerError;

/// Encoded `Implementation` of the server for each modern revision.
#[derive(Debug)]
pub(in crate::server) struct ServerInfoTable {
    all: Vec<EncodedServerInfo>,
}

#[derive(Debug)]
struct EncodedServerInfo {
    revision: Revision,
    /// The server's `Implementation`.
    info: String,
    /// The same, as last member of a result.
    tail: String,
}

impl EncodedServerInfo {
    fn new(revision: Revision, info: String) -> Self {
        let meta = ObjectWriter::new().raw(meta::SERVER_INFO, &info).finish();
        Self {
            revision,
            info,
            tail: format!(r#","_meta":{meta}"#),
        }
    }
}

impl ServerInfoTable {
    pub(in crate::server) fn of(terms: &ServerTerms) -> Self {
        let encode = |info: &Implementation| {
            let modern = Revision::ALL.into_iter();
            let modern = modern.filter(|revision| revision.era() == Era::Modern);
            modern
                .map(|revision| EncodedServerInfo::new(revision, info.encode(revision)))
                .collect()
        };
        let info = terms.party.info.as_deref();
        Self {
            all: info.map(encode).unwrap_or_default(),
        }
    }

    fn find(&self, revision: Revision) -> Option<&EncodedServerInfo> {
        self.all.iter().find(|one| one.revision == revision)
    }
}

impl Served {
    /// Encodes the result of a tool. Plain text gets its final shape at once: it is the same in every legacy revision
    /// and needs no inspection.
    pub(super) fn of_tool(
        result: &ToolResult,
        revision: Revision,
        server_info: &ServerInfoTable,
    ) -> Result<Self, HandlerError> {
        if !result.is_plain() {
            return Ok(Self::Result(result.encode()?));
        }
        Ok(Self::Final(match revision.era() {
            Era::Legacy => result.encode_plain(["{", ""], ["", "}"]),
            Era::Modern => {
                let encoded = server_info.find(revision);
                let tail = encoded.map_or("", |encoded| encoded.tail.as_str());
                result.encode_plain([COMPLETE, ","], [tail, "}"])
            }
        }))
    }

    /// Returns the result in the shape of this revision.
    pub(super) fn shaped(
        self,
        method: Option<Method>,
        revision: Revision,
        server_info: &ServerInfoTable,
    ) -> String {
        let encoded = server_info.find(revision);
        match (self, revision.era(), method) {
            (Self::Final(raw), _, _) | (Self::Result(raw), _, None) => raw,
            (Self::Result(raw), Era::Legacy, Some(method)) => {
                owned(shape::result_to_legacy(method, &raw, revision).ok()).unwrap_or(raw)
            }
            (Self::Result(raw), Era::Modern, Some(method)) => {
                let info = encoded.map(|encoded| encoded.info.as_str());
                owned(shape::result_to_modern(method, &raw, revision, info).ok()).unwrap_or(raw)
            }
        }
    }
}

fn owned(shaped: Option<Cow<'_, str>>) -> Option<String> {
    match shaped? {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use mcpact_engine::capability::CapabilitySet;
    use mcpact_engine::policy::Policy;
    use mcpact_spec::Side;
    use serde_json::Value;

    use super::*;

    #[test]
    fn plain_results_are_shaped_like_others() {
        let info = Implementation::new("s", "1");
        let terms = ServerTerms::new(info, CapabilitySet::empty(Side::Server), Policy::default());
        let server_info = ServerInfoTable::of(&terms);
        for result in [
            ToolResult::default(),
            ToolResult::text("a \"b\""),
            ToolResult::error("no"),
        ] {
            let raw = result.encode().unwrap();
            for revision in Revision::ALL {
                let shape = |served: Served| -> Value {
                    let text = served.shaped(Some(Method::ToolsCall), revision, &server_info);
                    serde_json::from_str(&text).unwrap()
                };
                assert_eq!(
                    shape(Served::of_tool(&result, revision, &server_info).unwrap()),
                    shape(Served::Result(raw.clone())),
                    "{revision:?}"
                );
            }
        }
    }
}
