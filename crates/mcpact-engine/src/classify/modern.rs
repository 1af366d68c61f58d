//! Checks of a modern request, in a fixed order; each may refuse it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mcpact_spec::tables::meta;
use mcpact_spec::{Header, Kind, LogLevel, Method, Revision, Side};
use mcpact_wire::envelope::Request;
use mcpact_wire::header_value;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::JsonKind;
use mcpact_wire::scan::text;

use super::facts::{HeaderField, HttpFacts, TransportFacts};
use crate::pact::{Pact, Party};
use crate::policy::Policy;
use crate::refusal::{HeaderFault, Incompatible, Misbehaviour, Refusal, VersionFault};
use crate::revisions::RevisionId;
use crate::version;

/// A modern request that may be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModernCall {
    /// Agreement of this one request with its server.
    pub pact: Arc<Pact>,
    /// Origin of the pact.
    pub source: PactSource,
    /// The method, if any revision defines it.
    pub method: Option<Method>,
    /// Lowest level of log messages that the request wants; none unless it says so.
    pub log_level: Option<LogLevel>,
}

/// Origin of a pact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PactSource {
    /// It was made for this request.
    New,
    /// An earlier request said exactly the same.
    Cached,
}

/// The agreement of an earlier request, for the next one that says exactly the same.
///
/// Nothing is inferred from it: it is used only for a request with the same bytes of metadata,
/// and then it is what that request would have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPact {
    revision: Revision,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    pact: Arc<Pact>,
}

/// Input of the checks, and results of the earlier ones.
struct Admission<'a> {
    request: &'a Request<'a>,
    http: Option<&'a HttpFacts<'a>>,
    server: &'a Party,
    policy: &'a Policy,
    written: &'a str,
    capabilities: &'a str,
    revision: Option<Revision>,
    cache: &'a mut Option<Arc<CachedPact>>,
    pact: Option<Arc<Pact>>,
    source: PactSource,
    method: Option<Method>,
    log_level: Option<LogLevel>,
}

type Check = fn(&mut Admission<'_>) -> Result<(), Refusal>;

/// The rungs in their order. What comes before (origin, authorisation, JSON, JSON-RPC) is the
/// carrier's and the envelope's; what comes after (parameters) is the method's.
const CHECKS: [Check; 8] = [
    required_meta,
    version_header,
    supported_version,
    method_header,
    agreement,
    available_method,
    name_header,
    log_level,
];

/// Judges a modern request by everything but its parameters. `cache` belongs to the owner of server
/// and policy, and saves building the same pact again.
///
/// # Errors
/// The first check that it fails.
pub fn admit(
    request: &Request<'_>,
    facts: &TransportFacts<'_>,
    server: &Party,
    policy: &Policy,
    cache: &mut Option<Arc<CachedPact>>,
) -> Result<ModernCall, Refusal> {
    let mut admission = Admission {
        request,
        http: facts.http(),
        server,
        policy,
        written: "",
        capabilities: "",
        revision: None,
        cache,
        pact: None,
        source: PactSource::New,
        method: None,
        log_level: None,
    };
    for check in CHECKS {
        check(&mut admission)?;
    }
    match admission.pact {
        Some(pact) => Ok(ModernCall {
            pact,
            source: admission.source,
            method: admission.method,
            log_level: admission.log_level,
        }),
        None => Err(meta_fault(meta::PROTOCOL_VERSION, "a string")),
    }
}

fn meta_fault(key: &'static str, expected: &'static str) -> Refusal {
    Misbehaviour::Meta { key, expected }.into()
}

/// `2026-07-28 basic/index#request-metadata`: version and capabilities are required, who the
/// client is is not.
fn required_meta(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let found = admission.request.params.meta;
    let is_kind = |raw: &&str, kind| JsonKind::of(raw) == kind;
    admission.written = found
        .protocol_version
        .filter(|raw| is_kind(raw, JsonKind::String))
        .ok_or_else(|| meta_fault(meta::PROTOCOL_VERSION, "a string"))?;
    admission.capabilities = found
        .client_capabilities
        .filter(|raw| is_kind(raw, JsonKind::Object))
        .ok_or_else(|| meta_fault(meta::CLIENT_CAPABILITIES, "an object"))?;
    Ok(())
}

fn header_fault(header: Header, fault: HeaderFault) -> Refusal {
    Misbehaviour::Header {
        name: Box::from(header.name()),
        fault,
    }
    .into()
}

/// Compares a header with the body; values are compared exactly, white space around them is not.
fn mirrors(header: Header, seen: HeaderField<'_>, body: Option<&str>) -> Result<(), Refusal> {
    let value = match seen {
        HeaderField::Absent => return Err(header_fault(header, HeaderFault::Missing)),
        HeaderField::Repeated => return Err(header_fault(header, HeaderFault::Repeated)),
        HeaderField::Once(value) => value,
    };
    let decoded =
        header_value::decode(value).map_err(|_| header_fault(header, HeaderFault::Malformed))?;
    if Some(decoded.as_ref()) == body {
        Ok(())
    } else {
        Err(header_fault(header, HeaderFault::Differs))
    }
}

fn version_header(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let Some(http) = admission.http else {
        return Ok(());
    };
    mirrors(
        Header::ProtocolVersion,
        http.version,
        text(admission.written).as_deref(),
    )
}

fn supported_version(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let policy = &admission.policy.version;
    let written = text(admission.written).unwrap_or_default();
    match Revision::parse(&written) {
        Some(r) if version::served_per_request(policy).contains(r) => {
            admission.revision = Some(r);
            Ok(())
        }
        Some(_) | None => Err(Incompatible::Version {
            requested: RevisionId::parse(&written),
            supported: version::announced(policy),
            why: VersionFault::NotSupported,
        }
        .into()),
    }
}

fn method_header(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let Some(http) = admission.http else {
        return Ok(());
    };
    mirrors(Header::Method, http.method, Some(&admission.request.method))
}

/// Builds the pact of this one request; nothing is inferred from earlier ones.
fn agreement(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let Some(revision) = admission.revision else {
        return Ok(());
    };
    let info = admission.request.params.meta.client_info;
    if let Some(known) = admission.cache
        && known.revision == revision
        && *known.capabilities == *admission.capabilities
        && known.info.as_deref() == info
    {
        admission.pact = Some(Arc::clone(&known.pact));
        admission.source = PactSource::Cached;
        return Ok(());
    }
    let who = info.and_then(|raw| Implementation::parse(meta::CLIENT_INFO, Some(raw)).ok());
    let capabilities = Some(admission.capabilities);
    let client = Party::parse(Side::Client, who, capabilities, admission.policy)?;
    let pact = Pact::new(revision, client, admission.server.clone());
    crate::negotiate::require(&pact, Side::Client, admission.policy)?;
    let pact = Arc::new(pact);
    *admission.cache = Some(Arc::new(CachedPact {
        revision,
        capabilities: Box::from(admission.capabilities),
        info: info.map(Box::from),
        pact: Arc::clone(&pact),
    }));
    admission.pact = Some(pact);
    Ok(())
}

fn available_method(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let Some(pact) = &admission.pact else {
        return Ok(());
    };
    let name = &admission.request.method;
    let ruling = pact.rule_with(admission.policy.unknown, Side::Client, Kind::Request, name);
    admission.method = ruling.method;
    if !ruling.is_open() {
        return Err(Refusal::not_allowed(name, ruling));
    }
    crate::gate::require_of_client(pact, admission.policy, name)
}

fn name_header(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let (Some(http), Some(key)) = (
        admission.http,
        admission.method.and_then(Method::name_param),
    ) else {
        return Ok(());
    };
    let body = admission.request.params.routing_member(key).and_then(text);
    mirrors(Header::Name, http.name, body.as_deref())
}

fn log_level(admission: &mut Admission<'_>) -> Result<(), Refusal> {
    let Some(raw) = admission.request.params.meta.log_level else {
        return Ok(());
    };
    let level = text(raw).and_then(|name| LogLevel::parse(&name));
    admission.log_level = Some(level.ok_or_else(|| Misbehaviour::LogLevel(Box::from(raw)))?);
    Ok(())
}
