//! Result of `mcpact explain`, independent of the output format.

mod capabilities;
mod methods;
mod rejection;

use mcpact_engine::negotiate::{Outcome, negotiate};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::{Policy, Profile};
use mcpact_engine::refusal::Refusal;
use mcpact_engine::revisions::RevisionId;
use mcpact_engine::transcript::{Transcript, TranscriptEvent};
use mcpact_engine::version::Chosen;
use mcpact_spec::{Era, Side};

use crate::document::Document;

pub(crate) use capabilities::{EffectiveCapability, IgnoredCapability, effective, ignored, sent};
pub(crate) use methods::{MessageKind, MethodVerdict, Verdict, verdicts};
pub(crate) use rejection::Rejection;
#[cfg(test)]
pub(crate) use {capabilities::IgnoredReason, methods::MethodReason};

/// Policy of the server.
#[derive(Debug)]
pub(crate) struct ServerPolicy {
    /// The profile it is based on.
    pub(crate) profile: Profile,
    /// The policy.
    pub(crate) policy: Policy,
}

/// Two documents and the result of their negotiation.
#[derive(Debug)]
pub(crate) struct Explanation {
    client: Document,
    server: Document,
    pub(crate) policy: ServerPolicy,
    outcome: Outcome,
}

impl Explanation {
    /// Negotiates the two documents.
    pub(crate) fn new(client: Document, server: Document, policy: ServerPolicy) -> Self {
        let outcome = negotiate(&client.offer(), &server.offer(), &policy.policy);
        Self {
            client,
            server,
            policy,
            outcome,
        }
    }

    /// Returns the pact, or the refusal.
    pub(crate) const fn pact(&self) -> Result<&Pact, &Refusal> {
        self.outcome.pact.as_ref()
    }

    /// Returns the transcript of the negotiation.
    pub(crate) const fn trail(&self) -> &Transcript {
        &self.outcome.transcript
    }

    /// Returns the document of a side.
    pub(crate) const fn document(&self, side: Side) -> &Document {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the version that the client requests in its handshake, which only legacy versions have.
    pub(crate) fn requested(&self) -> Option<&RevisionId> {
        let versions = &self.client.versions;
        let fits = |version: &&RevisionId| {
            version
                .known()
                .is_none_or(|revision| revision.era() == Era::Legacy)
        };
        versions.iter().find(fits).or(versions.first())
    }

    /// Returns how the revision was selected.
    pub(crate) fn selection(&self) -> Option<Chosen> {
        self.trail().events().iter().find_map(|event| match event {
            TranscriptEvent::Selected { how, .. } => Some(*how),
            _ => None,
        })
    }
}
