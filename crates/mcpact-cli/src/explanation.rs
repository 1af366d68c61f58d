//! Everything that can be said about one negotiation, before anybody formats it.

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

pub(crate) use capabilities::{Idle, InEffect, Sent, effective, idle, sent};
pub(crate) use methods::{Carrier, ParamRow, Row, rows};
pub(crate) use rejection::Rejection;

/// The rules of the house in which the negotiation takes place.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The name of the rules.
    pub(crate) profile: Profile,
    /// The rules.
    pub(crate) policy: Policy,
}

/// Two documents and what became of them.
#[derive(Debug)]
pub(crate) struct Explanation {
    client: Document,
    server: Document,
    setting: Setting,
    outcome: Outcome,
}

impl Explanation {
    /// Lets the engine negotiate.
    pub(crate) fn new(client: Document, server: Document, setting: Setting) -> Self {
        let outcome = negotiate(&client.offer(), &server.offer(), &setting.policy);
        Self {
            client,
            server,
            setting,
            outcome,
        }
    }

    /// What was agreed, or why nothing was.
    pub(crate) const fn pact(&self) -> Result<&Pact, &Refusal> {
        self.outcome.pact.as_ref()
    }

    /// How it came about.
    pub(crate) const fn trail(&self) -> &Transcript {
        &self.outcome.transcript
    }

    /// Under which rules.
    pub(crate) const fn setting(&self) -> &Setting {
        &self.setting
    }

    /// What a side brought.
    pub(crate) const fn document(&self, side: Side) -> &Document {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// What the client asked for in its handshake: never a version that has none.
    pub(crate) fn asked(&self) -> Option<&RevisionId> {
        let versions = self.client.versions();
        let fits = |version: &&RevisionId| {
            version
                .known()
                .is_none_or(|revision| revision.era() == Era::Legacy)
        };
        versions.iter().find(fits).or(versions.first())
    }

    /// Why the revision is the one that it is.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        self.trail().events().iter().find_map(|event| match event {
            TranscriptEvent::Selected { how, .. } => Some(*how),
            _ => None,
        })
    }
}
