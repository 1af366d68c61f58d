//! Advice for a refused peer.

use alloc::format;
use alloc::string::String;

use mcpact_spec::Era;

use super::{HeaderFault, Incompatible, Misbehaviour, Refusal, quoted};
use crate::revisions::{RevisionId, RevisionSet};

impl Refusal {
    /// Returns whether it is about what the two agree on, and not about one message under an agreement.
    #[must_use]
    pub const fn is_about_agreement(&self) -> bool {
        matches!(
            self,
            Self::PeerIncompatible(_)
                | Self::PeerMisbehaved(
                    Misbehaviour::NotInitialized { .. }
                        | Misbehaviour::NotOpened { .. }
                        | Misbehaviour::AlreadyInitialized
                        | Misbehaviour::Version(_)
                        | Misbehaviour::Document { .. }
                        | Misbehaviour::Meta { .. }
                        | Misbehaviour::Header { .. }
                        | Misbehaviour::ClientRequirement { .. }
                        | Misbehaviour::SessionVersion { .. }
                )
        )
    }

    /// Advice, where there is any.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::PeerIncompatible(incompatible) => Some(incompatible.advice()),
            Self::PeerMisbehaved(misbehaviour) => misbehaviour.advice(),
        }
    }
}

impl Incompatible {
    /// Advice.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Version {
                requested,
                supported,
                ..
            } => meet(one(requested), *supported),
            Self::Answered { answered, ours } => meet(*ours, one(answered)),
            Self::NoCommonVersion { offered, ours } => {
                let listed = RevisionSet::of_listed(offered.iter().map(AsRef::as_ref));
                meet(*ours, listed)
            }
            Self::Capabilities { lacking, paths } => {
                format!("declare {} in the {lacking}'s capabilities", quoted(paths))
            }
        }
    }
}

fn one(version: &RevisionId) -> RevisionSet {
    RevisionSet::of_listed([version.as_str()])
}

/// Advice for peers without a common revision: one of them adopts a revision of the other, or a
/// bridge translates.
fn meet(client: RevisionSet, server: RevisionSet) -> String {
    let mut ways = alloc::vec::Vec::new();
    if !server.is_empty() {
        ways.push(format!("let the client ask for {}", server.choice()));
    }
    if !client.is_empty() {
        ways.push(format!("let the server speak {}", client.choice()));
    }
    if ways.is_empty() {
        return format!("use the name of a revision: {}", RevisionSet::ALL.choice());
    }
    ways.push(String::from("put `mcpact bridge` between the two"));
    ways.join(", or ")
}

impl Misbehaviour {
    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NotInitialized { missing, .. } => {
                format!("let the client send `{missing}` first")
            }
            Self::NotOpened { .. } => format!(
                "let the client send `initialize` first, or metadata of {} with every request",
                RevisionSet::of_era(Era::Modern).choice()
            ),
            Self::AlreadyInitialized => {
                String::from("let the client open a new connection for a new handshake")
            }
            Self::Version(_) => format!(
                "let the client name a revision in `protocolVersion`: {}",
                RevisionSet::ALL.choice()
            ),
            Self::Document { owner, fault } => {
                format!("correct `{}` in the {owner}'s capabilities", fault.path)
            }
            Self::Meta { key, expected } => {
                format!("let the client put `{key}` into `_meta` as {expected}")
            }
            Self::Header { name, fault } => match fault {
                HeaderFault::Missing => {
                    format!("let the client repeat the value of the body in `{name}`")
                }
                HeaderFault::Repeated => format!("let the client send `{name}` once"),
                HeaderFault::Malformed | HeaderFault::Differs => {
                    format!("let the client send in `{name}` exactly what the body says")
                }
            },
            Self::ClientRequirement { path, .. } => {
                format!("declare `{path}` in the client's capabilities")
            }
            Self::SessionVersion { .. } => {
                String::from("let the client send the version of its session in the header")
            }
            Self::Method { ruling, .. } => return ruling.remedy(),
            Self::Json(_)
            | Self::Shape(_)
            | Self::Batch
            | Self::HandshakeInBatch
            | Self::BatchTooLarge { .. }
            | Self::Body(_)
            | Self::Param { .. }
            | Self::TaskSupport { .. }
            | Self::TaskRequired
            | Self::LogLevel(_)
            | Self::DuplicateId(_)
            | Self::TooMany { .. }
            | Self::UnknownSession
            | Self::MissingSession => return None,
        })
    }
}
