//! Scope of a list of a server, and the clients that it is for.

use mcpact_spec::Era;

use crate::supervisor::{InstanceSharing, SharingPolicy};

/// Scope of a list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListScope {
    /// All clients with the same capabilities, which share instances.
    Kind,
    /// Clients with the same capabilities and without an instance; read from an instance that no client uses.
    Internal,
    /// One client; read from its own instance, never cached on disk.
    Own,
}

/// Clients that a list or a change of a list concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    All,
    /// The client that owns the instance.
    Owner,
}

impl Audience {
    /// Returns the audience of a result made of two lists.
    pub(crate) const fn or(self, other: Self) -> Self {
        match self {
            Self::All => other,
            Self::Owner => Self::Owner,
        }
    }
}

/// Returns the scope of the list that a client is shown; `era` is none for an unknown server.
pub(crate) fn list_scope(
    sharing: SharingPolicy,
    era: Option<Era>,
    has_instance: bool,
) -> ListScope {
    // A modern server has no state per client.
    let is_shared = sharing != SharingPolicy::Exclusive || era == Some(Era::Modern);
    match (is_shared, has_instance) {
        (true, _) => ListScope::Kind,
        (false, true) => ListScope::Own,
        (false, false) => ListScope::Internal,
    }
}

/// Returns the clients that a list change of an instance concerns. A modern server has no state per client.
pub(crate) fn change_audience(
    sharing: SharingPolicy,
    era: Era,
    instance: InstanceSharing,
) -> Audience {
    let is_owned = sharing == SharingPolicy::Exclusive
        && era == Era::Legacy
        && instance != InstanceSharing::Internal;
    if is_owned {
        Audience::Owner
    } else {
        Audience::All
    }
}

/// Prefix of the reader of cached internal lists.
const INTERNAL: &str = "internal-";

impl ListScope {
    /// Returns the reader of a cached list.
    pub(crate) fn reader(self, digest: &str) -> String {
        match self {
            Self::Internal => format!("{INTERNAL}{digest}"),
            Self::Kind | Self::Own => digest.to_owned(),
        }
    }

    /// Returns true if the cached list of a reader has this scope.
    pub(crate) fn is_of(self, reader: &str) -> bool {
        match self {
            Self::Internal => reader.starts_with(INTERNAL),
            Self::Kind => !reader.starts_with(INTERNAL),
            Self::Own => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with its own instance is shown the lists of that instance, and no other client is.
    #[test]
    fn scope_of_shown_lists() {
        for (sharing, era, has_instance, expected) in [
            (SharingPolicy::Exclusive, None, false, ListScope::Internal),
            (
                SharingPolicy::Exclusive,
                Some(Era::Legacy),
                false,
                ListScope::Internal,
            ),
            (
                SharingPolicy::Exclusive,
                Some(Era::Legacy),
                true,
                ListScope::Own,
            ),
            (
                SharingPolicy::Exclusive,
                Some(Era::Modern),
                true,
                ListScope::Kind,
            ),
            (
                SharingPolicy::SameAffinity,
                Some(Era::Legacy),
                true,
                ListScope::Kind,
            ),
            (SharingPolicy::SameAffinity, None, false, ListScope::Kind),
            (SharingPolicy::All, Some(Era::Legacy), true, ListScope::Kind),
        ] {
            let shown = list_scope(sharing, era, has_instance);
            assert_eq!(shown, expected, "{sharing:?} {era:?} {has_instance:?}");
        }
    }

    /// Cached lists of shared instances are not used for exclusive instances, nor the other way round.
    #[test]
    fn cached_lists_of_other_scopes_are_not_used() {
        let of = |scope: ListScope, by: ListScope| scope.is_of(&by.reader("x"));
        assert!(
            of(ListScope::Kind, ListScope::Kind) && of(ListScope::Internal, ListScope::Internal)
        );
        assert!(
            !of(ListScope::Kind, ListScope::Internal) && !of(ListScope::Internal, ListScope::Kind)
        );
        assert!(!of(ListScope::Own, ListScope::Own));
    }

    /// List changes of an exclusive instance concern its owner; others concern all clients.
    #[test]
    fn audience_of_list_changes() {
        for (sharing, era, instance, expected) in [
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Exclusive,
                Audience::Owner,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Shared,
                Audience::Owner,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Internal,
                Audience::All,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Modern,
                InstanceSharing::Exclusive,
                Audience::All,
            ),
            (
                SharingPolicy::SameAffinity,
                Era::Legacy,
                InstanceSharing::Shared,
                Audience::All,
            ),
            (
                SharingPolicy::All,
                Era::Legacy,
                InstanceSharing::Shared,
                Audience::All,
            ),
        ] {
            let audience = change_audience(sharing, era, instance);
            assert_eq!(audience, expected, "{sharing:?} {era:?} {instance:?}");
        }
    }
}
