//! Whose list a client is shown.

use mcpact_spec::Era;

use crate::supervisor::SharingPolicy;

/// Whose a list of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    /// All clients' who declare the same, by instances that they share.
    Kind,
    /// Nobody's, by an instance that is no client's: for those who declare the same and have no instance yet.
    Nobody,
    /// One client's, by its own instance. It is shared with nobody, and ends with the client.
    Own,
}

/// Whether a client has been served by an instance of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquainted {
    Yes,
    No,
}

/// Whose list a client is shown of a server that is used like this, and speaks a revision of this era as far as anybody
/// knows.
pub(super) const fn whose(
    sharing: SharingPolicy,
    era: Option<Era>,
    acquainted: Acquainted,
) -> Whose {
    match (sharing, era, acquainted) {
        // A modern server keeps nothing of anybody.
        (SharingPolicy::SameAffinity | SharingPolicy::All, _, _) | (_, Some(Era::Modern), _) => {
            Whose::Kind
        }
        (SharingPolicy::Exclusive, Some(Era::Legacy) | None, Acquainted::Yes) => Whose::Own,
        (SharingPolicy::Exclusive, Some(Era::Legacy) | None, Acquainted::No) => Whose::Nobody,
    }
}

/// Before what is kept of nobody's lists.
const NOBODYS: &str = "nobody-";

impl Whose {
    /// For whom a list is kept that is read by somebody like this.
    pub(super) fn reader(self, who: &str) -> String {
        match self {
            Self::Nobody => format!("{NOBODYS}{who}"),
            Self::Kind | Self::Own => who.to_owned(),
        }
    }

    /// Whether a list that was kept for somebody is one of these. Those of a client are never kept.
    pub(super) fn is_of(self, reader: &str) -> bool {
        match self {
            Self::Nobody => reader.starts_with(NOBODYS),
            Self::Kind => !reader.starts_with(NOBODYS),
            Self::Own => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has an instance is shown what that has, and nobody else is.
    #[test]
    fn whose_list_is_shown() {
        use Acquainted::{No, Yes};
        for (sharing, era, acquainted, expected) in [
            (SharingPolicy::Exclusive, None, No, Whose::Nobody),
            (
                SharingPolicy::Exclusive,
                Some(Era::Legacy),
                No,
                Whose::Nobody,
            ),
            (SharingPolicy::Exclusive, Some(Era::Legacy), Yes, Whose::Own),
            (
                SharingPolicy::Exclusive,
                Some(Era::Modern),
                Yes,
                Whose::Kind,
            ),
            (
                SharingPolicy::SameAffinity,
                Some(Era::Legacy),
                Yes,
                Whose::Kind,
            ),
            (SharingPolicy::SameAffinity, None, No, Whose::Kind),
            (SharingPolicy::All, Some(Era::Legacy), Yes, Whose::Kind),
        ] {
            let shown = whose(sharing, era, acquainted);
            assert_eq!(shown, expected, "{sharing:?} {era:?} {acquainted:?}");
        }
    }

    /// A list that was kept for those who shared is not shown where clients are told apart, and the other way
    /// round.
    #[test]
    fn what_was_kept_for_others_is_not_used() {
        let of = |whose: Whose, by: Whose| whose.is_of(&by.reader("x"));
        assert!(of(Whose::Kind, Whose::Kind) && of(Whose::Nobody, Whose::Nobody));
        assert!(!of(Whose::Kind, Whose::Nobody) && !of(Whose::Nobody, Whose::Kind));
        assert!(!of(Whose::Own, Whose::Own));
    }
}
