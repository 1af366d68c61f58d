//! Whose list a client is shown.

use mcpact_spec::Era;

use crate::supervisor::Sharing;

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
pub(super) const fn whose(sharing: Sharing, era: Option<Era>, acquainted: Acquainted) -> Whose {
    match (sharing, era, acquainted) {
        // A modern server keeps nothing of anybody.
        (Sharing::Kind | Sharing::Everybody, _, _) | (_, Some(Era::Modern), _) => Whose::Kind,
        (Sharing::Nobody, Some(Era::Legacy) | None, Acquainted::Yes) => Whose::Own,
        (Sharing::Nobody, Some(Era::Legacy) | None, Acquainted::No) => Whose::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G12: who has an instance is shown what that has, and nobody else is.
    #[test]
    fn whose_list_is_shown() {
        use Acquainted::{No, Yes};
        for (sharing, era, acquainted, expected) in [
            (Sharing::Nobody, None, No, Whose::Nobody),
            (Sharing::Nobody, Some(Era::Legacy), No, Whose::Nobody),
            (Sharing::Nobody, Some(Era::Legacy), Yes, Whose::Own),
            (Sharing::Nobody, Some(Era::Modern), Yes, Whose::Kind),
            (Sharing::Kind, Some(Era::Legacy), Yes, Whose::Kind),
            (Sharing::Kind, None, No, Whose::Kind),
            (Sharing::Everybody, Some(Era::Legacy), Yes, Whose::Kind),
        ] {
            let shown = whose(sharing, era, acquainted);
            assert_eq!(shown, expected, "{sharing:?} {era:?} {acquainted:?}");
        }
    }
}
