//! The headers that a well-behaved HTTP client sends with a message.

use mcpact_engine::classify::{HeaderField, HttpFacts, SessionFact, TransportFacts, Verb};
use mcpact_spec::Revision;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::scan::text;

/// Headers, owned.
#[derive(Debug)]
pub(super) struct Headers {
    version: Option<String>,
    method: Option<String>,
    name: Option<String>,
    session: SessionFact,
}

impl Headers {
    /// Headers of this message, on an endpoint with a session negotiated on `negotiated`.
    ///
    /// `2026-07-28 basic/transports/streamable-http#request-headers`: a modern request mirrors its version, method and
    /// name, and has no session. A legacy one names its session, except for the `initialize` that opens it.
    pub(super) fn of(bytes: &[u8], negotiated: Option<Revision>) -> Self {
        let envelope = Envelope::parse(bytes).ok();
        let params = envelope.as_ref().and_then(Envelope::params);
        let method = envelope.as_ref().and_then(Envelope::method);
        let stamped = params.and_then(|p| p.meta.protocol_version).and_then(text);
        if let Some(version) = stamped {
            let name = params.and_then(|p| p.name.or(p.uri).or(p.task_id));
            return Self {
                version: Some(version.into_owned()),
                method: method.map(str::to_owned),
                name: name.and_then(text).map(|n| n.into_owned()),
                session: SessionFact::Absent,
            };
        }
        let session = match (method, negotiated) {
            (Some("initialize"), _) | (_, None) => SessionFact::Absent,
            (_, Some(revision)) => SessionFact::Live(revision),
        };
        let version = match session {
            SessionFact::Live(revision) => Some(revision.as_str().to_owned()),
            SessionFact::Absent | SessionFact::Unknown => None,
        };
        Self {
            version,
            method: None,
            name: None,
            session,
        }
    }
}

fn once(value: Option<&String>) -> HeaderField<'_> {
    value.map_or(HeaderField::Absent, |value| HeaderField::Once(value))
}

/// Transport facts of the message for the server.
pub(super) fn facts(headers: Option<&Headers>) -> TransportFacts<'_> {
    match headers {
        None => TransportFacts::Stream,
        Some(headers) => TransportFacts::Http(HttpFacts {
            verb: Verb::Post,
            version: once(headers.version.as_ref()),
            method: once(headers.method.as_ref()),
            name: once(headers.name.as_ref()),
            session: headers.session,
        }),
    }
}
