use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::{Capability, Era, ErrorCode, Method, Revision, Side, Site};
use mcpact_wire::envelope::ShapeFault;
use mcpact_wire::model::error;
use mcpact_wire::raw::ObjectWriter;

use super::{Incompatible, Misbehaviour, ReasonCode, Refusal, VersionForm};
use crate::policy::ErrorDialect;
use crate::reason::Reason;

/// Revision and dialect of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The revision that the peer speaks, or most likely speaks.
    pub revision: Revision,
    /// Codes and texts where the specification is silent.
    pub errors: ErrorDialect,
}

/// A refusal as the peer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The public text.
    pub message: String,
    /// Raw JSON for machines.
    pub data: Option<String>,
    /// The status of the HTTP answer.
    pub http_status: u16,
}

impl WireError {
    /// The error object.
    #[must_use]
    pub fn encode(&self) -> String {
        error::encode(self.code, &self.message, self.data.as_deref())
    }
}

/// The code of erlmcp for everything that comes at the wrong time.
const ERLMCP_NOT_INITIALIZED: i64 = -32005;

/// The pieces of a wire error, before the tables fill in the rest.
struct Parts {
    code: ErrorCode,
    site: Site,
    message: String,
    data: Option<String>,
}

impl Parts {
    fn new(code: ErrorCode, site: Site, message: impl Into<String>) -> Self {
        Self {
            code,
            site,
            message: message.into(),
            data: None,
        }
    }

    fn application(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code, Site::Application, message)
    }

    /// An error whose data names the capabilities that the request needs, as a document.
    fn requiring(code: ErrorCode, message: impl Into<String>, capabilities: &str) -> Self {
        let data = ObjectWriter::new().raw("requiredCapabilities", capabilities);
        Self::application(code, message).with(data.finish())
    }

    /// Adds data with one text.
    fn with_text(self, key: &str, text: &str) -> Self {
        self.with(ObjectWriter::new().text(key, text).finish())
    }

    fn with(mut self, data: String) -> Self {
        self.data = Some(data);
        self
    }
}

impl Refusal {
    /// Error for the peer: total over every refusal and every revision.
    #[must_use]
    pub fn on_wire(&self, dialect: Dialect) -> WireError {
        let parts = match self {
            Self::PeerIncompatible(incompatible) => incompatible.parts(dialect),
            Self::PeerMisbehaved(misbehaviour) => misbehaviour.parts(dialect),
        };
        let code = match (dialect.errors, self) {
            (
                ErrorDialect::Erlmcp,
                Self::PeerMisbehaved(
                    Misbehaviour::NotInitialized { .. } | Misbehaviour::AlreadyInitialized,
                ),
            ) => ERLMCP_NOT_INITIALIZED,
            (ErrorDialect::Spec | ErrorDialect::Erlmcp, _) => parts.code.code(),
        };
        WireError {
            code,
            message: parts.message,
            data: parts.data,
            http_status: self
                .status_override()
                .unwrap_or_else(|| parts.code.http_status(dialect.revision, parts.site)),
        }
    }

    /// The session rules of legacy HTTP are statuses first and JSON-RPC errors second.
    fn status_override(&self) -> Option<u16> {
        match self {
            Self::PeerMisbehaved(Misbehaviour::UnknownSession) => Some(404),
            Self::PeerMisbehaved(
                Misbehaviour::MissingSession | Misbehaviour::SessionVersion { .. },
            ) => Some(400),
            Self::PeerMisbehaved(_) | Self::PeerIncompatible(_) => None,
        }
    }

    /// A stable word for logs, metrics and programs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        let code = match self {
            Self::PeerIncompatible(incompatible) => match incompatible {
                Incompatible::Version { .. } => ReasonCode::UnsupportedVersion,
                Incompatible::Capabilities { .. } => ReasonCode::MissingCapability,
                Incompatible::Answered { .. } => ReasonCode::ProtocolVersionMismatch,
                Incompatible::NoCommonVersion { .. } => ReasonCode::NoCommonVersion,
            },
            Self::PeerMisbehaved(misbehaviour) => misbehaviour.reason(),
        };
        code.as_str()
    }

    /// The method that it is about, if it is about one that a revision defines.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        let Self::PeerMisbehaved(misbehaviour) = self else {
            return None;
        };
        match misbehaviour {
            Misbehaviour::Method { ruling, .. } => ruling.method,
            Misbehaviour::Param { method, .. } => Some(*method),
            Misbehaviour::NotInitialized { method, .. }
            | Misbehaviour::NotOpened { method }
            | Misbehaviour::ClientRequirement { method, .. } => Method::parse(method),
            Misbehaviour::AlreadyInitialized => Some(Method::Initialize),
            Misbehaviour::TaskSupport { .. } => Some(Method::ToolsCall),
            Misbehaviour::LogLevel(_) => Some(Method::LoggingSetLevel),
            Misbehaviour::Json(_)
            | Misbehaviour::Shape(_)
            | Misbehaviour::Batch
            | Misbehaviour::HandshakeInBatch
            | Misbehaviour::BatchTooLarge { .. }
            | Misbehaviour::Version(_)
            | Misbehaviour::Body(_)
            | Misbehaviour::Document { .. }
            | Misbehaviour::Meta { .. }
            | Misbehaviour::Header { .. }
            | Misbehaviour::TaskRequired
            | Misbehaviour::DuplicateId(_)
            | Misbehaviour::TooMany { .. }
            | Misbehaviour::UnknownSession
            | Misbehaviour::MissingSession
            | Misbehaviour::SessionVersion { .. } => None,
        }
    }

    /// The text for our own log: everything, with the remedy.
    #[must_use]
    pub fn log_text(&self) -> String {
        let mut text = self.to_string();
        if let Self::PeerMisbehaved(Misbehaviour::Method { ruling, .. }) = self {
            if let Some(page) = ruling.page() {
                text.push_str(&alloc::format!(" [{page}]"));
            }
            if let Some(remedy) = ruling.remedy() {
                text.push_str("; ");
                text.push_str(&remedy);
            }
        }
        text
    }
}

impl Incompatible {
    fn parts(&self, dialect: Dialect) -> Parts {
        match self {
            Self::Version {
                requested,
                supported,
                why,
            } => {
                // A server without any handshake uses the modern code for every client.
                let has_handshake = !supported.in_era(Era::Legacy).is_empty();
                let code = match dialect.revision.era() {
                    Era::Legacy if has_handshake => ErrorCode::InvalidParams,
                    Era::Legacy | Era::Modern => ErrorCode::UnsupportedVersion,
                };
                let data = ObjectWriter::new()
                    .texts("supported", supported.names())
                    .text("requested", requested.as_str());
                Parts::new(code, Site::Envelope, why.text()).with(data.finish())
            }
            Self::Capabilities { lacking, paths } => {
                let required = nested(&paths.iter().map(|p| &**p).collect::<Vec<_>>());
                let text = alloc::format!("Missing required {lacking} capability");
                Parts::requiring(missing_capability(dialect.revision), text, &required)
            }
            Self::Answered { .. } | Self::NoCommonVersion { .. } => {
                Parts::application(ErrorCode::InvalidParams, self.to_string())
            }
        }
    }
}

const fn missing_capability(revision: Revision) -> ErrorCode {
    match revision.era() {
        Era::Modern => ErrorCode::MissingClientCapability,
        Era::Legacy => ErrorCode::InvalidParams,
    }
}

impl Misbehaviour {
    fn parts(&self, dialect: Dialect) -> Parts {
        let envelope = |code| Parts::new(code, Site::Envelope, self.to_string());
        let with_reason = |parts: Parts| parts.with_text("reason", self.reason().as_str());
        match self {
            Self::Json(_) => Parts::new(ErrorCode::ParseError, Site::Envelope, "Parse error")
                .with_text("detail", &self.to_string()),
            Self::Shape(ShapeFault::Duplicate(name)) => {
                let text = alloc::format!("duplicate key `{name}` in the params");
                let parts = Parts::new(ErrorCode::InvalidParams, Site::Envelope, text);
                with_reason(parts).with_text("key", name)
            }
            Self::Shape(_) | Self::Batch | Self::HandshakeInBatch | Self::BatchTooLarge { .. } => {
                Parts::new(ErrorCode::InvalidRequest, Site::Envelope, "Invalid Request")
                    .with_text("detail", &self.to_string())
            }
            Self::NotInitialized { method, missing } => {
                let text = match dialect.errors {
                    ErrorDialect::Erlmcp => cannot(method),
                    ErrorDialect::Spec => {
                        alloc::format!("Server not initialized: send `{missing}` first")
                    }
                };
                with_reason(Parts::application(ErrorCode::InvalidRequest, text))
            }
            Self::NotOpened { .. } => with_reason(Parts::new(
                ErrorCode::InvalidParams,
                Site::Envelope,
                "Send `initialize` first, or put the protocol version into `_meta`",
            )),
            Self::AlreadyInitialized => with_reason(Parts::application(
                ErrorCode::InvalidRequest,
                "Server already initialized. Initialize must be called only once.",
            )),
            Self::Version(form) => {
                let text = match form {
                    VersionForm::Missing => "Missing protocol version",
                    VersionForm::NotText | VersionForm::NotADate => {
                        "Invalid protocol version format"
                    }
                };
                Parts::application(ErrorCode::InvalidParams, text)
                    .with_text("path", "protocolVersion")
            }
            Self::Body(fault) | Self::Document { fault, .. } => {
                Parts::application(ErrorCode::InvalidParams, fault.to_string())
                    .with_text("path", &fault.path)
            }
            Self::Meta { key, .. } => {
                envelope(ErrorCode::InvalidParams).with_text("path", &alloc::format!("_meta.{key}"))
            }
            Self::Header { .. } => envelope(ErrorCode::HeaderMismatch),
            Self::Method { ruling, .. } => {
                if let Reason::NotShared(extension, Side::Client) = ruling.reason {
                    let inner = ObjectWriter::new().raw(extension.id(), "{}").finish();
                    return Parts::requiring(
                        missing_capability(dialect.revision),
                        "Missing required client capability",
                        &ObjectWriter::new().raw("extensions", &inner).finish(),
                    );
                }
                Parts::application(ErrorCode::MethodNotFound, "Method not found")
                    .with_text("reason", &ruling.explain())
            }
            Self::Param { capability, .. } => param(*capability, dialect, self.to_string()),
            Self::ClientRequirement { path, .. } => Parts::requiring(
                missing_capability(dialect.revision),
                alloc::format!("Client does not support {path} capability"),
                &nested(&[path]),
            ),
            Self::TaskSupport { .. } => with_reason(Parts::application(
                ErrorCode::MethodNotFound,
                self.to_string(),
            )),
            Self::LogLevel(_) => Parts::application(ErrorCode::InvalidParams, self.to_string()),
            Self::TaskRequired | Self::DuplicateId(_) | Self::TooMany { .. } => with_reason(
                Parts::application(ErrorCode::InvalidRequest, self.to_string()),
            ),
            Self::UnknownSession | Self::MissingSession | Self::SessionVersion { .. } => {
                envelope(ErrorCode::InvalidRequest)
            }
        }
    }

    const fn reason(&self) -> ReasonCode {
        match self {
            Self::Json(_) => ReasonCode::ParseError,
            Self::Shape(_) => ReasonCode::InvalidMessage,
            Self::Batch | Self::HandshakeInBatch => ReasonCode::BatchNotAllowed,
            Self::BatchTooLarge { .. } => ReasonCode::BatchTooLarge,
            Self::NotInitialized { .. } | Self::NotOpened { .. } => ReasonCode::NotInitialized,
            Self::AlreadyInitialized => ReasonCode::AlreadyInitialized,
            Self::Version(_) => ReasonCode::InvalidVersion,
            Self::Body(_) => ReasonCode::InvalidParams,
            Self::Document { .. } => ReasonCode::InvalidCapabilities,
            Self::Meta { .. } => ReasonCode::MissingMeta,
            Self::Header { .. } => ReasonCode::HeaderMismatch,
            Self::Method { .. } => ReasonCode::MethodNotAvailable,
            Self::Param { .. } => ReasonCode::ParamNotNegotiated,
            Self::ClientRequirement { .. } => ReasonCode::ClientCapabilityRequired,
            Self::TaskSupport { .. } => ReasonCode::TaskSupport,
            Self::TaskRequired => ReasonCode::TaskRequired,
            Self::LogLevel(_) => ReasonCode::InvalidLogLevel,
            Self::DuplicateId(_) => ReasonCode::DuplicateId,
            Self::TooMany { .. } => ReasonCode::TooManyRequests,
            Self::UnknownSession => ReasonCode::UnknownSession,
            Self::MissingSession => ReasonCode::MissingSession,
            Self::SessionVersion { .. } => ReasonCode::SessionVersionMismatch,
        }
    }
}

/// A client capability is asked for by name in the modern era; before that the parameters are
/// simply wrong.
fn param(capability: Capability, dialect: Dialect, text: String) -> Parts {
    let code = match capability.owner() {
        Side::Client => missing_capability(dialect.revision),
        Side::Server => ErrorCode::InvalidParams,
    };
    Parts::requiring(code, text, &nested(&[capability.path()]))
}

/// The sentence of erlmcp for a request that came too early.
fn cannot(method: &str) -> String {
    let (noun, verb) = method.split_once('/').unwrap_or((method, "use"));
    alloc::format!("Cannot {verb} {noun} before server initialization")
}

/// Dotted paths as the capability document that would declare them.
fn nested(paths: &[&str]) -> String {
    let mut out = ObjectWriter::new();
    let mut written: Vec<&str> = Vec::new();
    for path in paths {
        let head = path.split('.').next().unwrap_or(path);
        if written.contains(&head) {
            continue;
        }
        written.push(head);
        let below: Vec<&str> = paths
            .iter()
            .filter_map(|p| p.strip_prefix(head)?.strip_prefix('.'))
            .collect();
        out = out.raw(head, &nested(&below));
    }
    out.finish()
}
