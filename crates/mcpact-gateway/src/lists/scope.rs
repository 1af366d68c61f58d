//! ListScope list a client is shown.

use mcpact_spec::Era;

use crate::supervisor::SharingPolicy;

/// ListScope a list of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListScope {
    /// All clients' who declare the same, by instances that they share.
    Kind,
    /// Nobody's, by an instance that is no client's: for those who declare the same and have no instance yet.
    Internal,
    /// One client's, by its own instance. It is shared with nobody, and ends with the client.
    Own,
}

/// Whether a client has been served by an instance of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceKnown {
    Yes,
    No,
}

/// ListScope list a client is shown of a server that is used like this, and speaks a revision of this era as far as anybody
/// knows.
pub(crate) const fn whose(
    sharing: SharingPolicy,
    era: Option<Era>,
    acquainted: InstanceKnown,
) -> ListScope {
    match (sharing, era, acquainted) {
        // A modern server keeps nothing of anybody.
        (SharingPolicy::SameAffinity | SharingPolicy::All, _, _) | (_, Some(Era::Modern), _) => {
            ListScope::Kind
        }
        (SharingPolicy::Exclusive, Some(Era::Legacy) | None, InstanceKnown::Yes) => ListScope::Own,
        (SharingPolicy::Exclusive, Some(Era::Legacy) | None, InstanceKnown::No) => {
            ListScope::Internal
        }
    }
}

/// Before what is kept of nobody's lists.
const INTERNAL: &str = "internal-";

impl ListScope {
    /// For whom a list is kept that is read by somebody like this.
    pub(crate) fn reader(self, who: &str) -> String {
        match self {
            Self::Internal => format!("{INTERNAL}{who}"),
            Self::Kind | Self::Own => who.to_owned(),
        }
    }

    /// Whether a list that was kept for somebody is one of these. Those of a client are never kept.
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

    /// ClientRef has an instance is shown what that has, and nobody else is.
    #[test]
    fn whose_list_is_shown() {
        use InstanceKnown::{No, Yes};
        for (sharing, era, acquainted, expected) in [
            (SharingPolicy::Exclusive, None, No, ListScope::Internal),
            (
                SharingPolicy::Exclusive,
                Some(Era::Legacy),
                No,
                ListScope::Internal,
            ),
            (
                SharingPolicy::Exclusive,
                Some(Era::Legacy),
                Yes,
                ListScope::Own,
            ),
            (
                SharingPolicy::Exclusive,
                Some(Era::Modern),
                Yes,
                ListScope::Kind,
            ),
            (
                SharingPolicy::SameAffinity,
                Some(Era::Legacy),
                Yes,
                ListScope::Kind,
            ),
            (SharingPolicy::SameAffinity, None, No, ListScope::Kind),
            (SharingPolicy::All, Some(Era::Legacy), Yes, ListScope::Kind),
        ] {
            let shown = whose(sharing, era, acquainted);
            assert_eq!(shown, expected, "{sharing:?} {era:?} {acquainted:?}");
        }
    }

    /// A list that was kept for those who shared is not shown where clients are told apart, and the other way
    /// round.
    #[test]
    fn what_was_kept_for_others_is_not_used() {
        let of = |whose: ListScope, by: ListScope| whose.is_of(&by.reader("x"));
        assert!(
            of(ListScope::Kind, ListScope::Kind) && of(ListScope::Internal, ListScope::Internal)
        );
        assert!(
            !of(ListScope::Kind, ListScope::Internal) && !of(ListScope::Internal, ListScope::Kind)
        );
        assert!(!of(ListScope::Own, ListScope::Own));
    }
}
