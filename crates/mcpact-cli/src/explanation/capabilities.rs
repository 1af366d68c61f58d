use mcpact_engine::capability::Trimmed;
use mcpact_engine::pact::{IgnoreReason, IgnoredDeclaration, Pact};
use mcpact_engine::policy::Policy;
use mcpact_spec::{Capability, Presence, Revision, Side};
use serde::Serialize;

/// A capability in effect.
#[derive(Debug)]
pub(crate) struct EffectiveCapability {
    /// The capability.
    pub(crate) capability: Capability,
    /// Its status in the revision.
    pub(crate) status: &'static str,
}

/// Returns the capabilities of a side that are in effect, in table order.
pub(crate) fn effective(pact: &Pact, side: Side) -> Vec<EffectiveCapability> {
    pact.effective()
        .iter()
        .filter(|capability| capability.owner() == side)
        .map(|capability| EffectiveCapability {
            capability,
            status: status(capability.presence(pact.revision())),
        })
        .collect()
}

const fn status(presence: Presence) -> &'static str {
    match presence {
        Presence::Undefined => "undefined",
        Presence::Defined => "defined",
        Presence::Deprecated => "deprecated",
        Presence::Implied => "implied",
        Presence::Tolerated => "tolerated",
        Presence::Removed => "removed",
    }
}

mcpact_spec::stable_strings! {
    /// Reason why a declaration has no effect: `dropped[].reason` in `mcpact explain --json`.
    pub(crate) enum IgnoredReason {
        /// A malformed identifier.
        BadIdentifier = "bad-identifier",
        /// A value of the wrong type.
        Malformed = "malformed",
        /// No common version of the extension.
        NoCommonVersion = "no-common-version",
        /// The extension is not in force.
        NotInForce = "not-in-force",
        /// The revision does not have it.
        NotInRevision = "not-in-revision",
        /// Only one side declares it.
        NotShared = "not-shared",
        /// The revision knows only forms.
        OnlyUrls = "only-urls",
        /// No revision defines it.
        Unknown = "unknown",
    }
}

/// A declared capability without effect.
#[derive(Debug, Serialize)]
pub(crate) struct IgnoredCapability {
    /// The side that declared it.
    pub(crate) side: &'static str,
    /// The dotted path.
    pub(crate) path: String,
    /// Stable reason code.
    pub(crate) reason: &'static str,
    /// Reason for people.
    pub(crate) explanation: String,
}

/// Returns the declared capabilities without effect, the client's first, including unknown ones.
pub(crate) fn ignored(pact: &Pact) -> Vec<IgnoredCapability> {
    let dropped = pact.ignored();
    let mut all = Vec::new();
    for side in [Side::Client, Side::Server] {
        let own = dropped.iter().filter(|dropped| dropped.owner == side);
        all.extend(own.map(|dropped| ignored_capability(pact, dropped)));
        let unknown = pact.party(side).capabilities.unknown();
        all.extend(unknown.map(|key| IgnoredCapability {
            side: side.as_str(),
            path: key.to_owned(),
            reason: IgnoredReason::Unknown.as_str(),
            explanation: String::from("not in any revision; passed through unchanged"),
        }));
    }
    all
}

fn ignored_capability(pact: &Pact, dropped: &IgnoredDeclaration) -> IgnoredCapability {
    let (reason, explanation) = match dropped.why {
        IgnoreReason::NotInRevision => {
            (IgnoredReason::NotInRevision, not_in_revision(pact, dropped))
        }
        IgnoreReason::Malformed => (IgnoredReason::Malformed, malformed(pact, dropped)),
        IgnoreReason::NotShared => {
            let text = format!("declared only by the {}", dropped.owner);
            (IgnoredReason::NotShared, text)
        }
        IgnoreReason::OnlyUrls => (IgnoredReason::OnlyUrls, explanation(dropped)),
        IgnoreReason::NoCommonVersion => (IgnoredReason::NoCommonVersion, explanation(dropped)),
        IgnoreReason::NotInForce => (IgnoredReason::NotInForce, explanation(dropped)),
        IgnoreReason::BadIdentifier => (IgnoredReason::BadIdentifier, explanation(dropped)),
    };
    IgnoredCapability {
        side: dropped.owner.as_str(),
        path: String::from(&*dropped.path),
        reason: reason.as_str(),
        explanation,
    }
}

fn explanation(dropped: &IgnoredDeclaration) -> String {
    dropped.why.explain().to_owned()
}

fn not_in_revision(pact: &Pact, dropped: &IgnoredDeclaration) -> String {
    let Some(row) = Capability::parse(dropped.owner, &dropped.path) else {
        return explanation(dropped);
    };
    let revision = pact.revision();
    let is_defined = |r: &Revision| row.presence(*r).counts();
    let revisions: Vec<&str> = Revision::ALL
        .into_iter()
        .filter(is_defined)
        .map(Revision::as_str)
        .collect();
    match revisions.as_slice() {
        [] => format!("not in {revision}"),
        [only] => format!("not in {revision}; only in {only}"),
        [first, .., last] if Revision::NAMES.ends_with(&[last]) => {
            format!("not in {revision}; added in {first}")
        }
        [.., last] => format!("not in {revision}; removed after {last}"),
    }
}

fn malformed(pact: &Pact, dropped: &IgnoredDeclaration) -> String {
    let findings = pact.party(dropped.owner).capabilities.findings();
    let fault = findings
        .iter()
        .find(|fault| fault.path.ends_with(&*dropped.path));
    fault.map_or_else(
        || explanation(dropped),
        |fault| {
            let found = fault.found.map_or("nothing", |kind| kind.as_str());
            format!("must be {}, found {found}", fault.expected)
        },
    )
}

/// Returns the JSON text that a side sends to a peer of the negotiated revision, and the omitted capabilities.
pub(crate) fn sent(pact: &Pact, side: Side, policy: &Policy) -> (String, Vec<Trimmed>) {
    let capabilities = &pact.party(side).capabilities;
    capabilities.encode(pact.revision(), policy)
}
