//! Version selection.

use mcpact_spec::{Era, Revision};

use crate::policy::{OnMissing, OnUnsupported, VersionPolicy, VersionRule};
use crate::refusal::{Incompatible, Misbehaviour, Refusal, VersionFault, VersionForm};
use crate::revisions::{RevisionId, RevisionSet};

/// A version, and how it came to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Selected revision.
    pub revision: Revision,
    /// Reason.
    pub how: Chosen,
}

/// Reason for the choice of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// The client asked for it.
    Requested,
    /// The client asked for another one; this is our newest.
    CounterOffered,
    /// The client asked for none.
    Assumed,
}

/// Returns whether a text has the form of a date, `YYYY-MM-DD`.
#[must_use]
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: core::ops::Range<usize>| {
        bytes[range].iter().try_fold(0_u32, |n, b| {
            b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0'))
        })
    };
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && digits(0..4).is_some()
        && digits(5..7).is_some_and(|month| (1..=12).contains(&month))
        && digits(8..10).is_some_and(|day| (1..=31).contains(&day))
}

/// Returns whether the policy would take this version from a client that offers it in `initialize`.
///
/// A date inside a range is fine even if it is no revision: the answer is then a counter-offer.
///
/// # Errors
/// The version is outside of the rule, with the reason.
pub fn validate(policy: &VersionPolicy, requested: &RevisionId) -> Result<(), Refusal> {
    let fault = match &policy.rule {
        VersionRule::Listed => match requested.known() {
            Some(known) if legacy(policy).contains(known) => return Ok(()),
            Some(_) | None => VersionFault::NotSupported,
        },
        VersionRule::Exact(only) if requested.known() == Some(*only) => return Ok(()),
        VersionRule::Exact(_) => VersionFault::NotSupported,
        VersionRule::Range { min, max } => {
            let text = requested.as_str();
            if !is_date(text) {
                return Err(Misbehaviour::Version(VersionForm::NotADate).into());
            }
            if text < min.as_ref() {
                VersionFault::TooOld
            } else if text > max.as_ref() {
                VersionFault::TooNew
            } else {
                return Ok(());
            }
        }
    };
    Err(unsupported(policy, requested.clone(), fault))
}

/// The answer to the version in an `initialize` request.
///
/// `2025-11-25 basic/lifecycle#version-negotiation`: a supported version is answered with itself,
/// any other with one that the server does support. A version without `initialize` is never an
/// answer, and neither is one that this build does not speak.
///
/// # Errors
/// The policy rejects instead of counter-offering, the version is missing and must not be, or
/// nothing with a handshake is supported at all.
pub fn select(
    policy: &VersionPolicy,
    requested: Option<&RevisionId>,
) -> Result<Selection, Refusal> {
    let offer = || {
        acceptable(policy).newest().ok_or_else(|| {
            let requested = requested.cloned().unwrap_or(RevisionId::Unknown("".into()));
            unsupported(policy, requested, VersionFault::NotSupported)
        })
    };
    let Some(requested) = requested else {
        return match policy.on_missing {
            OnMissing::Refuse => Err(Misbehaviour::Version(VersionForm::Missing).into()),
            OnMissing::AssumePreferred => Ok(Selection {
                revision: offer()?,
                how: Chosen::Assumed,
            }),
        };
    };
    match (validate(policy, requested), requested.known()) {
        (Ok(()), Some(known)) if acceptable(policy).contains(known) => Ok(Selection {
            revision: known,
            how: Chosen::Requested,
        }),
        (Err(refusal), _) if policy.on_unsupported == OnUnsupported::Reject => Err(refusal),
        (Ok(()) | Err(_), _) => Ok(Selection {
            revision: offer()?,
            how: Chosen::CounterOffered,
        }),
    }
}

/// Revisions that the policy allows in a handshake.
#[must_use]
pub fn acceptable(policy: &VersionPolicy) -> RevisionSet {
    allowed(policy, Era::Legacy)
}

/// Revisions that the policy allows in the `_meta` of a request.
#[must_use]
pub fn served_per_request(policy: &VersionPolicy) -> RevisionSet {
    allowed(policy, Era::Modern)
}

fn allowed(policy: &VersionPolicy, era: Era) -> RevisionSet {
    let supported = policy.supported.in_era(era);
    match &policy.rule {
        VersionRule::Listed => supported,
        VersionRule::Exact(only) => supported.and(RevisionSet::of(&[*only])),
        VersionRule::Range { min, max } => supported
            .iter()
            .filter(|r| (min.as_ref()..=max.as_ref()).contains(&r.as_str()))
            .collect(),
    }
}

/// Every version that a peer can be told about: the handshake's and the per-request ones.
#[must_use]
pub fn announced(policy: &VersionPolicy) -> RevisionSet {
    let handshake = acceptable(policy).iter();
    handshake.chain(served_per_request(policy).iter()).collect()
}

fn legacy(policy: &VersionPolicy) -> RevisionSet {
    policy.supported.in_era(Era::Legacy)
}

fn unsupported(policy: &VersionPolicy, requested: RevisionId, why: VersionFault) -> Refusal {
    Incompatible::Version {
        requested,
        supported: announced(policy),
        why,
    }
    .into()
}
