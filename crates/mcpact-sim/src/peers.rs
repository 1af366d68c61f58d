//! Peers of every revision, era and set of capabilities.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::ClientTerms;
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{Era, Revision, Side};
use mcpact_wire::model::implementation::Implementation;

/// A client document with everything that any revision defines.
pub const FULL_CLIENT: &str = r#"{"experimental":{"x":{}},"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A server document with everything that any revision defines.
pub const FULL_SERVER: &str = r#"{"experimental":{"x":{}},"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A document that declares nothing.
pub const NOTHING: &str = "{}";

fn policy(speaks: RevisionSet) -> Policy {
    let mut policy = Policy::default();
    policy.version.supported = speaks;
    policy
}

fn capabilities(owner: Side, document: &str) -> CapabilitySet {
    // A lenient reading forgives everything.
    CapabilitySet::parse(owner, Some(document), Reading::Lenient)
        .unwrap_or_else(|_| CapabilitySet::empty(owner))
}

/// A client that speaks these revisions and declares this document.
#[must_use]
pub fn client(speaks: RevisionSet, document: &str) -> ClientTerms {
    let info = Implementation::new("sim-client", "1");
    ClientTerms::new(info, capabilities(Side::Client, document), policy(speaks))
}

/// A server that speaks these revisions and declares this document.
#[must_use]
pub fn server(speaks: RevisionSet, document: &str) -> ServerTerms {
    let info = Implementation::new("sim-server", "1");
    ServerTerms::new(info, capabilities(Side::Server, document), policy(speaks))
}

/// Every legacy revision.
#[must_use]
pub fn legacy_only() -> RevisionSet {
    RevisionSet::of_era(Era::Legacy)
}

/// Every modern revision.
#[must_use]
pub fn modern_only() -> RevisionSet {
    RevisionSet::of_era(Era::Modern)
}

/// Every revision.
#[must_use]
pub const fn dual() -> RevisionSet {
    RevisionSet::ALL
}

/// This revision and nothing else.
#[must_use]
pub fn exactly(revision: Revision) -> RevisionSet {
    RevisionSet::of(&[revision])
}

/// Every legacy revision up to this one.
#[must_use]
pub fn legacy_up_to(revision: Revision) -> RevisionSet {
    legacy_only()
        .iter()
        .filter(|r| *r <= revision)
        .fold(RevisionSet::NONE, RevisionSet::with)
}

/// Every set that can be made of the five revisions, the empty one first.
pub fn every_set() -> impl Iterator<Item = RevisionSet> {
    (0_u32..1 << Revision::COUNT).map(|bits| {
        Revision::ALL
            .into_iter()
            .filter(|r| bits >> r.index() & 1 == 1)
            .fold(RevisionSet::NONE, RevisionSet::with)
    })
}
