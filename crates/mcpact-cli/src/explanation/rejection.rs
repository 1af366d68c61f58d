use mcpact_engine::policy::{Profile, VersionRule};
use mcpact_engine::refusal::{Dialect, Incompatible, Misbehaviour, Refusal, WireError};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::version::announced;
use mcpact_spec::{Era, Revision, Side};

use super::{Explanation, Setting};
use crate::document::Document;

/// A refusal in words for people, and what the peer would see of it.
#[derive(Debug)]
pub(crate) struct Rejection {
    /// A stable word.
    pub(crate) reason: &'static str,
    /// What is in the way.
    pub(crate) why: String,
    /// What would help, most promising first.
    pub(crate) remedies: Vec<String>,
    /// The error that says so.
    pub(crate) wire: WireError,
    /// Who gets the error; a client that cannot speak the answer leaves without a word.
    pub(crate) told: Option<Side>,
}

impl Rejection {
    /// Explains a refusal.
    pub(crate) fn new(explanation: &Explanation, refusal: &Refusal) -> Self {
        let (why, remedies) = match refusal {
            Refusal::PeerIncompatible(incompatible) => incompatibility(explanation, incompatible),
            Refusal::PeerMisbehaved(misbehaviour) => fault(misbehaviour),
        };
        Self {
            reason: refusal.reason(),
            why,
            remedies,
            wire: refusal.on_wire(dialect(explanation)),
            told: told(refusal),
        }
    }
}

/// `2025-11-25 basic/lifecycle#version-negotiation`: a client that does not support the version of
/// the answer disconnects. A server that speaks only what nobody knows answers with just that.
fn told(refusal: &Refusal) -> Option<Side> {
    match refusal {
        Refusal::PeerIncompatible(
            Incompatible::Answered { .. } | Incompatible::NoCommonVersion { .. },
        ) => None,
        Refusal::PeerIncompatible(
            Incompatible::Version { .. } | Incompatible::Capabilities { .. },
        )
        | Refusal::PeerMisbehaved(_) => Some(Side::Client),
    }
}

/// An error is told in the words of the newest revision that the client is known to speak.
fn dialect(explanation: &Explanation) -> Dialect {
    Dialect {
        revision: known(explanation.document(Side::Client))
            .newest()
            .unwrap_or(Revision::newest(Era::Legacy)),
        errors: explanation.setting().policy.errors,
    }
}

fn known(document: &Document) -> RevisionSet {
    RevisionSet::of_listed(document.versions().iter().map(RevisionId::as_str))
}

fn incompatibility(
    explanation: &Explanation,
    incompatible: &Incompatible,
) -> (String, Vec<String>) {
    match incompatible {
        Incompatible::Version { requested, why, .. } => {
            let text = format!(
                "{}: the client asks for `{requested}`, the server speaks {}",
                why.text(),
                spoken(explanation.document(Side::Server)),
            );
            (text, version_remedies(explanation))
        }
        Incompatible::Answered { answered, .. } => {
            let text = format!(
                "the server answers with `{answered}`, the client speaks only {}",
                spoken(explanation.document(Side::Client)),
            );
            (text, version_remedies(explanation))
        }
        Incompatible::NoCommonVersion { .. } => {
            let text = format!(
                "no version in common: the client speaks {}, the server {}",
                spoken(explanation.document(Side::Client)),
                spoken(explanation.document(Side::Server)),
            );
            (text, version_remedies(explanation))
        }
        Incompatible::Capabilities { .. } => {
            (incompatible.to_string(), vec![incompatible.advice()])
        }
    }
}

/// What a side wrote about its versions.
fn spoken(document: &Document) -> String {
    let all: Vec<String> = document
        .versions()
        .iter()
        .map(|version| match version {
            RevisionId::Known(revision) => revision.to_string(),
            RevisionId::Unknown(text) => format!("`{text}` (unknown)"),
        })
        .collect();
    if all.is_empty() {
        return String::from("nothing");
    }
    all.join(", ")
}

fn version_remedies(explanation: &Explanation) -> Vec<String> {
    let allowed = announced(&explanation.setting().policy.version);
    let client = known(explanation.document(Side::Client));
    let server = known(explanation.document(Side::Server));
    let mut remedies: Vec<String> = profile_remedy(explanation.setting()).into_iter().collect();
    if client.is_empty() || server.is_empty() {
        remedies.push(format!(
            "use the name of a revision: {}",
            RevisionSet::ALL.choice()
        ));
        return remedies;
    }
    let common = client.and(server).and(allowed);
    if !common.is_empty() {
        remedies.push(format!(
            "let the client ask for {} at once",
            common.choice()
        ));
        return remedies;
    }
    for (side, missing) in [(Side::Client, server), (Side::Server, client)] {
        let missing = missing.and(allowed);
        if !missing.is_empty() {
            remedies.push(format!("let the {side} speak {} too", missing.choice()));
        }
    }
    if eras(client) != eras(server) {
        remedies.push(String::from(
            "the two sides are of different eras: if neither can change, something between them \
             must translate",
        ));
    }
    remedies
}

/// Whether a side speaks something of each era.
fn eras(set: RevisionSet) -> [bool; 2] {
    [Era::Legacy, Era::Modern].map(|era| !set.in_era(era).is_empty())
}

/// What to do about a profile that takes less than the specification knows.
fn profile_remedy(setting: &Setting) -> Option<String> {
    let rule = match &setting.policy.version.rule {
        VersionRule::Listed => return None,
        VersionRule::Exact(only) => format!("only {only}"),
        VersionRule::Range { min, max } => format!("only dates from {min} to {max}"),
    };
    Some(format!(
        "the profile `{}` takes {rule} and makes no counter-offer; `--profile {}` takes every revision",
        setting.profile.as_str(),
        Profile::Spec.as_str(),
    ))
}

fn fault(misbehaviour: &Misbehaviour) -> (String, Vec<String>) {
    match misbehaviour {
        Misbehaviour::Document { owner, fault } => {
            let remedies = vec![
                format!("correct `{}` in the {owner}'s document", fault.path),
                String::from(
                    "or read it leniently, without `--strict` and with `--profile spec`: it then \
                     counts as absent",
                ),
            ];
            (format!("in the {owner}'s document, {fault}"), remedies)
        }
        Misbehaviour::Version(_) => (
            format!("the client names no version: {misbehaviour}"),
            vec![String::from(
                "put `protocolVersion` or `supportedVersions` into the client's document",
            )],
        ),
        other => (other.to_string(), Vec::new()),
    }
}
