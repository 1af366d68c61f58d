//! The last touch to a result: the shape that its client's revision wants.

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
use crate::server::error::HandlerError;

/// How a server says who it is, written once for each revision.
#[derive(Debug)]
pub(in crate::server) struct Signatures {
    all: Vec<Signature>,
}

#[derive(Debug)]
struct Signature {
    revision: Revision,
    /// The server's `Implementation`.
    info: String,
    /// The same as the last member of a result.
    tail: String,
}

impl Signature {
    fn new(revision: Revision, info: String) -> Self {
        let meta = ObjectWriter::new().raw(meta::SERVER_INFO, &info).finish();
        Self {
            revision,
            info,
            tail: format!(r#","_meta":{meta}"#),
        }
    }
}

impl Signatures {
    pub(in crate::server) fn of(terms: &ServerTerms) -> Self {
        let sign = |info: &Implementation| {
            let modern = Revision::ALL.into_iter();
            let modern = modern.filter(|revision| revision.era() == Era::Modern);
            modern
                .map(|revision| Signature::new(revision, info.encode(revision)))
                .collect()
        };
        let info = terms.party.info.as_deref();
        Self {
            all: info.map(sign).unwrap_or_default(),
        }
    }

    fn find(&self, revision: Revision) -> Option<&Signature> {
        self.all.iter().find(|one| one.revision == revision)
    }
}

impl Served {
    /// The result of a tool. Plain text has its final shape at once: it looks alike in every legacy
    /// revision, and what stands in it is known, so that it need not be looked through.
    pub(super) fn of_tool(
        result: &ToolResult,
        revision: Revision,
        signatures: &Signatures,
    ) -> Result<Self, HandlerError> {
        if !result.is_plain() {
            return Ok(Self::Result(result.encode()?));
        }
        Ok(Self::Final(match revision.era() {
            Era::Legacy => result.encode_plain(["{", ""], ["", "}"]),
            Era::Modern => {
                let signature = signatures.find(revision);
                let tail = signature.map_or("", |signature| signature.tail.as_str());
                result.encode_plain([COMPLETE, ","], [tail, "}"])
            }
        }))
    }

    /// The result as a client of this revision reads it.
    pub(super) fn shaped(
        self,
        method: Option<Method>,
        revision: Revision,
        signatures: &Signatures,
    ) -> String {
        let signature = signatures.find(revision);
        match (self, revision.era(), method) {
            (Self::Final(raw), _, _) | (Self::Result(raw), _, None) => raw,
            (Self::Result(raw), Era::Legacy, Some(method)) => {
                owned(shape::result_to_legacy(method, &raw, revision).ok()).unwrap_or(raw)
            }
            (Self::Result(raw), Era::Modern, Some(method)) => {
                let info = signature.map(|signature| signature.info.as_str());
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
    fn a_plain_result_is_shaped_like_any_other() {
        let info = Implementation::new("s", "1");
        let terms = ServerTerms::new(info, CapabilitySet::empty(Side::Server), Policy::default());
        let signatures = Signatures::of(&terms);
        for result in [
            ToolResult::default(),
            ToolResult::text("a \"b\""),
            ToolResult::error("no"),
        ] {
            let raw = result.encode().unwrap();
            for revision in Revision::ALL {
                let shape = |served: Served| -> Value {
                    let text = served.shaped(Some(Method::ToolsCall), revision, &signatures);
                    serde_json::from_str(&text).unwrap()
                };
                assert_eq!(
                    shape(Served::of_tool(&result, revision, &signatures).unwrap()),
                    shape(Served::Result(raw.clone())),
                    "{revision:?}"
                );
            }
        }
    }
}
