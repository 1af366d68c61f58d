//! Keys of `[gateway]` about the protocol: a profile, and single choices that change it.

use std::borrow::Cow;

use mcpact_engine::policy::{Extras, OnUndeclared, Policy, Profile, Reading};
use mcpact_engine::revisions::RevisionSet;
use mcpact_spec::{Revision, Side};

use crate::fields::Fields;

/// Reads the policy for negotiating with clients.
pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Policy {
    let mut policy = Profile::parse(fields.choice("profile"))
        .unwrap_or(Profile::Spec)
        .policy();
    let revisions: RevisionSet = fields
        .choices("revisions")
        .into_iter()
        .filter_map(Revision::parse)
        .collect();
    if !revisions.is_empty() {
        policy.version.supported = revisions;
    }
    if fields.flag("strict") {
        policy.reading = Reading::Strict;
    }
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
    policy
}
