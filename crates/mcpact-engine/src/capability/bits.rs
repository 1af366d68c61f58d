use mcpact_spec::{Capability, Presence, Revision};

/// A set of capability paths: one bit per row of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapabilityBits(u64);

// A row more than there are bits must not compile.
const _: () = assert!(Capability::ALL.len() <= 64);

impl CapabilityBits {
    /// No capability.
    pub const NONE: Self = Self(0);

    /// The rows that mean something under a revision.
    const COUNTING: [Self; Revision::COUNT] = {
        let mut all = [Self(0); Revision::COUNT];
        let mut column = 0;
        while column < Revision::COUNT {
            let mut row = 0;
            while row < Capability::ALL.len() {
                let presence = Capability::ALL[row].presence(Revision::ALL[column]);
                if presence.counts() {
                    all[column].0 |= 1 << row;
                }
                row += 1;
            }
            column += 1;
        }
        all
    };

    /// This set and one more.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability.index())
    }

    /// This set but for one.
    #[must_use]
    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !(1 << capability.index()))
    }

    /// Returns whether the capability is in the set.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability.index() & 1 == 1
    }

    /// Intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The members in table order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .iter()
            .copied()
            .filter(move |c| self.has(*c))
    }

    /// These declarations and all that they imply in any revision.
    #[must_use]
    pub fn expanded(self) -> Self {
        let revisions = Revision::ALL.into_iter();
        revisions.fold(self, |all, revision| all.or(self.under(revision)))
    }

    /// Declarations that count under the revision, with all that they imply there.
    ///
    /// `2025-11-25 client/elicitation#capabilities`: an empty `elicitation` means forms, and before
    /// that revision it could not mean anything else.
    #[must_use]
    pub fn under(self, revision: Revision) -> Self {
        let effective = self.and(Self::COUNTING[revision.index()]);
        if !effective.has(Capability::Elicitation) {
            return effective
                .without(Capability::ElicitationForm)
                .without(Capability::ElicitationUrl);
        }
        let names_no_mode =
            !self.has(Capability::ElicitationForm) && !self.has(Capability::ElicitationUrl);
        let offers_form = names_no_mode || self.has(Capability::ElicitationForm);
        let is_implied = Capability::ElicitationForm.presence(revision) == Presence::Implied;
        match (offers_form, is_implied) {
            (true, _) => effective.with(Capability::ElicitationForm),
            // A revision without modes would take it for a promise of forms.
            (false, true) => effective
                .without(Capability::Elicitation)
                .without(Capability::ElicitationForm),
            (false, false) => effective,
        }
    }
}

impl FromIterator<Capability> for CapabilityBits {
    fn from_iter<I: IntoIterator<Item = Capability>>(all: I) -> Self {
        all.into_iter().fold(Self::NONE, Self::with)
    }
}
