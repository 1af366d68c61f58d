//! The decision of a dual-era server: which of its two halves a message belongs to.

use alloc::boxed::Box;

use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Envelope;

use super::facts::{HeaderField, HttpFacts, SessionFact, TransportFacts, Verb};
use crate::policy::VersionPolicy;
use crate::refusal::{HeaderFault, Incompatible, Misbehaviour, Refusal, VersionFault};
use crate::revisions::{RevisionId, RevisionSet};
use crate::version;

/// Session rule for legacy HTTP clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacySessions {
    /// Sessions are handed out and demanded.
    Required,
    /// Every request stands alone.
    Stateless,
}

/// Revisions and sessions that an endpoint offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Revisions for the handshake.
    pub legacy: RevisionSet,
    /// Revisions for requests with metadata.
    pub modern: RevisionSet,
    /// Session rule for legacy HTTP clients.
    pub sessions: LegacySessions,
}

impl Endpoint {
    /// The endpoint that a version policy describes.
    #[must_use]
    pub fn of(policy: &VersionPolicy, sessions: LegacySessions) -> Self {
        Self {
            legacy: version::acceptable(policy),
            modern: version::served_per_request(policy),
            sessions,
        }
    }

    /// Newest offered revision of the era, for peers that agreed on none.
    ///
    /// Without a legacy revision on offer, the answer to a legacy peer is a modern one.
    #[must_use]
    pub fn newest(&self, era: Era) -> Revision {
        match era {
            Era::Legacy => self.legacy.newest(),
            Era::Modern => None,
        }
        .or(self.modern.newest())
        .unwrap_or(Revision::newest(Era::Modern))
    }

    fn all(&self) -> RevisionSet {
        self.legacy
            .iter()
            .chain(self.modern.iter())
            .fold(RevisionSet::NONE, RevisionSet::with)
    }
}

/// Destination of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A stream is opened or a session ended, the legacy way.
    LegacyControl,
    /// This verb is not served: 405.
    NotAllowed,
    /// A batch, under the only revision that has them.
    Batch(Revision),
    /// A request with its own metadata, served without any state.
    Modern,
    /// `initialize`: a legacy conversation begins.
    LegacyOpen,
    /// A message of a legacy conversation.
    Legacy(Revision),
    /// An answer where none was asked for: ignored and logged.
    StrayResponse,
    /// A notification or a ping on a stream before the handshake; it shows no era.
    Unopened,
    /// Not acceptable.
    Refused(Refusal),
}

/// Decides where a message goes. `negotiated` is what a stream connection shook hands on, if it did.
///
/// The first rule that fits decides; modern metadata wins over everything that a header says, and
/// even over the name `initialize`.
#[must_use]
pub fn route(
    frame: Option<&Frame<'_>>,
    facts: &TransportFacts<'_>,
    negotiated: Option<Revision>,
    endpoint: &Endpoint,
) -> Route {
    let http = facts.http();
    let frame = match (http.map(|h| h.verb), frame) {
        (Some(Verb::Get | Verb::Delete), _) if !endpoint.legacy.is_empty() => {
            return Route::LegacyControl;
        }
        (Some(Verb::Get | Verb::Delete | Verb::Other), _) | (_, None) => return Route::NotAllowed,
        (Some(Verb::Post) | None, Some(frame)) => frame,
    };
    let session = http.map_or_else(
        || negotiated.map_or(SessionFact::Absent, SessionFact::Live),
        |h| h.session,
    );
    match frame {
        Frame::Batch(_) => batch(http, session, endpoint),
        Frame::Single(envelope) => single(envelope, http, session, endpoint),
    }
}

fn batch(http: Option<&HttpFacts<'_>>, session: SessionFact, endpoint: &Endpoint) -> Route {
    let assumed = Revision::ASSUMED_WITHOUT_HEADER;
    let has_header = http.is_some_and(|h| h.version != HeaderField::Absent);
    let revision = match session {
        SessionFact::Live(revision) => Some(revision),
        SessionFact::Absent if http.is_some() && !has_header => {
            endpoint.legacy.contains(assumed).then_some(assumed)
        }
        SessionFact::Absent | SessionFact::Unknown => None,
    };
    match revision {
        Some(r) if r.has(mcpact_spec::Feature::Batching) => Route::Batch(r),
        Some(_) | None => refused(Misbehaviour::Batch),
    }
}

fn single(
    envelope: &Envelope<'_>,
    http: Option<&HttpFacts<'_>>,
    session: SessionFact,
    endpoint: &Endpoint,
) -> Route {
    let method = envelope.method();
    let has_meta = envelope
        .params()
        .is_some_and(|p| p.meta.protocol_version.is_some());
    if has_meta && !endpoint.modern.is_empty() {
        return Route::Modern;
    }
    if method == Some(Method::Initialize.as_str()) {
        return if endpoint.legacy.is_empty() {
            refused_version(initialize_version(envelope), endpoint)
        } else {
            Route::LegacyOpen
        };
    }
    match (http, session) {
        (Some(http), SessionFact::Live(revision)) => session_route(http, revision),
        (None, SessionFact::Live(revision)) => Route::Legacy(revision),
        (_, SessionFact::Unknown) => refused(Misbehaviour::UnknownSession),
        (Some(http), SessionFact::Absent) => no_session(http, endpoint),
        (None, SessionFact::Absent) => on_fresh_stream(envelope, endpoint),
    }
}

fn session_route(http: &HttpFacts<'_>, negotiated: Revision) -> Route {
    match http.version {
        HeaderField::Absent => Route::Legacy(negotiated),
        HeaderField::Once(text) if text.trim() == negotiated.as_str() => Route::Legacy(negotiated),
        HeaderField::Once(text) => refused(Misbehaviour::SessionVersion {
            found: Box::from(text.trim()),
        }),
        HeaderField::Repeated => refused(version_header(HeaderFault::Repeated)),
    }
}

fn no_session(http: &HttpFacts<'_>, endpoint: &Endpoint) -> Route {
    let text = match http.version {
        HeaderField::Repeated => return refused(version_header(HeaderFault::Repeated)),
        HeaderField::Absent => {
            let assumed = Revision::ASSUMED_WITHOUT_HEADER;
            return match endpoint.sessions {
                LegacySessions::Stateless if endpoint.legacy.contains(assumed) => {
                    Route::Legacy(assumed)
                }
                LegacySessions::Required if endpoint.legacy.contains(assumed) => {
                    refused(Misbehaviour::MissingSession)
                }
                LegacySessions::Stateless | LegacySessions::Required => {
                    refused(version_header(HeaderFault::Missing))
                }
            };
        }
        HeaderField::Once(text) => text.trim(),
    };
    match Revision::parse(text) {
        Some(r) if r.era() == Era::Modern => Route::Modern,
        Some(r) if endpoint.legacy.contains(r) => match endpoint.sessions {
            LegacySessions::Required => refused(Misbehaviour::MissingSession),
            LegacySessions::Stateless => Route::Legacy(r),
        },
        Some(_) | None => refused_version(RevisionId::parse(text), endpoint),
    }
}

fn on_fresh_stream(envelope: &Envelope<'_>, endpoint: &Endpoint) -> Route {
    match envelope {
        Envelope::Response(_) => Route::StrayResponse,
        Envelope::Notification(_) => Route::Unopened,
        Envelope::Request(_) if endpoint.legacy.is_empty() => Route::Modern,
        // 2025-11-25 basic/lifecycle#initialization: pings are allowed before everything else.
        Envelope::Request(request) if request.method == Method::Ping.as_str() => Route::Unopened,
        Envelope::Request(request) => {
            let method = Box::from(request.method.as_ref());
            refused(if endpoint.modern.is_empty() {
                Misbehaviour::NotInitialized {
                    method,
                    missing: Method::Initialize,
                }
            } else {
                Misbehaviour::NotOpened { method }
            })
        }
    }
}

fn version_header(fault: HeaderFault) -> Misbehaviour {
    Misbehaviour::Header {
        name: Box::from(mcpact_spec::Header::ProtocolVersion.name()),
        fault,
    }
}

fn initialize_version(envelope: &Envelope<'_>) -> RevisionId {
    let params = envelope.params().and_then(|p| p.raw);
    let requested = mcpact_wire::model::initialize::requested_version(params);
    RevisionId::parse(requested.ok().flatten().as_deref().unwrap_or_default())
}

fn refused(misbehaviour: Misbehaviour) -> Route {
    Route::Refused(misbehaviour.into())
}

fn refused_version(requested: RevisionId, endpoint: &Endpoint) -> Route {
    Route::Refused(
        Incompatible::Version {
            requested,
            supported: endpoint.all(),
            why: VersionFault::NotSupported,
        }
        .into(),
    )
}
