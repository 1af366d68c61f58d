use mcpact_engine::policy::{Profile, VersionRule};
use mcpact_engine::refusal::{Dialect, Incompatible, Misbehaviour, Refusal, WireError};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::version::announced;
use mcpact_spec::{Era, Revision, Side};

use super::{Explanation, ServerPolicy};
use crate::document::Document;

/// A refused negotiation, explained.
#[derive(Debug)]
pub(crate) struct Rejection {
    /// Stable reason code.
    pub(crate) reason: &'static str,
    /// The cause.
    pub(crate) cause: String,
    /// Possible fixes, best first.
    pub(crate) fixes: Vec<String>,
    /// The error on the wire.
    pub(crate) wire: WireError,
    /// The receiver of the error; `None` if the client disconnects instead.
    pub(crate) receiver: Option<Side>,
}

impl Rejection {
    /// Explains a refusal.
    pub(crate) fn new(explanation: &Explanation, refusal: &Refusal) -> Self {
        let (cause, fixes) = match refusal {
            Refusal::PeerIncompatible(incompatible) => incompatibility(explanation, incompatible),
            Refusal::PeerMisbehaved(misbehaviour) => fault(misbehaviour),
        };
        Self {
            reason: refusal.reason(),
            cause,
            fixes,
            wire: refusal.on_wire(dialect(explanation)),
            receiver: receiver(refusal),
        }
    }
}

/// `2025-11-25 basic/lifecycle#version-negotiation`: a client that does not support the version of
/// the response disconnects. A server with only unknown versions responds with one of them.
fn receiver(refusal: &Refusal) -> Option<Side> {
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

/// Errors use the dialect of the latest known revision of the client.
fn dialect(explanation: &Explanation) -> Dialect {
    Dialect {
        revision: known(explanation.document(Side::Client))
            .newest()
            .unwrap_or(Revision::newest(Era::Legacy)),
        errors: explanation.policy.policy.errors,
    }
}

fn known(document: &Document) -> RevisionSet {
    RevisionSet::of_listed(document.versions.iter().map(RevisionId::as_str))
}

fn incompatibility(
    explanation: &Explanation,
    incompatible: &Incompatible,
) -> (String, Vec<String>) {
    let [client, server] =
        [Side::Client, Side::Server].map(|side| versions(explanation.document(side)));
    let text = match incompatible {
        Incompatible::Version { requested, why, .. } => format!(
            "{}: the client requests `{requested}`, the server supports {server}",
            why.text()
        ),
        Incompatible::Answered { answered, .. } => {
            format!("the server responds with `{answered}`, the client supports only {client}")
        }
        Incompatible::NoCommonVersion { .. } => {
            format!("no common version: the client supports {client}, the server {server}")
        }
        Incompatible::Capabilities { .. } => {
            return (incompatible.to_string(), vec![incompatible.advice()]);
        }
    };
    (text, version_fixes(explanation))
}

/// Lists the versions of a side.
fn versions(document: &Document) -> String {
    let all: Vec<String> = document
        .versions
        .iter()
        .map(|version| match version {
            RevisionId::Known(revision) => revision.to_string(),
            RevisionId::Unknown(text) => format!("`{text}` (unknown)"),
        })
        .collect();
    if all.is_empty() {
        return String::from("none");
    }
    all.join(", ")
}

fn version_fixes(explanation: &Explanation) -> Vec<String> {
    let allowed = announced(&explanation.policy.policy.version);
    let client = known(explanation.document(Side::Client));
    let server = known(explanation.document(Side::Server));
    let mut fixes: Vec<String> = profile_fix(&explanation.policy).into_iter().collect();
    if client.is_empty() || server.is_empty() {
        fixes.push(format!(
            "use a known revision: {}",
            RevisionSet::ALL.choice()
        ));
        return fixes;
    }
    let common = client.and(server).and(allowed);
    if !common.is_empty() {
        fixes.push(format!("request {} in the client", common.choice()));
        return fixes;
    }
    for (side, missing) in [(Side::Client, server), (Side::Server, client)] {
        let missing = missing.and(allowed);
        if !missing.is_empty() {
            fixes.push(format!("add {} to the {side}", missing.choice()));
        }
    }
    if eras(client) != eras(server) {
        fixes.push(String::from(
            "or run `mcpact bridge` between them, which translates between eras",
        ));
    }
    fixes
}

/// Returns for each era whether a side supports a revision of it.
fn eras(set: RevisionSet) -> [bool; 2] {
    [Era::Legacy, Era::Modern].map(|era| !set.in_era(era).is_empty())
}

/// Returns the fix for a profile that accepts fewer versions than the specification.
fn profile_fix(policy: &ServerPolicy) -> Option<String> {
    let rule = match &policy.policy.version.rule {
        VersionRule::Listed => return None,
        VersionRule::Exact(only) => format!("only {only}"),
        VersionRule::Range { min, max } => format!("only dates from {min} to {max}"),
    };
    Some(format!(
        "profile `{}` accepts {rule}, without a counter-offer; `--profile {}` accepts all",
        policy.profile.as_str(),
        Profile::Spec.as_str(),
    ))
}

fn fault(misbehaviour: &Misbehaviour) -> (String, Vec<String>) {
    match misbehaviour {
        Misbehaviour::Document { owner, fault } => {
            let fixes = vec![
                format!("correct `{}` in the {owner} document", fault.path),
                String::from(
                    "or omit `--strict` and use `--profile spec`, which ignores the capability",
                ),
            ];
            (format!("{owner} document: {fault}"), fixes)
        }
        Misbehaviour::Version(_) => (
            format!("no version in the client document: {misbehaviour}"),
            vec![String::from(
                "add `protocolVersion` or `supportedVersions` to the client document",
            )],
        ),
        other => (other.to_string(), Vec::new()),
    }
}
