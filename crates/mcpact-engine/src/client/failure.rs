//! Failure to establish a connection.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::ProbeFailure;
use crate::refusal::{Incompatible, ReasonCode, Refusal};

/// Failure to establish a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The two do not fit, or the server broke a rule.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The server could not be asked.
    #[error(transparent)]
    Probe(#[from] ProbeFailure),
    /// The server answered `initialize` with an error.
    #[error("the server refused `initialize`: {message} ({code})")]
    Rejected {
        /// Its code.
        code: i64,
        /// Its text.
        message: String,
    },
    /// The server did not answer `initialize` in time.
    #[error("the server did not answer `initialize` in time")]
    InitTimeout,
    /// The connection went away before there was an agreement.
    #[error("the connection closed before there was an agreement")]
    ConnectionClosed,
}

impl Failure {
    /// A stable word for logs; everything that is about versions has one and the same.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        let code = match self {
            Self::Refused(Refusal::PeerIncompatible(incompatible))
            | Self::Probe(ProbeFailure::Incompatible(incompatible)) => match incompatible {
                Incompatible::Version { .. }
                | Incompatible::Answered { .. }
                | Incompatible::NoCommonVersion { .. } => ReasonCode::ProtocolVersionMismatch,
                Incompatible::Capabilities { .. } => ReasonCode::MissingCapability,
            },
            Self::Refused(refusal @ Refusal::PeerMisbehaved(_)) => return refusal.reason(),
            Self::Probe(ProbeFailure::Authentication(_)) => ReasonCode::AuthenticationRequired,
            Self::Probe(ProbeFailure::TooManyRequests) => ReasonCode::TooManyRequests,
            Self::Probe(ProbeFailure::ServerTrouble(_)) => ReasonCode::ServerTrouble,
            Self::Probe(ProbeFailure::NotMcp(_)) => ReasonCode::NotMcp,
            Self::Probe(ProbeFailure::Silence) | Self::InitTimeout => ReasonCode::Silence,
            Self::Probe(ProbeFailure::Refused(_)) | Self::Rejected { .. } => ReasonCode::Rejected,
            Self::Probe(ProbeFailure::Closed) | Self::ConnectionClosed => {
                ReasonCode::ConnectionClosed
            }
        };
        code.as_str()
    }

    /// The versions that the server has said it speaks.
    pub(crate) fn versions(&self) -> Vec<Box<str>> {
        let (Self::Refused(Refusal::PeerIncompatible(incompatible))
        | Self::Probe(ProbeFailure::Incompatible(incompatible))) = self
        else {
            return Vec::new();
        };
        match incompatible {
            Incompatible::Answered { answered, .. } => vec![Box::from(answered.as_str())],
            Incompatible::NoCommonVersion { offered, .. } => offered.clone(),
            Incompatible::Version { supported, .. } => {
                supported.names().into_iter().map(Box::from).collect()
            }
            Incompatible::Capabilities { .. } => Vec::new(),
        }
    }

    /// Advice for the user.
    #[must_use]
    pub fn advice(&self) -> String {
        let specific = match self {
            Self::Refused(refusal) => refusal.advice(),
            Self::Probe(ProbeFailure::Incompatible(incompatible)) => Some(incompatible.advice()),
            Self::Probe(_) | Self::Rejected { .. } | Self::InitTimeout | Self::ConnectionClosed => {
                None
            }
        };
        specific.unwrap_or_else(|| String::from(self.remedy()))
    }

    const fn remedy(&self) -> &'static str {
        match self {
            Self::Refused(_) | Self::Probe(ProbeFailure::Incompatible(_)) => {
                "let both follow the specification of one revision"
            }
            Self::Probe(ProbeFailure::NotMcp(_)) => {
                "check the path of the address; MCP servers often listen at `/mcp`"
            }
            Self::Probe(ProbeFailure::Authentication(_)) => "set an `Authorization` header",
            Self::Probe(ProbeFailure::TooManyRequests | ProbeFailure::ServerTrouble(_)) => {
                "try again later"
            }
            Self::Probe(ProbeFailure::Silence) | Self::InitTimeout => {
                "it is silent; check that it is an MCP server, or allow it more time"
            }
            Self::Probe(ProbeFailure::Refused(_)) | Self::Rejected { .. } => {
                "the server refused the first message; look into its log"
            }
            Self::Probe(ProbeFailure::Closed) | Self::ConnectionClosed => {
                "it went away; look into its log"
            }
        }
    }
}
