//! The whole negotiation of two documents, without messages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use mcpact_spec::{Era, Revision, Side};
use mcpact_wire::model::implementation::Implementation;

use crate::capability::CapabilitySet;
use crate::pact::{Pact, Party};
use crate::policy::{Policy, Reading};
use crate::refusal::{Dialect, Incompatible, Refusal};
use crate::revisions::{RevisionId, RevisionSet};
use crate::transcript::Transcript;
use crate::version::{self, Chosen, Selection};

/// Offer of one side.
#[derive(Clone, Debug)]
pub struct Offer<'a> {
    /// The versions that it speaks; the client asks for the newest.
    pub versions: Vec<RevisionId>,
    /// Its raw capability document.
    pub capabilities: Option<&'a str>,
    /// Name and version.
    pub info: Option<Implementation>,
}

/// Result of a negotiation, with its transcript.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The pact, or the refusal.
    pub pact: Result<Pact, Refusal>,
    /// Transcript.
    pub transcript: Transcript,
}

/// Negotiates two offers under the server's policy.
///
/// The outcome is that of the specification's compatibility matrix: a modern version that both
/// speak wins; otherwise the handshake decides; otherwise there is no pact.
#[must_use]
pub fn negotiate(client: &Offer<'_>, server: &Offer<'_>, policy: &Policy) -> Outcome {
    let mut transcript = Transcript::default();
    let pact = conclude(client, server, policy, &mut transcript);
    match &pact {
        Ok(pact) => transcript.agreed(pact),
        Err(refusal) => transcript.refused(refusal, dialect(client, policy)),
    }
    Outcome { pact, transcript }
}

fn dialect(client: &Offer<'_>, policy: &Policy) -> Dialect {
    let revision = known(&client.versions)
        .newest()
        .unwrap_or(Revision::newest(Era::Legacy));
    Dialect {
        revision,
        errors: policy.errors,
    }
}

fn conclude(
    client: &Offer<'_>,
    server: &Offer<'_>,
    policy: &Policy,
    transcript: &mut Transcript,
) -> Result<Pact, Refusal> {
    for (side, offer) in [(Side::Client, client), (Side::Server, server)] {
        // The transcript tells what was offered even when the offer is then refused.
        if let Ok(set) = CapabilitySet::parse(side, offer.capabilities, Reading::Lenient) {
            transcript.declared(&set, offer.versions.iter().map(RevisionId::as_str));
        }
    }
    // The version comes first: nothing else matters when it does not fit.
    let selection = select(client, server, policy)?;
    transcript.selected(selection.revision, selection.how);
    let party = |owner, offer: &Offer<'_>| {
        Party::parse(owner, offer.info.clone(), offer.capabilities, policy)
    };
    let (client, server) = (party(Side::Client, client)?, party(Side::Server, server)?);
    for party in [&client, &server] {
        let (_, trimmed) = party.capabilities.encode(selection.revision, policy);
        transcript.trimmed(party.capabilities.owner(), trimmed);
    }
    let pact = Pact::new(selection.revision, client, server);
    require(&pact, Side::Client, policy)?;
    Ok(pact)
}

fn known(versions: &[RevisionId]) -> RevisionSet {
    versions.iter().filter_map(RevisionId::known).collect()
}

fn select(client: &Offer<'_>, server: &Offer<'_>, policy: &Policy) -> Result<Selection, Refusal> {
    let mut served = policy.version.clone();
    served.supported = served.supported.and(known(&server.versions));
    let ours = known(&client.versions);
    if let Some(revision) = version::served_per_request(&served).and(ours).newest() {
        return Ok(Selection {
            revision,
            how: Chosen::Requested,
        });
    }
    let is_modern_only = !ours.is_empty() && ours.in_era(Era::Legacy).is_empty();
    if version::announced(&served).is_empty() || is_modern_only {
        // There is nothing to answer with, or a client that sends no `initialize` to be answered.
        let offered = server
            .versions
            .iter()
            .map(|v| Box::from(v.as_str()))
            .collect();
        return Err(Incompatible::NoCommonVersion { offered, ours }.into());
    }
    let requested = client
        .versions
        .iter()
        .find(|v| v.known().is_none_or(|r| r.era() == Era::Legacy));
    let selection = version::select(&served, requested)?;
    // 2025-11-25 basic/lifecycle#version-negotiation: a client that cannot speak the answer leaves.
    if selection.how == Chosen::CounterOffered && !ours.contains(selection.revision) {
        let answered = RevisionId::Known(selection.revision);
        return Err(Incompatible::Answered { answered, ours }.into());
    }
    Ok(selection)
}

/// Checks the capabilities that a policy will not do without.
///
/// # Errors
/// The paths that `side` lacks.
pub fn require(pact: &Pact, side: Side, policy: &Policy) -> Result<(), Refusal> {
    let paths: Vec<Box<str>> = policy
        .required
        .iter()
        .filter(|path| !pact.has(side, path))
        .map(|path| Box::from(path.as_ref()))
        .collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(Incompatible::Capabilities {
        lacking: side,
        paths,
    }
    .into())
}
