use std::borrow::Cow;

use mcpact_spec::tables::meta;
use mcpact_spec::{Capability, Side};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::{ScanError, ScanFault, text};

/// What a side says, wherever in the document it stood.
#[derive(Debug, Default)]
pub(super) struct Declaration<'a> {
    /// The raw capability document, of whatever kind it is.
    pub(super) capabilities: Option<&'a str>,
    /// The one version that it names.
    pub(super) protocol_version: Option<Cow<'a, str>>,
    /// The versions that it lists.
    pub(super) listed: Option<Vec<String>>,
    /// Who it is.
    pub(super) info: Option<Implementation>,
}

/// Why a JSON document declares nothing that can be negotiated.
#[derive(Debug)]
pub(super) enum ShapeFault {
    Misfit(Misfit),
    Member(BodyFault),
}

impl From<Misfit> for ShapeFault {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl From<BodyFault> for ShapeFault {
    fn from(fault: BodyFault) -> Self {
        Self::Member(fault)
    }
}

/// A document that is JSON and yet of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// Not an object.
    #[error("holds a JSON {0}, not an object")]
    Kind(JsonKind),
    /// Too deep, or with a member that stands twice.
    #[error("{}", scan_text(.0.fault))]
    Scan(ScanError),
    /// A failed request.
    #[error("holds an error response, which declares nothing")]
    ErrorResponse,
    /// A message without capabilities.
    #[error("holds a message that declares no capabilities{}", named(.0.as_deref()))]
    Silent(Option<String>),
    /// What the other side says.
    #[error("speaks for the {}, not for the {expected}", expected.peer())]
    WrongSide { expected: Side },
    /// No member that anybody would declare.
    #[error("is neither a capability object nor a message of the handshake")]
    Foreign,
}

fn scan_text(fault: ScanFault) -> String {
    match fault {
        ScanFault::Duplicate(_) | ScanFault::DuplicateMember => {
            String::from("names the same member twice in one object")
        }
        other => format!("cannot be understood: {other}"),
    }
}

fn named(method: Option<&str>) -> String {
    method.map_or_else(String::new, |method| format!(" (`{method}`)"))
}

impl Misfit {
    /// What to do about it.
    pub(crate) fn hint(&self) -> String {
        String::from(match self {
            Self::Kind(_) => {
                "one object is expected: capabilities, or one message of the handshake"
            }
            Self::Scan(_) => "every member may stand once, at most 128 levels deep",
            Self::ErrorResponse | Self::Silent(_) => {
                "take the `initialize` request or result, a modern request with `_meta`, or a \
                 `server/discover` result"
            }
            Self::WrongSide { .. } => "swap the files of `--client` and `--server`",
            Self::Foreign => {
                "if all of its members are unknown capabilities, wrap them: \
                 `{\"capabilities\": {…}}`"
            }
        })
    }
}

/// Members that only the body of a handshake has.
const BODY: [&str; 6] = [
    "capabilities",
    "protocolVersion",
    "supportedVersions",
    "protocolVersions",
    "clientInfo",
    "serverInfo",
];

/// Finds the declaration in a well-formed JSON text.
pub(super) fn recognise(side: Side, raw: &str) -> Result<Declaration<'_>, ShapeFault> {
    let top = object(raw)?;
    let is_message = top.get("jsonrpc").is_some()
        || top.get_str("method").is_some()
        || top.get("result").is_some();
    if is_message {
        let body = body_of_message(side, &top)?;
        return match handshake(side, &body)? {
            Some(declaration) => Ok(declaration),
            None => Err(silent(&top).into()),
        };
    }
    match handshake(side, &top)? {
        Some(declaration) => Ok(declaration),
        None if looks_like_other_side(side, &top) => {
            Err(Misfit::WrongSide { expected: side }.into())
        }
        None if looks_like_capabilities(&top) => Ok(Declaration {
            capabilities: Some(raw.trim()),
            ..Declaration::default()
        }),
        None => Err(Misfit::Foreign.into()),
    }
}

fn object(raw: &str) -> Result<Object<'_>, Misfit> {
    match JsonKind::of(raw) {
        JsonKind::Object => Object::parse(raw).map_err(Misfit::Scan),
        other => Err(Misfit::Kind(other)),
    }
}

fn silent(message: &Object<'_>) -> Misfit {
    Misfit::Silent(message.get_str("method").map(Cow::into_owned))
}

/// The `params` or the `result`, if the message comes from the right side.
fn body_of_message<'a>(side: Side, message: &Object<'a>) -> Result<Object<'a>, Misfit> {
    let (sender, body) = match (message.get("method"), message.get("result")) {
        (Some(_), _) => (Side::Client, message.get("params")),
        (None, Some(result)) => (Side::Server, Some(result)),
        (None, None) if message.get("error").is_some() => return Err(Misfit::ErrorResponse),
        (None, None) => return Err(silent(message)),
    };
    if sender != side {
        return Err(Misfit::WrongSide { expected: side });
    }
    object(body.ok_or_else(|| silent(message))?)
}

/// What a handshake body or a modern envelope declares; none when it is neither.
fn handshake<'a>(side: Side, body: &Object<'a>) -> Result<Option<Declaration<'a>>, ShapeFault> {
    let envelope = match body.get_present("_meta") {
        Some(raw) => Object::parse(raw).map_err(Misfit::Scan)?,
        None => Object::default(),
    };
    let is_modern_request = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES]
        .iter()
        .any(|key| envelope.get(key).is_some());
    if !is_modern_request && !BODY.iter().any(|key| body.get(key).is_some()) {
        return Ok(None);
    }
    let (own, other) = match side {
        Side::Client => ("clientInfo", "serverInfo"),
        Side::Server => ("serverInfo", "clientInfo"),
    };
    let is_of_other = match side {
        Side::Client => envelope.get(meta::SERVER_INFO).is_some(),
        Side::Server => is_modern_request,
    };
    if is_of_other || (body.get(other).is_some() && body.get(own).is_none()) {
        return Err(Misfit::WrongSide { expected: side }.into());
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
        Some(raw) => match text(raw) {
            Some(version) => Ok(Some(version)),
            None => Err(BodyFault::at(key, "a string", Some(raw))),
        },
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

/// Whether a side of some revision would declare one of these members; nothing at all is fine.
fn looks_like_capabilities(top: &Object<'_>) -> bool {
    let declares = |side| top.iter().any(|(key, _)| is_declared_by(side, key));
    top.is_empty() || declares(Side::Client) || declares(Side::Server)
}

/// Whether it holds what only the other side declares, and nothing that this one does.
fn looks_like_other_side(side: Side, top: &Object<'_>) -> bool {
    let declares = |side| top.iter().any(|(key, _)| is_declared_by(side, key));
    declares(side.peer()) && !declares(side)
}

fn is_declared_by(side: Side, key: &str) -> bool {
    let mut rows = Capability::ALL.iter().filter(|row| row.owner() == side);
    rows.any(|row| row.path().split('.').next() == Some(key))
}
