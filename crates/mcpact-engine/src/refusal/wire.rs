use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::{Capability, Era, ErrorCode, Method, Revision, Side, Site};
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
            Self::PeerIncompatible(Incompatible::Version { .. }) => ReasonCode::UnsupportedVersion,
            Self::PeerIncompatible(Incompatible::Capabilities { .. }) => {
                ReasonCode::MissingCapability
            }
            Self::PeerIncompatible(Incompatible::Answered { .. }) => {
                ReasonCode::ProtocolVersionMismatch
            }
            Self::PeerIncompatible(Incompatible::NoCommonVersion { .. }) => {
                ReasonCode::NoCommonVersion
            }
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
            Misbehaviour::NotInitialized { method }
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
                let data = ObjectWriter::new()
                    .raw("requiredCapabilities", &required)
                    .finish();
                Parts::new(
                    missing_capability(dialect.revision),
                    Site::Application,
                    text,
                )
                .with(data)
            }
            Self::Answered { .. } | Self::NoCommonVersion { .. } => Parts::new(
                ErrorCode::InvalidParams,
                Site::Application,
                self.to_string(),
            ),
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
        match self {
            Self::Json(_) => Parts::new(ErrorCode::ParseError, Site::Envelope, "Parse error")
                .with(detail(&self.to_string())),
            Self::Shape(_) | Self::Batch | Self::HandshakeInBatch | Self::BatchTooLarge { .. } => {
                Parts::new(ErrorCode::InvalidRequest, Site::Envelope, "Invalid Request")
                    .with(detail(&self.to_string()))
            }
            Self::NotInitialized { method } => {
                let (code, text) = match dialect.errors {
                    ErrorDialect::Erlmcp => (ErrorCode::InvalidRequest, cannot(method)),
                    ErrorDialect::Spec => (
                        ErrorCode::InvalidRequest,
                        String::from("Server not initialized: send `initialize` first"),
                    ),
                };
                Parts::new(code, Site::Application, text).with(reason_data(self.reason().as_str()))
            }
            Self::NotOpened { .. } => Parts::new(
                ErrorCode::InvalidParams,
                Site::Envelope,
                "Send `initialize` first, or put the protocol version into `_meta`",
            )
            .with(reason_data(self.reason().as_str())),
            Self::AlreadyInitialized => Parts::new(
                ErrorCode::InvalidRequest,
                Site::Application,
                "Server already initialized. Initialize must be called only once.",
            )
            .with(reason_data(self.reason().as_str())),
            Self::Version(form) => {
                let text = match form {
                    VersionForm::Missing => "Missing protocol version",
                    VersionForm::NotText | VersionForm::NotADate => {
                        "Invalid protocol version format"
                    }
                };
                Parts::new(ErrorCode::InvalidParams, Site::Application, text)
                    .with(ObjectWriter::new().text("path", "protocolVersion").finish())
            }
            Self::Body(fault) | Self::Document { fault, .. } => Parts::new(
                ErrorCode::InvalidParams,
                Site::Application,
                fault.to_string(),
            )
            .with(ObjectWriter::new().text("path", &fault.path).finish()),
            Self::Meta { key, .. } => envelope(ErrorCode::InvalidParams).with(
                ObjectWriter::new()
                    .text("path", &alloc::format!("_meta.{key}"))
                    .finish(),
            ),
            Self::Header { .. } => envelope(ErrorCode::HeaderMismatch),
            Self::Method { ruling, .. } => match ruling.reason {
                Reason::NotShared(extension, Side::Client) => {
                    let required = extension_document(extension.id());
                    let data = ObjectWriter::new()
                        .raw("requiredCapabilities", &required)
                        .finish();
                    let text = "Missing required client capability";
                    Parts::new(
                        missing_capability(dialect.revision),
                        Site::Application,
                        text,
                    )
                    .with(data)
                }
                Reason::Ungated
                | Reason::Declared(_)
                | Reason::Shared(_)
                | Reason::PassedUnknown
                | Reason::Undeclared(_)
                | Reason::NoneDeclared(_)
                | Reason::NotShared(_, Side::Server)
                | Reason::NotInRevision
                | Reason::WrongSender
                | Reason::WrongKind
                | Reason::OnlyEmbedded
                | Reason::NeverEmbedded
                | Reason::Unknown => Parts::new(
                    ErrorCode::MethodNotFound,
                    Site::Application,
                    "Method not found",
                )
                .with(reason_data(&ruling.explain())),
            },
            Self::Param { capability, .. } => param(*capability, dialect, self.to_string()),
            Self::ClientRequirement { path, .. } => {
                let text = alloc::format!("Client does not support {path} capability");
                let required = nested(&[path]);
                let data = ObjectWriter::new()
                    .raw("requiredCapabilities", &required)
                    .finish();
                Parts::new(
                    missing_capability(dialect.revision),
                    Site::Application,
                    text,
                )
                .with(data)
            }
            Self::TaskSupport { .. } => Parts::new(
                ErrorCode::MethodNotFound,
                Site::Application,
                self.to_string(),
            )
            .with(reason_data(self.reason().as_str())),
            Self::TaskRequired => Parts::new(
                ErrorCode::InvalidRequest,
                Site::Application,
                self.to_string(),
            )
            .with(reason_data(self.reason().as_str())),
            Self::LogLevel(_) => Parts::new(
                ErrorCode::InvalidParams,
                Site::Application,
                self.to_string(),
            ),
            Self::DuplicateId(_) | Self::TooMany { .. } => Parts::new(
                ErrorCode::InvalidRequest,
                Site::Application,
                self.to_string(),
            )
            .with(reason_data(self.reason().as_str())),
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
    let required = nested(&[capability.path()]);
    let data = ObjectWriter::new()
        .raw("requiredCapabilities", &required)
        .finish();
    Parts::new(code, Site::Application, text).with(data)
}

fn detail(text: &str) -> String {
    ObjectWriter::new().text("detail", text).finish()
}

fn reason_data(reason: &str) -> String {
    ObjectWriter::new().text("reason", reason).finish()
}

/// The sentence of erlmcp for a request that came too early.
fn cannot(method: &str) -> String {
    let (noun, verb) = method.split_once('/').unwrap_or((method, "use"));
    alloc::format!("Cannot {verb} {noun} before server initialization")
}

fn extension_document(id: &str) -> String {
    let inner = ObjectWriter::new().raw(id, "{}").finish();
    ObjectWriter::new().raw("extensions", &inner).finish()
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
