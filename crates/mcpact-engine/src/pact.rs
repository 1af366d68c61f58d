//! The agreement of two peers.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Era, Extension, Revision, Side};
use mcpact_wire::model::implementation::Implementation;

use crate::capability::{
    Agreement, CapabilityBits, CapabilitySet, SharedExtension, agree, agree_experimental, share,
    share_experimental,
};
use crate::policy::Policy;
use crate::refusal::{Misbehaviour, Refusal};

/// One side of a pact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Name and version; optional for a modern client.
    pub info: Option<Arc<Implementation>>,
    /// Declared capabilities.
    pub capabilities: Arc<CapabilitySet>,
}

impl Party {
    /// A side that is known from before.
    #[must_use]
    pub fn new(info: Option<Implementation>, capabilities: CapabilitySet) -> Self {
        Self {
            info: info.map(Arc::new),
            capabilities: Arc::new(capabilities),
        }
    }

    /// Reads the raw capability document of a side.
    pub(crate) fn parse(
        owner: Side,
        info: Option<Implementation>,
        capabilities: Option<&str>,
        policy: &Policy,
    ) -> Result<Self, Refusal> {
        let capabilities = CapabilitySet::parse(owner, capabilities, policy.reading)
            .map_err(|fault| Misbehaviour::Document { owner, fault })?;
        Ok(Self::new(info, capabilities))
    }
}

/// A declaration without effect, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredDeclaration {
    /// Side that declared it.
    pub owner: Side,
    /// The dotted path.
    pub path: Box<str>,
    /// Reason.
    pub why: IgnoreReason,
}

/// Reason why a declaration has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// The revision does not define it.
    NotInRevision,
    /// It names only URLs, and the revision knows only forms.
    OnlyUrls,
    /// The value is not of the kind that the path needs.
    Malformed,
    /// The other side does not have it, and it takes two.
    NotShared,
    /// Both have it, with no version in common.
    NoCommonVersion,
    /// It has effect only under other revisions.
    NotInForce,
    /// Its identifier has no prefix.
    BadIdentifier,
}

impl IgnoreReason {
    /// The reason as a sentence.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::NotInRevision => "the negotiated revision does not define it",
            Self::OnlyUrls => "it names only URLs, and the negotiated revision knows only forms",
            Self::Malformed => "its value is of the wrong type",
            Self::NotShared => "the other side did not declare it",
            Self::NoCommonVersion => "no version of it is common to both",
            Self::NotInForce => "it has no effect under the negotiated revision",
            Self::BadIdentifier => "an extension identifier needs a prefix",
        }
    }
}

/// Agreement of two peers: one revision, and the capabilities that each may use.
///
/// Built once and never edited; a legacy session has one, a modern request has its own. Client-owned
/// and server-owned capabilities follow their owner; `experimental` and `extensions` need both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pact {
    revision: Revision,
    client: Party,
    server: Party,
    effective: CapabilityBits,
    extensions: Vec<SharedExtension>,
    experimental: Vec<SharedExtension>,
}

impl Pact {
    /// Puts two declarations together under a revision.
    #[must_use]
    pub fn new(revision: Revision, client: Party, server: Party) -> Self {
        let effective = client
            .capabilities
            .declared()
            .under(revision)
            .or(server.capabilities.declared().under(revision));
        let extensions = share(&client.capabilities, &server.capabilities, revision);
        let experimental = share_experimental(&client.capabilities, &server.capabilities);
        Self {
            revision,
            client,
            server,
            effective,
            extensions,
            experimental,
        }
    }

    /// The revision that both speak.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The era of that revision.
    #[must_use]
    pub const fn era(&self) -> Era {
        self.revision.era()
    }

    /// One of the two sides.
    #[must_use]
    pub const fn party(&self, side: Side) -> &Party {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns whether the owner of the capability declared it and the revision knows it.
    #[must_use]
    pub const fn declares(&self, capability: Capability) -> bool {
        self.effective.has(capability)
    }

    /// Everything that is in effect.
    #[must_use]
    pub const fn effective(&self) -> CapabilityBits {
        self.effective
    }

    /// The extensions that both sides declared.
    #[must_use]
    pub fn extensions(&self) -> &[SharedExtension] {
        &self.extensions
    }

    /// The experimental features that both sides declared.
    #[must_use]
    pub fn experimental(&self) -> &[SharedExtension] {
        &self.experimental
    }

    /// The side that stands in the way of an extension, if one does.
    #[must_use]
    pub fn lacking(&self, extension: Extension) -> Option<Side> {
        if self
            .extensions
            .iter()
            .any(|shared| &*shared.id == extension.id())
        {
            return None;
        }
        let declared = |party: &Party| {
            party
                .capabilities
                .extensions()
                .any(|(id, _)| id == extension.id())
        };
        Some(if declared(&self.server) {
            Side::Client
        } else {
            Side::Server
        })
    }

    /// Returns whether a dotted path of one side is in effect; what the tables do not know counts as
    /// declared or not.
    #[must_use]
    pub fn has(&self, owner: Side, path: &str) -> bool {
        match Capability::parse(owner, path) {
            Some(capability) => self.declares(capability),
            None => self.party(owner).capabilities.has(path),
        }
    }

    /// Every declaration that has no effect, with the reason.
    #[must_use]
    pub fn ignored(&self) -> Vec<IgnoredDeclaration> {
        let mut all = Vec::new();
        for party in [&self.client, &self.server] {
            let set = &party.capabilities;
            let owner = set.owner();
            all.extend(set.findings().iter().map(|fault| IgnoredDeclaration {
                owner,
                path: fault.path.trim_start_matches("capabilities.").into(),
                why: IgnoreReason::Malformed,
            }));
            let idle = set.declared().iter().filter(|c| !self.declares(*c));
            all.extend(idle.map(|c| IgnoredDeclaration {
                owner,
                path: c.path().into(),
                why: if c.presence(self.revision).counts() {
                    IgnoreReason::OnlyUrls
                } else {
                    IgnoreReason::NotInRevision
                },
            }));
        }
        let (client, server) = (&self.client.capabilities, &self.server.capabilities);
        for (map, agreements) in [
            ("extensions", agree(client, server, self.revision)),
            ("experimental", agree_experimental(client, server)),
        ] {
            all.extend(agreements.into_iter().filter_map(|a| unshared(map, a)));
        }
        all
    }
}

fn unshared(map: &str, agreement: Agreement) -> Option<IgnoredDeclaration> {
    let (owner, id, why) = match agreement {
        Agreement::Shared(_) => return None,
        Agreement::ClientOnly(id) => (Side::Client, id, IgnoreReason::NotShared),
        Agreement::ServerOnly(id) => (Side::Server, id, IgnoreReason::NotShared),
        Agreement::NoCommonVersion(id) => (Side::Client, id, IgnoreReason::NoCommonVersion),
        Agreement::NotInForce(id, side) => (side, id, IgnoreReason::NotInForce),
        Agreement::BadIdentifier(id, side) => (side, id, IgnoreReason::BadIdentifier),
    };
    Some(IgnoredDeclaration {
        owner,
        path: alloc::format!("{map}.{id}").into(),
        why,
    })
}
