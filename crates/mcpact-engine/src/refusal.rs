//! Refusals by blame, each with a code, a public text, a log text and a reason.

mod advice;
mod code;
mod wire;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Method, Revision, Side};
use mcpact_wire::envelope::{EnvelopeError, ShapeFault};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::scan::ScanError;

use crate::reason::Ruling;
use crate::revisions::{RevisionId, RevisionSet};

pub use code::ReasonCode;
pub use wire::{Dialect, WireError};

/// A refusal that goes to the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The two do not fit; no rule was broken.
    #[error(transparent)]
    PeerIncompatible(#[from] Incompatible),
    /// The peer broke a rule.
    #[error(transparent)]
    PeerMisbehaved(#[from] Misbehaviour),
}

impl Refusal {
    /// The ruling does not allow the method.
    pub(crate) fn not_allowed(method: &str, ruling: Ruling) -> Self {
        let method = Box::from(method);
        Misbehaviour::Method { method, ruling }.into()
    }
}

/// Two peers that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// The version is not served.
    #[error("{} (requested `{requested}`, supported {supported})", why.text())]
    Version {
        /// Requested version.
        requested: RevisionId,
        /// Supported versions.
        supported: RevisionSet,
        /// Reason.
        why: VersionFault,
    },
    /// A capability is missing that we will not do without.
    #[error("the {lacking} does not declare {}", quoted(paths))]
    Capabilities {
        /// Side that does not declare it.
        lacking: Side,
        /// The dotted paths.
        paths: Vec<Box<str>>,
    },
    /// The server answered with a version that we do not speak.
    #[error("the server answered with version `{answered}`, we speak {ours}")]
    Answered {
        /// Version in the answer.
        answered: RevisionId,
        /// Versions that we support.
        ours: RevisionSet,
    },
    /// Nothing in the server's list is spoken here.
    #[error("no common version: the server {}, we speak {ours}", offers(offered))]
    NoCommonVersion {
        /// Versions that the server listed.
        offered: Vec<Box<str>>,
        /// Versions that we support.
        ours: RevisionSet,
    },
}

/// Reason why a version does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionFault {
    /// It is not among the supported ones.
    NotSupported,
    /// It is older than the oldest acceptable one.
    TooOld,
    /// It is newer than the newest acceptable one.
    TooNew,
}

impl VersionFault {
    /// The stable text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotSupported => "Unsupported protocol version",
            Self::TooOld => "Protocol version too old",
            Self::TooNew => "Protocol version not yet supported",
        }
    }
}

/// Fault of the version member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionForm {
    /// It is not there.
    Missing,
    /// It is not a string.
    NotText,
    /// It is a string, but not a date where dates are demanded.
    NotADate,
}

/// Fault of a mirrored header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// It is required and not there.
    Missing,
    /// It stands there twice.
    Repeated,
    /// It cannot be decoded.
    Malformed,
    /// It says something else than the body.
    Differs,
}

/// A rule that the peer broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaviour {
    /// Not JSON.
    #[error("the message is not JSON: {0}")]
    Json(ScanError),
    /// Not a message.
    #[error("not a JSON-RPC message: {0}")]
    Shape(ShapeFault),
    /// An array where the revision has no batches.
    #[error("batches are not part of this revision")]
    Batch,
    /// A handshake in a batch.
    #[error("`initialize` cannot be part of a batch")]
    HandshakeInBatch,
    /// More messages in a batch than we take.
    #[error("a batch may hold at most {limit} messages")]
    BatchTooLarge {
        /// Limit.
        limit: usize,
    },
    /// A request came before the handshake was complete.
    #[error("`{method}` came before `{missing}`")]
    NotInitialized {
        /// The request's method.
        method: Box<str>,
        /// The message of the handshake that must come first.
        missing: Method,
    },
    /// A request came before anything told the era, where both are served.
    #[error("`{method}` came without `initialize` before it and without `_meta` in it")]
    NotOpened {
        /// The request's method.
        method: Box<str>,
    },
    /// `initialize` came again.
    #[error("`initialize` came a second time")]
    AlreadyInitialized,
    /// The version member is malformed.
    #[error("`protocolVersion` is {}", match .0 { VersionForm::Missing => "missing", VersionForm::NotText => "not a string", VersionForm::NotADate => "not a date" })]
    Version(VersionForm),
    /// A member of a body is missing or of the wrong kind.
    #[error("{0}")]
    Body(BodyFault),
    /// A capability document is not as the schema wants it.
    #[error("{owner}: {fault}")]
    Document {
        /// Owner of the document.
        owner: Side,
        /// Path and value.
        fault: BodyFault,
    },
    /// A required member of `_meta` is missing or of the wrong kind.
    #[error("`_meta` must carry `{key}` as {expected}")]
    Meta {
        /// The reserved key.
        key: &'static str,
        /// Expected type.
        expected: &'static str,
    },
    /// A header does not mirror the body.
    #[error("header `{name}` {}", match fault { HeaderFault::Missing => "is missing", HeaderFault::Repeated => "stands twice", HeaderFault::Malformed => "cannot be decoded", HeaderFault::Differs => "does not match the body" })]
    Header {
        /// The header's name.
        name: Box<str>,
        /// Kind of fault.
        fault: HeaderFault,
    },
    /// The method may not be used.
    #[error("`{method}`: {}", ruling.explain())]
    Method {
        /// The name as it came.
        method: Box<str>,
        /// Reason.
        ruling: Ruling,
    },
    /// A parameter uses a capability that was not declared.
    #[error("`{method}` with `{member}` needs `{capability}`, {}", missing(*capability, *revision))]
    Param {
        /// The method.
        method: Method,
        /// The parameter.
        member: &'static str,
        /// Capability that it needs.
        capability: Capability,
        /// The revision in use.
        revision: Revision,
    },
    /// Our own rule asks the client for a capability.
    #[error("`{method}` is served only to clients that declare `{path}`")]
    ClientRequirement {
        /// The method.
        method: Box<str>,
        /// The dotted path.
        path: Box<str>,
    },
    /// A tool that runs only as a task, or never as one, was called the other way.
    #[error("the tool {} as a task", if *is_required { "runs only" } else { "does not run" })]
    TaskSupport {
        /// True if it runs only as a task.
        is_required: bool,
    },
    /// Every request of this kind must be a task.
    #[error("Task augmentation required")]
    TaskRequired,
    /// A log level that does not exist.
    #[error("`{0}` is not a log level")]
    LogLevel(Box<str>),
    /// The id of a request that is still being served.
    #[error("id {0} is already in use by a request in flight")]
    DuplicateId(Box<str>),
    /// More requests in flight, or subscriptions, than we take.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Limit.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// Unknown session id.
    #[error("unknown or ended session")]
    UnknownSession,
    /// A session header is needed.
    #[error("the `Mcp-Session-Id` header is missing")]
    MissingSession,
    /// The version header names another version than the session's.
    #[error("header version `{found}` is not the session's")]
    SessionVersion {
        /// Version in the header.
        found: Box<str>,
    },
}

impl From<EnvelopeError> for Misbehaviour {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Json(error) => Self::Json(error),
            EnvelopeError::Shape { fault, .. } => Self::Shape(fault),
        }
    }
}

/// Misuse by our own caller; the message was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiMisuse {
    /// The pact does not allow the message.
    #[error("`{method}` was not sent: {}", ruling.explain())]
    NotNegotiated {
        /// The method.
        method: Box<str>,
        /// Reason.
        ruling: Ruling,
    },
    /// The pact does not allow a parameter.
    #[error("`{method}` was not sent: `{member}` needs `{capability}`, {}", missing(*capability, *revision))]
    ParamNotNegotiated {
        /// The method.
        method: Method,
        /// The parameter.
        member: &'static str,
        /// Capability that it needs.
        capability: Capability,
        /// The revision in use.
        revision: Revision,
    },
    /// There is no pact yet, or no longer.
    #[error("`{method}` was not sent: the connection is {state}")]
    NotReady {
        /// The method.
        method: Box<str>,
        /// State of the connection.
        state: &'static str,
    },
    /// The id was used before.
    #[error("id {0} was used before in this session")]
    IdReused(Box<str>),
    /// Too many requests wait for an answer.
    #[error("more than {limit} requests wait for an answer")]
    TooMany {
        /// Limit of pending requests.
        limit: usize,
    },
    /// The client did not ask for it.
    #[error("`{method}` was not sent: the client did not ask for it")]
    Unwanted {
        /// The method.
        method: Box<str>,
    },
    /// `params` is not a JSON object.
    #[error("`params` must be a JSON object")]
    Params,
    /// `initialize` cannot be cancelled.
    #[error("`initialize` cannot be cancelled")]
    CancelInitialize,
}

impl ApiMisuse {
    /// A stable word for logs, metrics and programs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        let code = match self {
            Self::NotNegotiated { .. } => ReasonCode::NotNegotiated,
            Self::ParamNotNegotiated { .. } => ReasonCode::ParamNotNegotiated,
            Self::NotReady { .. } => ReasonCode::NotReady,
            Self::IdReused(_) => ReasonCode::IdReused,
            Self::TooMany { .. } => ReasonCode::TooManyRequests,
            Self::Unwanted { .. } => ReasonCode::Unwanted,
            Self::Params => ReasonCode::InvalidParams,
            Self::CancelInitialize => ReasonCode::CancelInitialize,
        };
        code.as_str()
    }

    /// The method that was not sent, if a revision defines it.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match self {
            Self::NotNegotiated { ruling, .. } => ruling.method,
            Self::ParamNotNegotiated { method, .. } => Some(*method),
            Self::NotReady { method, .. } | Self::Unwanted { method } => Method::parse(method),
            Self::CancelInitialize => Some(Method::Initialize),
            Self::IdReused(_) | Self::TooMany { .. } | Self::Params => None,
        }
    }
}

/// Reason for a missing capability: a revision may not have it at all.
fn missing(capability: Capability, revision: Revision) -> String {
    if capability.presence(revision).counts() {
        alloc::format!("which the {} did not declare", capability.owner())
    } else {
        alloc::format!("which {revision} does not have")
    }
}

fn offers(versions: &[Box<str>]) -> String {
    match versions {
        [] => String::from("names none"),
        versions => alloc::format!("offers {}", quoted(versions)),
    }
}

fn quoted(paths: &[Box<str>]) -> String {
    let quoted = paths.iter().map(|path| alloc::format!("`{path}`"));
    quoted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn a_server_without_versions_has_its_own_message() {
        let told = |offered| {
            let ours = RevisionSet::of(&[Revision::V2026_07_28]);
            Incompatible::NoCommonVersion { offered, ours }.to_string()
        };
        assert_eq!(
            told(Vec::new()),
            "no common version: the server names none, we speak 2026-07-28"
        );
        assert_eq!(
            told(vec![Box::from("x"), Box::from("y")]),
            "no common version: the server offers `x`, `y`, we speak 2026-07-28"
        );
    }
}
