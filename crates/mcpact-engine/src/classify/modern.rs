//! The ladder of a modern request: each rung may refuse it, and the order is a table.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mcpact_spec::tables::meta;
use mcpact_spec::{Header, Kind, LogLevel, Method, Revision, Side};
use mcpact_wire::envelope::Request;
use mcpact_wire::header_value;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::JsonKind;
use mcpact_wire::scan::text;

use super::facts::{CarrierFacts, HttpFacts, Seen};
use crate::capability::CapabilitySet;
use crate::pact::{Pact, Party};
use crate::policy::Policy;
use crate::refusal::{HeaderFault, Incompatible, Misbehaviour, Refusal, VersionFault};
use crate::revisions::RevisionId;
use crate::version;

/// A modern request that may be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModernCall {
    /// What this one request and its server have agreed on.
    pub pact: Arc<Pact>,
    /// Whether the same was agreed on before.
    pub standing: Standing,
    /// The method, if any revision defines it.
    pub method: Option<Method>,
    /// Which log messages the request wants; none unless it says so.
    pub log_level: Option<LogLevel>,
}

/// Whether an agreement is new to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was made for this request.
    New,
    /// An earlier request said exactly the same.
    Remembered,
}

/// The agreement of an earlier request, for the next one that says exactly the same.
///
/// Nothing is inferred from it: it is used only for a request whose own metadata has the same bytes,
/// and then it is what that request would have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    revision: Revision,
    capabilities: Box<str>,
    info: Option<Box<str>>,
    pact: Arc<Pact>,
}

/// What the rungs look at, and what the earlier ones found.
struct Climb<'a> {
    request: &'a Request<'a>,
    http: Option<&'a HttpFacts<'a>>,
    server: &'a Party,
    policy: &'a Policy,
    written: &'a str,
    capabilities: &'a str,
    revision: Option<Revision>,
    memory: &'a mut Option<Arc<Remembered>>,
    pact: Option<Arc<Pact>>,
    standing: Standing,
    method: Option<Method>,
    log_level: Option<LogLevel>,
}

type Rung = fn(&mut Climb<'_>) -> Result<(), Refusal>;

/// The rungs in their order. What comes before (origin, authorisation, JSON, JSON-RPC) is the
/// carrier's and the envelope's; what comes after (parameters) is the method's.
const LADDER: [Rung; 8] = [
    required_meta,
    version_header,
    supported_version,
    method_header,
    agreement,
    available_method,
    name_header,
    log_level,
];

/// Judges a modern request by everything but its parameters. `memory` belongs to the owner of server
/// and policy, and saves building the same pact again.
///
/// # Errors
/// The first rung that it fails.
pub fn admit(
    request: &Request<'_>,
    facts: &CarrierFacts<'_>,
    server: &Party,
    policy: &Policy,
    memory: &mut Option<Arc<Remembered>>,
) -> Result<ModernCall, Refusal> {
    let mut climb = Climb {
        request,
        http: facts.http(),
        server,
        policy,
        written: "",
        capabilities: "",
        revision: None,
        memory,
        pact: None,
        standing: Standing::New,
        method: None,
        log_level: None,
    };
    for rung in LADDER {
        rung(&mut climb)?;
    }
    match climb.pact {
        Some(pact) => Ok(ModernCall {
            pact,
            standing: climb.standing,
            method: climb.method,
            log_level: climb.log_level,
        }),
        None => Err(meta_fault(meta::PROTOCOL_VERSION, "a string")),
    }
}

fn meta_fault(key: &'static str, expected: &'static str) -> Refusal {
    Misbehaviour::Meta { key, expected }.into()
}

/// `2026-07-28 basic/index#request-metadata`: version and capabilities are required, who the
/// client is is not.
fn required_meta(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let found = climb.request.params.meta;
    let is_kind = |raw: &&str, kind| JsonKind::of(raw) == kind;
    climb.written = found
        .protocol_version
        .filter(|raw| is_kind(raw, JsonKind::String))
        .ok_or_else(|| meta_fault(meta::PROTOCOL_VERSION, "a string"))?;
    climb.capabilities = found
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
fn mirrors(header: Header, seen: Seen<'_>, body: Option<&str>) -> Result<(), Refusal> {
    let value = match seen {
        Seen::Absent => return Err(header_fault(header, HeaderFault::Missing)),
        Seen::Repeated => return Err(header_fault(header, HeaderFault::Repeated)),
        Seen::Once(value) => value,
    };
    let decoded =
        header_value::decode(value).map_err(|_| header_fault(header, HeaderFault::Malformed))?;
    if Some(decoded.as_ref()) == body {
        Ok(())
    } else {
        Err(header_fault(header, HeaderFault::Differs))
    }
}

fn version_header(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let Some(http) = climb.http else {
        return Ok(());
    };
    mirrors(
        Header::ProtocolVersion,
        http.version,
        text(climb.written).as_deref(),
    )
}

fn supported_version(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let policy = &climb.policy.version;
    let written = text(climb.written).unwrap_or_default();
    match Revision::parse(&written) {
        Some(r) if version::served_per_request(policy).contains(r) => {
            climb.revision = Some(r);
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

fn method_header(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let Some(http) = climb.http else {
        return Ok(());
    };
    mirrors(Header::Method, http.method, Some(&climb.request.method))
}

/// Builds the pact of this one request; nothing is inferred from earlier ones.
fn agreement(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let Some(revision) = climb.revision else {
        return Ok(());
    };
    let info = climb.request.params.meta.client_info;
    if let Some(known) = climb.memory
        && known.revision == revision
        && *known.capabilities == *climb.capabilities
        && known.info.as_deref() == info
    {
        climb.pact = Some(Arc::clone(&known.pact));
        climb.standing = Standing::Remembered;
        return Ok(());
    }
    let capabilities =
        CapabilitySet::parse(Side::Client, Some(climb.capabilities), climb.policy.reading)
            .map_err(|fault| Misbehaviour::Document {
                owner: Side::Client,
                fault,
            })?;
    let who = info.and_then(|raw| Implementation::parse(meta::CLIENT_INFO, Some(raw)).ok());
    let client = Party {
        info: who.map(Arc::new),
        capabilities: Arc::new(capabilities),
    };
    let pact = Pact::new(revision, client, climb.server.clone());
    crate::negotiate::require(&pact, Side::Client, climb.policy)?;
    let pact = Arc::new(pact);
    *climb.memory = Some(Arc::new(Remembered {
        revision,
        capabilities: Box::from(climb.capabilities),
        info: info.map(Box::from),
        pact: Arc::clone(&pact),
    }));
    climb.pact = Some(pact);
    Ok(())
}

fn available_method(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let Some(pact) = &climb.pact else {
        return Ok(());
    };
    let name = &climb.request.method;
    let ruling = pact.rule_with(climb.policy.unknown, Side::Client, Kind::Request, name);
    climb.method = ruling.method;
    if !ruling.is_open() {
        return Err(Misbehaviour::Method {
            method: Box::from(name.as_ref()),
            ruling,
        }
        .into());
    }
    crate::gate::require_of_client(pact, climb.policy, name)
}

fn name_header(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let (Some(http), Some(key)) = (climb.http, climb.method.and_then(Method::name_param)) else {
        return Ok(());
    };
    let body = climb.request.params.routing_member(key).and_then(text);
    mirrors(Header::Name, http.name, body.as_deref())
}

fn log_level(climb: &mut Climb<'_>) -> Result<(), Refusal> {
    let Some(raw) = climb.request.params.meta.log_level else {
        return Ok(());
    };
    let level = text(raw).and_then(|name| LogLevel::parse(&name));
    climb.log_level = Some(level.ok_or_else(|| Misbehaviour::LogLevel(Box::from(raw)))?);
    Ok(())
}
