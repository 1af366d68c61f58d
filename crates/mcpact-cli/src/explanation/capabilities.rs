use mcpact_engine::capability::Trimmed;
use mcpact_engine::pact::{IgnoredDeclaration, IgnoreReason, Pact};
use mcpact_engine::policy::Policy;
use mcpact_spec::{Capability, Presence, Revision, Side};

/// A capability that may be used.
#[derive(Debug)]
pub(crate) struct InEffect {
    /// The row of the table.
    pub(crate) capability: Capability,
    /// How the revision sees it, in a word.
    pub(crate) status: &'static str,
}

/// What of a side's declarations is in effect, in the order of the table.
pub(crate) fn effective(pact: &Pact, side: Side) -> Vec<InEffect> {
    pact.effective()
        .iter()
        .filter(|capability| capability.owner() == side)
        .map(|capability| InEffect {
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

/// A declaration that has no effect.
#[derive(Debug)]
pub(crate) struct Idle {
    /// Who declared it.
    pub(crate) owner: Side,
    /// The dotted path.
    pub(crate) path: String,
    /// Why, as a stable word.
    pub(crate) reason: &'static str,
    /// Why, as a sentence.
    pub(crate) explanation: String,
}

/// Every declaration that has no effect, client's first, with what no table knows.
pub(crate) fn idle(pact: &Pact) -> Vec<Idle> {
    let dropped = pact.ignored();
    let mut all = Vec::new();
    for side in [Side::Client, Side::Server] {
        let own = dropped.iter().filter(|dropped| dropped.owner == side);
        all.extend(own.map(|dropped| idle_row(pact, dropped)));
        let unknown = pact.party(side).capabilities.unknown();
        all.extend(unknown.map(|key| Idle {
            owner: side,
            path: key.to_owned(),
            reason: "unknown",
            explanation: String::from("unknown to every revision; passed on as is"),
        }));
    }
    all
}

fn idle_row(pact: &Pact, dropped: &IgnoredDeclaration) -> Idle {
    let (reason, explanation) = match dropped.why {
        IgnoreReason::NotInRevision => ("not-in-revision", not_in_revision(pact, dropped)),
        IgnoreReason::Malformed => ("malformed", malformed(pact, dropped)),
        IgnoreReason::NotShared => {
            let text = format!("only the {} declared it", dropped.owner);
            ("not-shared", text)
        }
        IgnoreReason::OnlyUrls => ("only-urls", sentence(dropped)),
        IgnoreReason::NoCommonVersion => ("no-common-version", sentence(dropped)),
        IgnoreReason::NotInForce => ("not-in-force", sentence(dropped)),
        IgnoreReason::BadIdentifier => ("bad-identifier", sentence(dropped)),
    };
    Idle {
        owner: dropped.owner,
        path: String::from(&*dropped.path),
        reason,
        explanation,
    }
}

fn sentence(dropped: &IgnoredDeclaration) -> String {
    dropped.why.explain().to_owned()
}

fn not_in_revision(pact: &Pact, dropped: &IgnoredDeclaration) -> String {
    let Some(row) = Capability::parse(dropped.owner, &dropped.path) else {
        return sentence(dropped);
    };
    let revision = pact.revision();
    let counts = |r: &Revision| row.presence(*r).counts();
    let having: Vec<&str> = Revision::ALL
        .into_iter()
        .filter(counts)
        .map(Revision::as_str)
        .collect();
    match having.as_slice() {
        [] => format!("not in {revision}"),
        [only] => format!("not in {revision}: only {only} has it"),
        [first, .., last] if Revision::NAMES.ends_with(&[last]) => {
            format!("not in {revision}: it came with {first}")
        }
        [.., last] => format!("not in {revision}: it went after {last}"),
    }
}

fn malformed(pact: &Pact, dropped: &IgnoredDeclaration) -> String {
    let findings = pact.party(dropped.owner).capabilities.findings();
    let finding = findings
        .iter()
        .find(|finding| finding.fault.path.ends_with(&*dropped.path));
    finding.map_or_else(
        || sentence(dropped),
        |finding| {
            let found = finding.fault.found.map_or("nothing", |kind| kind.as_str());
            format!("it must be {}, found {found}", finding.fault.expected)
        },
    )
}

/// A capability document as the peer would get it.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The JSON text.
    pub(crate) document: String,
    /// What is not in it any more.
    pub(crate) trimmed: Vec<Trimmed>,
}

/// What a side would send to a peer that speaks the agreed revision.
pub(crate) fn sent(pact: &Pact, side: Side, policy: &Policy) -> Sent {
    let capabilities = &pact.party(side).capabilities;
    let (document, trimmed) = capabilities.encode(pact.revision(), policy);
    Sent { document, trimmed }
}
