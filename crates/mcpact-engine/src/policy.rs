//! Every choice that the specification leaves to an implementation, as one value.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use mcpact_spec::Revision;

use crate::revisions::RevisionSet;

/// Served versions, and the treatment of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionPolicy {
    /// Supported revisions.
    pub supported: RevisionSet,
    /// Rule for requested versions.
    pub rule: VersionRule,
    /// Answer to an unacceptable version in `initialize`.
    pub on_unsupported: OnUnsupported,
    /// Answer to a missing version in `initialize`.
    pub on_missing: OnMissing,
}

/// Rule for requested versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionRule {
    /// Every supported one.
    Listed,
    /// Only this one.
    Exact(Revision),
    /// Dates from `min` to `max`, both included.
    Range {
        /// The oldest acceptable date.
        min: Cow<'static, str>,
        /// The newest acceptable date.
        max: Cow<'static, str>,
    },
}

/// Answer to an unacceptable version in `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnsupported {
    /// A result with the newest version that we do support.
    CounterOffer,
    /// An error that lists what is supported.
    Reject,
}

/// Answer to a missing version in `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// An error that names the member.
    Refuse,
    /// The version that we prefer, with a note in the transcript.
    AssumePreferred,
}

/// Treatment of wrongly typed capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// They fail the handshake, with the path of the first one.
    Strict,
    /// They count as absent, with a finding for each.
    Lenient,
}

/// Treatment of our own messages that were not negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It is not written; the caller gets a typed error.
    Strict,
    /// It is written, with a note.
    Lenient,
}

/// Treatment of received notifications that were not negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUndeclared {
    /// It is dropped and counted.
    Drop,
    /// It is dropped, counted and reported as a warning.
    Warn,
    /// It is dropped, counted and reported as an error of the peer.
    Error,
    /// The same, and the connection ends.
    Disconnect,
}

/// Treatment of methods that no revision defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    /// They are refused.
    Refuse,
    /// They pass, for extensions and for future revisions.
    Pass,
}

/// Treatment of a request between the `initialize` result and `notifications/initialized`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEarly {
    /// It is served: many clients race.
    Accept,
    /// It is refused.
    Refuse,
}

/// Treatment of vendor extras in the capabilities that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extras {
    /// They are left out.
    Hide,
    /// They are sent.
    Announce,
}

/// Treatment of capabilities that the peer's revision does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// They are cut.
    ToRevision,
    /// They are sent as they are.
    Keep,
}

/// A server method that is served only to clients with a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRequirement {
    /// The method.
    pub method: Cow<'static, str>,
    /// The dotted path that the client must have declared.
    pub path: Cow<'static, str>,
}

/// Error codes and texts where the specification has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorDialect {
    /// The specification's codes, and `-32600` where it has none.
    Spec,
    /// The codes and texts of erlmcp: `-32005` and its sentences.
    Erlmcp,
}

/// Everything that an implementation may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Versions.
    pub version: VersionPolicy,
    /// Wrongly typed capabilities.
    pub reading: Reading,
    /// Messages that we send.
    pub outgoing: Enforcement,
    /// Notifications that we get.
    pub undeclared: OnUndeclared,
    /// Methods that no revision defines.
    pub unknown: OnUnknown,
    /// Requests before `notifications/initialized`.
    pub early: OnEarly,
    /// Vendor extras.
    pub extras: Extras,
    /// Capabilities toward older peers.
    pub trim: Trim,
    /// Capability paths without which we will not work with the peer.
    pub required: Vec<Cow<'static, str>>,
    /// Methods that need a client capability beyond the specification.
    pub client_requirements: Vec<ClientRequirement>,
    /// Codes and texts.
    pub errors: ErrorDialect,
    /// Limit of messages in a batch.
    pub batch_limit: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Profile::Spec.policy()
    }
}

/// A named set of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The specification, with the kindest reading where it leaves room.
    Spec,
    /// Only 2025-11-25, everything else rejected, nothing forgiven.
    McpvStrict,
    /// A range of dates, `-32005`, and client capabilities as gates.
    Erlmcp,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Spec, Self::McpvStrict, Self::Erlmcp];

    /// The name in configuration and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::McpvStrict => "mcpv-strict",
            Self::Erlmcp => "erlmcp",
        }
    }

    /// The profile with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.as_str() == text)
    }

    /// The choices that the name stands for.
    #[must_use]
    pub fn policy(self) -> Policy {
        let spec = Policy {
            version: VersionPolicy {
                supported: RevisionSet::ALL,
                rule: VersionRule::Listed,
                on_unsupported: OnUnsupported::CounterOffer,
                on_missing: OnMissing::Refuse,
            },
            reading: Reading::Lenient,
            outgoing: Enforcement::Strict,
            undeclared: OnUndeclared::Drop,
            unknown: OnUnknown::Refuse,
            early: OnEarly::Accept,
            extras: Extras::Hide,
            trim: Trim::ToRevision,
            required: Vec::new(),
            client_requirements: Vec::new(),
            errors: ErrorDialect::Spec,
            batch_limit: mcpact_wire::batch::DEFAULT_BATCH_LIMIT,
        };
        match self {
            Self::Spec => spec,
            Self::McpvStrict => Policy {
                version: VersionPolicy {
                    rule: VersionRule::Exact(Revision::V2025_11_25),
                    on_unsupported: OnUnsupported::Reject,
                    ..spec.version
                },
                reading: Reading::Strict,
                ..spec
            },
            Self::Erlmcp => Policy {
                version: VersionPolicy {
                    rule: VersionRule::Range {
                        min: Cow::Borrowed("2025-01-01"),
                        max: Cow::Borrowed("2025-06-18"),
                    },
                    on_unsupported: OnUnsupported::Reject,
                    on_missing: OnMissing::AssumePreferred,
                    ..spec.version
                },
                client_requirements: erlmcp_requirements(),
                errors: ErrorDialect::Erlmcp,
                ..spec
            },
        }
    }
}

/// The access table of erlmcp: server methods that ask for client capabilities that no revision
/// defines.
fn erlmcp_requirements() -> Vec<ClientRequirement> {
    const TABLE: [(&str, &str); 9] = [
        ("resources/list", "resources"),
        ("resources/read", "resources"),
        ("resources/subscribe", "resources"),
        ("resources/unsubscribe", "resources"),
        ("tools/list", "tools"),
        ("tools/call", "tools"),
        ("prompts/list", "prompts"),
        ("prompts/get", "prompts"),
        ("sampling/createMessage", "sampling"),
    ];
    TABLE
        .into_iter()
        .map(|(method, path)| ClientRequirement {
            method: Cow::Borrowed(method),
            path: Cow::Borrowed(path),
        })
        .collect()
}
