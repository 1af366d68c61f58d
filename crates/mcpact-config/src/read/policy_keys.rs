//! Keys of `[gateway]` about the protocol: a profile, and single choices that change it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use mcpact_engine::policy::{
    ClientRequirement, Extras, OnEarly, OnMissing, OnUndeclared, OnUnknown, OnUnsupported, Policy,
    Profile, Reading, VersionPolicy, VersionRule,
};
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::version::{acceptable, announced, is_date};
use mcpact_spec::{Capability, Kind, Method, Revision, Side};

use crate::fields::{Fields, one_of};

/// Reads the policy for negotiating with clients: the choices of a profile, changed by the other keys.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Policy {
    let mut policy = Profile::parse(fields.choice("profile"))
        .unwrap_or(Profile::Spec)
        .policy();
    versions(fields, &mut policy.version);
    if fields.member("strict").is_some() {
        policy.reading = match fields.flag("strict") {
            true => Reading::Strict,
            false => Reading::Lenient,
        };
    }
    policy.early = match fields.choice("early_requests") {
        "reject" => OnEarly::Refuse,
        _ => OnEarly::Accept,
    };
    policy.unknown = match fields.choice("unknown_methods") {
        "pass" => OnUnknown::Pass,
        _ => OnUnknown::Refuse,
    };
    policy.undeclared = match fields.choice("undeclared") {
        "warn" => OnUndeclared::Warn,
        "error" => OnUndeclared::Error,
        "disconnect" => OnUndeclared::Disconnect,
        _ => OnUndeclared::Drop,
    };
    if fields.flag("announce_extras") {
        policy.extras = Extras::Announce;
    }
    policy.batch_limit = usize::try_from(fields.count("max_batch_size")).unwrap_or(usize::MAX);
    let required = fields.capabilities("require", Side::Client);
    policy.required.extend(required.into_iter().map(Cow::Owned));
    client_requirements(fields, &mut policy);
    policy
}

fn versions(fields: &mut Fields<'_, '_>, policy: &mut VersionPolicy) {
    let revisions = fields.choices("revisions");
    let revisions: RevisionSet = revisions.into_iter().filter_map(Revision::parse).collect();
    if let Some(range) = range(fields) {
        // A range narrows the versions of the profile.
        policy.supported = announced(policy);
        policy.rule = range;
    }
    let possible = announced(policy);
    if !revisions.is_empty() {
        policy.supported = policy.supported.and(revisions);
    }
    let excluded: RevisionSet = revisions
        .iter()
        .filter(|one| !possible.contains(*one))
        .collect();
    if !excluded.is_empty() {
        let message = format!("`profile` or `version_range` excludes {excluded}");
        fields.reject_key(
            "revisions",
            message,
            "remove the revision, or change these keys",
        );
    } else if possible.is_empty() {
        let message = "`profile` and `version_range` leave no revision to serve";
        let remedy =
            "use a range that contains a revision of the profile, such as `2025-01-01..2025-12-31`";
        fields.reject_key("version_range", message, remedy);
    }
    if fields.member("unsupported_version").is_some() {
        policy.on_unsupported = match fields.choice("unsupported_version") {
            "reject" => OnUnsupported::Reject,
            _ => OnUnsupported::CounterOffer,
        };
    }
    if fields.member("missing_version").is_some() {
        policy.on_missing = match fields.choice("missing_version") {
            "assume" => OnMissing::AssumePreferred,
            _ => OnMissing::Refuse,
        };
    }
    if acceptable(policy).is_empty() {
        for name in ["unsupported_version", "missing_version", "early_requests"] {
            let message = format!("`{name}` applies to `initialize`, which no served revision has");
            fields.reject_key(name, message, "remove it, or serve a legacy revision");
        }
    }
}

fn range(fields: &mut Fields<'_, '_>) -> Option<VersionRule> {
    let text = fields.text("version_range")?;
    let dates = text.value().split_once("..");
    match dates.filter(|(min, max)| is_date(min) && is_date(max) && min <= max) {
        Some((min, max)) => Some(VersionRule::Range {
            min: Cow::Owned(min.to_owned()),
            max: Cow::Owned(max.to_owned()),
        }),
        None => {
            let remedy = "write the oldest and the newest date, such as `2025-01-01..2025-12-31`";
            fields.reject(&text, "is not a range of dates", remedy);
            None
        }
    }
}

/// Reads `require_client_capability`; a row replaces the one of the profile for the same method.
fn client_requirements(fields: &mut Fields<'_, '_>, policy: &mut Policy) {
    for (method, path) in fields.text_table("require_client_capability") {
        if let Some((message, remedy)) = never_applies(method, policy) {
            fields.findings.error_with(path.span, message, remedy);
        }
        let capability = path.value();
        let is_open = ["experimental.", "extensions."]
            .iter()
            .any(|map| capability.starts_with(map));
        // Some clients declare the names of server capabilities, which no revision gives them.
        let known: BTreeSet<&str> = Capability::ALL.iter().map(|row| row.path()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        if !is_open && !known.contains(&capability) {
            let message = format!("unknown capability `{}`", path.filled);
            fields
                .findings
                .error_with(path.span, message, one_of(capability, &known));
        }
        policy
            .client_requirements
            .retain(|rule| rule.method != method);
        policy.client_requirements.push(ClientRequirement {
            method: Cow::Owned(method.to_owned()),
            path: Cow::Owned(capability.to_owned()),
        });
    }
}

/// Message and hint if a requirement for this method has no effect.
fn never_applies(method: &str, policy: &Policy) -> Option<(String, String)> {
    let requests: Vec<&str> = Method::ALL
        .iter()
        .filter(|known| !matches!(known, Method::Initialize | Method::Ping))
        .filter(|known| {
            let mut served = announced(&policy.version).iter();
            served.any(|revision| known.role(revision).allows(Side::Client, Kind::Request))
        })
        .map(|known| known.as_str())
        .collect();
    if requests.contains(&method) {
        return None;
    }
    match (Method::parse(method), policy.unknown) {
        (None, OnUnknown::Pass) => None,
        (None, OnUnknown::Refuse) => Some((
            format!("no revision defines `{method}`, and `unknown_methods` rejects it"),
            format!(
                "set `unknown_methods = \"pass\"`, or correct the method; {}",
                one_of(method, &requests)
            ),
        )),
        (Some(_), _) => Some((
            format!(
                "`{method}` cannot require a capability: it is not a gated request of a client in a served revision"
            ),
            one_of(method, &requests),
        )),
    }
}
