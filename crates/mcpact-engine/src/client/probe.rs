//! Is the server modern or legacy? One question, and every answer that servers in the field give.

use alloc::boxed::Box;
use alloc::vec::Vec;

use mcpact_spec::{Era, ErrorCode, Method, Revision};

use super::TransportKind;
use crate::refusal::Incompatible;
use crate::revisions::RevisionSet;

/// Answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A discover result that lists these versions.
    Discovered {
        /// As the server wrote them.
        versions: Vec<Box<str>>,
    },
    /// A result that is no discover result.
    Unreadable,
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// The versions in its data.
        supported: Vec<Box<str>>,
        /// The status of the HTTP answer that carried it.
        http_status: Option<u16>,
    },
    /// An HTTP answer without a JSON-RPC message.
    Status(u16),
    /// Nothing, for too long.
    Silence,
    /// The process exited or the connection broke.
    Exited,
}

/// Conclusion from an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The server is modern; this revision will be spoken.
    Modern(Revision),
    /// The server is modern; ask again with this revision.
    Retry(Revision),
    /// The server is legacy; shake hands on the same connection.
    Legacy(Evidence),
    /// The probe ended the server: restart it and begin with the handshake.
    Respawn,
    /// Nothing can be concluded, or nothing fits.
    Fail(ProbeFailure),
}

/// Evidence of a legacy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// An error that no modern server would send.
    Error(i64),
    /// An HTTP status that no modern server would send.
    Status(u16),
    /// A result that no modern server would send.
    Result,
    /// It lists only versions with a handshake.
    Listed,
    /// Silence on a stream.
    Silence,
}

/// Reason why era detection failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeFailure {
    /// The server wants credentials; that says nothing about its era.
    #[error("the server wants authentication (HTTP {0})")]
    Authentication(u16),
    /// The server is busy; that says nothing about its era.
    #[error("the server has too many requests (HTTP 429)")]
    TooManyRequests,
    /// The server answered with a status of 500 or above; that says nothing about its era.
    #[error("the server answered with HTTP {0}")]
    ServerTrouble(u16),
    /// The answer is not from an MCP server.
    #[error("the answer is not MCP (HTTP {0})")]
    NotMcp(u16),
    /// Nothing came; on HTTP that says nothing about the era.
    #[error("the server did not answer")]
    Silence,
    /// The connection broke.
    #[error("the connection closed during the probe")]
    Closed,
    /// A modern server refused a request that was complete.
    #[error("the modern server refused the probe with code {0}")]
    Refused(i64),
    /// The server's versions and ours do not meet.
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
}

/// The probe and the revisions that may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Transport of the connection.
    pub transport: TransportKind,
    /// Revisions that we support.
    pub supported: RevisionSet,
    /// The method of the probe; any modern request can serve as one.
    pub method: Method,
    /// The revision that it was sent under.
    pub asked: Revision,
}

/// Draws the conclusion from one observation.
///
/// `2026-07-28 basic/transports/stdio#backward-compatibility`: the fallback must not hang on one
/// code. `2026-07-28 basic/transports/streamable-http#backward-compatibility` for the statuses.
#[must_use]
pub fn conclude(question: &Question, saw: &Observation) -> Conclusion {
    let verdict = match saw {
        Observation::Discovered { versions } => choose(question, versions),
        Observation::Unreadable => Conclusion::Legacy(Evidence::Result),
        Observation::Error {
            code,
            supported,
            http_status,
        } => match http_status.and_then(not_evidence) {
            Some(failure) => Conclusion::Fail(failure),
            None => on_error(question, *code, supported, *http_status),
        },
        Observation::Status(status) => match not_evidence(*status) {
            Some(failure) => Conclusion::Fail(failure),
            None if is_legacy(question, *status) => Conclusion::Legacy(Evidence::Status(*status)),
            None => Conclusion::Fail(ProbeFailure::NotMcp(*status)),
        },
        Observation::Silence => match question.transport {
            TransportKind::Child | TransportKind::Stream => Conclusion::Legacy(Evidence::Silence),
            TransportKind::Http => Conclusion::Fail(ProbeFailure::Silence),
        },
        Observation::Exited => match question.transport {
            TransportKind::Child => Conclusion::Respawn,
            TransportKind::Stream | TransportKind::Http => Conclusion::Fail(ProbeFailure::Closed),
        },
    };
    above_floor(question, verdict)
}

/// Returns whether a status without a message is that of a legacy server. Some take what they do not know for a
/// notification, or answer it with nothing, and still know `initialize`.
fn is_legacy(question: &Question, status: u16) -> bool {
    let speaks_legacy = !question.supported.in_era(Era::Legacy).is_empty();
    (400..500).contains(&status) || ((200..300).contains(&status) && speaks_legacy)
}

/// Statuses that say something about the moment, not about the era.
pub(super) fn not_evidence(status: u16) -> Option<ProbeFailure> {
    match status {
        401 | 403 => Some(ProbeFailure::Authentication(status)),
        429 => Some(ProbeFailure::TooManyRequests),
        500..=599 => Some(ProbeFailure::ServerTrouble(status)),
        _ => None,
    }
}

fn on_error(
    question: &Question,
    code: i64,
    supported: &[Box<str>],
    http_status: Option<u16>,
) -> Conclusion {
    match ErrorCode::parse(code) {
        Some(ErrorCode::UnsupportedVersion) => match choose(question, supported) {
            // The same version again would only be refused again.
            Conclusion::Modern(revision) if revision == question.asked => {
                Conclusion::Fail(no_common(question, supported).into())
            }
            Conclusion::Modern(revision) => Conclusion::Retry(revision),
            other @ (Conclusion::Retry(_)
            | Conclusion::Legacy(_)
            | Conclusion::Respawn
            | Conclusion::Fail(_)) => other,
        },
        Some(known) if known.proves_modern() => Conclusion::Fail(ProbeFailure::Refused(code)),
        // A modern server must implement discover, so only another method can be missing from one.
        Some(ErrorCode::MethodNotFound)
            if http_status == Some(404) && question.method != Method::Discover =>
        {
            Conclusion::Modern(question.asked)
        }
        Some(_) | None => Conclusion::Legacy(Evidence::Error(code)),
    }
}

fn choose(question: &Question, listed: &[Box<str>]) -> Conclusion {
    let common = RevisionSet::of_listed(listed.iter().map(|v| &**v)).and(question.supported);
    if let Some(revision) = common.in_era(Era::Modern).newest() {
        return Conclusion::Modern(revision);
    }
    if common.is_empty() {
        Conclusion::Fail(no_common(question, listed).into())
    } else {
        Conclusion::Legacy(Evidence::Listed)
    }
}

fn no_common(question: &Question, offered: &[Box<str>]) -> Incompatible {
    Incompatible::NoCommonVersion {
        offered: offered.to_vec(),
        ours: question.supported,
    }
}

/// A client that will not speak legacy does not fall back to it.
fn above_floor(question: &Question, conclusion: Conclusion) -> Conclusion {
    let is_legacy = matches!(conclusion, Conclusion::Legacy(_) | Conclusion::Respawn);
    if is_legacy && question.supported.in_era(Era::Legacy).is_empty() {
        return Conclusion::Fail(no_common(question, &[]).into());
    }
    conclusion
}
