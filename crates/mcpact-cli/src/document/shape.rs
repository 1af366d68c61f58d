use std::borrow::Cow;

use mcpact_spec::tables::meta;
use mcpact_spec::{Capability, Side};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::{ScanError, ScanFault, text};

use super::{Position, Source};

/// Declaration of a side, extracted from a document.
#[derive(Debug, Default)]
pub(super) struct Declaration<'a> {
    /// Raw capabilities, of any JSON type.
    pub(super) capabilities: Option<&'a str>,
    /// `protocolVersion`.
    pub(super) protocol_version: Option<Cow<'a, str>>,
    /// `supportedVersions` or `protocolVersions`.
    pub(super) listed: Option<Vec<String>>,
    /// Name and version of the implementation.
    pub(super) info: Option<Implementation>,
}

/// Reason why a document cannot be negotiated; the text completes a sentence after its name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentFault {
    /// Above the size limit.
    #[error("is larger than {} MiB", limit >> 20)]
    TooLarge { limit: u64 },
    /// Not JSON.
    #[error("is not valid JSON: {detail} at {position}")]
    NotJson { detail: String, position: Position },
    /// A field of the wrong type.
    #[error("has an invalid field: {0}")]
    Field(#[from] BodyFault),
    /// Not an object.
    #[error("is a JSON {0}, expected an object")]
    Kind(JsonKind),
    /// Too deep, or a duplicate field.
    #[error("{}", scan_text(.0.fault))]
    Scan(ScanError),
    /// An error response.
    #[error("is an error response, which declares no capabilities")]
    ErrorResponse,
    /// A message without capabilities.
    #[error("is a message without capabilities{}", parenthesized(.0.as_deref()))]
    NoCapabilities(Option<String>),
    /// A document of the other side.
    #[error("is a {} document, expected a {expected} document", expected.peer())]
    WrongSide { expected: Side },
    /// No known field.
    #[error("is neither a capability object nor a handshake message")]
    Unrecognized,
}

fn scan_text(fault: ScanFault) -> String {
    match fault {
        ScanFault::Duplicate(_) | ScanFault::DuplicateMember => {
            String::from("has a duplicate field")
        }
        other => format!("cannot be parsed: {other}"),
    }
}

fn parenthesized(method: Option<&str>) -> String {
    method.map_or_else(String::new, |method| format!(" (`{method}`)"))
}

impl DocumentFault {
    /// Returns the whole message.
    pub(crate) fn describe(&self, origin: &Source) -> String {
        match self {
            Self::Field(fault) => format!("invalid field in {origin}: {fault}"),
            other => format!("{origin} {other}"),
        }
    }

    /// Returns the hint.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "pass only the handshake messages",
            Self::NotJson { .. } => "expected one JSON object, without comments or trailing commas",
            Self::Field(_) => "correct or remove the field",
            Self::Kind(_) => "pass one object: capabilities, or one handshake message",
            Self::Scan(_) => "fields must be unique and at most 128 levels deep",
            Self::ErrorResponse | Self::NoCapabilities(_) => {
                "pass an `initialize` request or result, a modern request with `_meta`, or a \
                 `server/discover` result"
            }
            Self::WrongSide { .. } => "swap `--client` and `--server`",
            Self::Unrecognized => {
                "if all fields are unknown capabilities, wrap them: `{\"capabilities\": {…}}`"
            }
        }
    }
}

/// Fields that only a handshake body has.
const HANDSHAKE_FIELDS: [&str; 6] = [
    "capabilities",
    "protocolVersion",
    "supportedVersions",
    "protocolVersions",
    "clientInfo",
    "serverInfo",
];

/// Extracts the declaration from a well-formed JSON text.
pub(super) fn parse(side: Side, raw: &str) -> Result<Declaration<'_>, DocumentFault> {
    let top = object(raw)?;
    let is_message = top.get("jsonrpc").is_some()
        || top.get_str("method").is_some()
        || top.get("result").is_some();
    if is_message {
        let body = body_of_message(side, &top)?;
        return match handshake(side, &body)? {
            Some(declaration) => Ok(declaration),
            None => Err(no_capabilities(&top)),
        };
    }
    match handshake(side, &top)? {
        Some(declaration) => Ok(declaration),
        None if looks_like_other_side(side, &top) => {
            Err(DocumentFault::WrongSide { expected: side })
        }
        None if looks_like_capabilities(&top) => Ok(Declaration {
            capabilities: Some(raw.trim()),
            ..Declaration::default()
        }),
        None => Err(DocumentFault::Unrecognized),
    }
}

fn object(raw: &str) -> Result<Object<'_>, DocumentFault> {
    match JsonKind::of(raw) {
        JsonKind::Object => Object::parse(raw).map_err(DocumentFault::Scan),
        other => Err(DocumentFault::Kind(other)),
    }
}

fn no_capabilities(message: &Object<'_>) -> DocumentFault {
    DocumentFault::NoCapabilities(message.get_str("method").map(Cow::into_owned))
}

/// Returns `params` or `result` if the message comes from the right side.
fn body_of_message<'a>(side: Side, message: &Object<'a>) -> Result<Object<'a>, DocumentFault> {
    let (sender, body) = match (message.get("method"), message.get("result")) {
        (Some(_), _) => (Side::Client, message.get("params")),
        (None, Some(result)) => (Side::Server, Some(result)),
        (None, None) if message.get("error").is_some() => {
            return Err(DocumentFault::ErrorResponse);
        }
        (None, None) => return Err(no_capabilities(message)),
    };
    if sender != side {
        return Err(DocumentFault::WrongSide { expected: side });
    }
    object(body.ok_or_else(|| no_capabilities(message))?)
}

/// Parses a handshake body or a modern envelope; `None` if it is neither.
fn handshake<'a>(side: Side, body: &Object<'a>) -> Result<Option<Declaration<'a>>, DocumentFault> {
    let envelope = match body.get_present("_meta") {
        Some(raw) => Object::parse(raw).map_err(DocumentFault::Scan)?,
        None => Object::default(),
    };
    let is_modern_request = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES]
        .iter()
        .any(|key| envelope.get(key).is_some());
    if !is_modern_request && !HANDSHAKE_FIELDS.iter().any(|key| body.get(key).is_some()) {
        return Ok(None);
    }
    let (own, other) = match side {
        Side::Client => ("clientInfo", "serverInfo"),
        Side::Server => ("serverInfo", "clientInfo"),
    };
    let is_wrong_side = match side {
        Side::Client => envelope.get(meta::SERVER_INFO).is_some(),
        Side::Server => is_modern_request,
    };
    if is_wrong_side || (body.get(other).is_some() && body.get(own).is_none()) {
        return Err(DocumentFault::WrongSide { expected: side });
    }
    let listed = match listed(body, "supportedVersions")? {
        None => listed(body, "protocolVersions")?,
        some => some,
    };
    let declaration = if is_modern_request {
        Declaration {
            capabilities: envelope.get(meta::CLIENT_CAPABILITIES),
            protocol_version: version(&envelope, meta::PROTOCOL_VERSION)?,
            listed,
            info: info(&envelope, meta::CLIENT_INFO)?,
        }
    } else {
        Declaration {
            capabilities: body.get("capabilities"),
            protocol_version: version(body, "protocolVersion")?,
            listed,
            info: match info(body, own)? {
                None => info(&envelope, meta::SERVER_INFO)?,
                some => some,
            },
        }
    };
    Ok(Some(declaration))
}

fn version<'a>(body: &Object<'a>, key: &str) -> Result<Option<Cow<'a, str>>, BodyFault> {
    match body.get_present(key) {
        None => Ok(None),
        Some(raw) => {
            let fault = || BodyFault::at(key, "a string", Some(raw));
            text(raw).map(Some).ok_or_else(fault)
        }
    }
}

fn listed(body: &Object<'_>, key: &str) -> Result<Option<Vec<String>>, BodyFault> {
    let Some(raw) = body.get_present(key) else {
        return Ok(None);
    };
    let fault = || BodyFault::at(key, "an array of strings", Some(raw));
    let all = elements(raw).map_err(|_| fault())?;
    let texts = all.into_iter().map(|raw| text(raw).map(Cow::into_owned));
    texts
        .collect::<Option<Vec<String>>>()
        .ok_or_else(fault)
        .map(Some)
}

fn info(body: &Object<'_>, key: &str) -> Result<Option<Implementation>, BodyFault> {
    match body.get_present(key) {
        None => Ok(None),
        some => Implementation::parse(key, some).map(Some),
    }
}

/// Returns whether a field is a capability of any revision. An empty object counts.
fn looks_like_capabilities(top: &Object<'_>) -> bool {
    let declares = |side| top.iter().any(|(key, _)| is_declared_by(side, key));
    top.is_empty() || declares(Side::Client) || declares(Side::Server)
}

/// Returns whether the fields are capabilities of the other side only.
fn looks_like_other_side(side: Side, top: &Object<'_>) -> bool {
    let declares = |side| top.iter().any(|(key, _)| is_declared_by(side, key));
    declares(side.peer()) && !declares(side)
}

fn is_declared_by(side: Side, key: &str) -> bool {
    let mut rows = Capability::ALL.iter().filter(|row| row.owner() == side);
    rows.any(|row| row.path().split('.').next() == Some(key))
}
