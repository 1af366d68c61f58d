//! Negotiation policy of the gateway settings.

use std::borrow::Cow;

use mcpact_engine::policy::{Extras, Policy, Reading};
use mcpact_engine::revisions::RevisionSet;

use super::config::GatewayConfig;

impl GatewayConfig {
    /// Policy for negotiating with clients: the profile plus the other settings.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let mut policy = self.profile.policy();
        if !self.revisions.is_empty() {
            policy.version.supported = RevisionSet::of(&self.revisions);
        }
        if self.strict {
            policy.reading = Reading::Strict;
        }
        if self.announce_extras {
            policy.extras = Extras::Announce;
        }
        policy.undeclared = self.undeclared;
        let required = self.require.iter().cloned().map(Cow::Owned);
        policy.required.extend(required);
        policy
    }
}

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::{OnUndeclared, Profile};
    use mcpact_spec::Revision;

    use super::*;
    use crate::read::tests::{found_in, taken_from};

    /// The policy follows the config.
    #[test]
    fn policy_follows_the_config() {
        let usual = taken_from("mcpact.toml", "").gateway;
        assert_eq!(usual.policy(), Profile::Spec.policy());
        let text = "[gateway]\nrevisions = [\"2025-06-18\", \"2026-07-28\"]\nstrict = true\nundeclared = \"warn\"\nannounce_extras = true\nrequire = [\"elicitation\"]\n";
        let policy = taken_from("mcpact.toml", text).gateway.policy();
        let both = [Revision::V2025_06_18, Revision::V2026_07_28];
        assert_eq!(policy.version.supported, RevisionSet::of(&both));
        assert_eq!(policy.reading, Reading::Strict);
        assert_eq!(policy.undeclared, OnUndeclared::Warn);
        assert_eq!(policy.extras, Extras::Announce);
        assert_eq!(policy.required, ["elicitation"]);
        let strict = taken_from("mcpact.toml", "[gateway]\nprofile = \"mcpv-strict\"").gateway;
        assert_eq!(strict.policy(), Profile::McpvStrict.policy());
    }

    /// Unknown capabilities are rejected: as a requirement they would exclude all clients.
    #[test]
    fn unknown_capabilities_are_rejected() {
        let told = found_in(
            "mcpact.toml",
            "[gateway]\nrequire = [\"elicitaton\", \"experimental.x\"]",
        );
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("did you mean `elicitation`?"), "{told:?}");
        let told = found_in(
            "mcpact.toml",
            "[servers.a]\nbuiltin = \"everything\"\nrequire = [\"roots\"]\nstrategy = \"singleton\"\ndeclare = [\"tools\"]",
        );
        assert_eq!(told.len(), 2, "{told:?}");
        let told = found_in(
            "mcpact.toml",
            "[servers.a]\nbuiltin = \"everything\"\ndeclare = [\"roots\", \"experimental.x\"]",
        );
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`singleton` only"), "{told:?}");
    }
}
