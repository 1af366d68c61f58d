//! Version names of peers, and sets of known revisions.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Era, Revision};

/// Version as a peer wrote it: any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RevisionId {
    /// A revision that this build speaks.
    Known(Revision),
    /// Anything else; it has no order and no era.
    Unknown(Box<str>),
}

impl RevisionId {
    /// Recognises a text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Revision::parse(text).map_or_else(|| Self::Unknown(Box::from(text)), Self::Known)
    }

    /// The text as the peer wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(revision) => revision.as_str(),
            Self::Unknown(text) => text,
        }
    }

    /// The revision, if we know it.
    #[must_use]
    pub const fn known(&self) -> Option<Revision> {
        match self {
            Self::Known(revision) => Some(*revision),
            Self::Unknown(_) => None,
        }
    }
}

impl core::fmt::Display for RevisionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of known revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// No revision.
    pub const NONE: Self = Self(0);
    /// Every revision that this build speaks.
    pub const ALL: Self = Self((1 << Revision::COUNT) - 1);

    /// The set of these revisions.
    #[must_use]
    pub fn of(revisions: &[Revision]) -> Self {
        revisions.iter().copied().collect()
    }

    /// Every revision of an era.
    #[must_use]
    pub fn of_era(era: Era) -> Self {
        Revision::ALL
            .into_iter()
            .filter(|r| r.era() == era)
            .collect()
    }

    /// The known ones among what a peer listed.
    #[must_use]
    pub fn of_listed<'a>(listed: impl IntoIterator<Item = &'a str>) -> Self {
        listed.into_iter().filter_map(Revision::parse).collect()
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | 1 << revision.index())
    }

    /// Intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The part that belongs to an era.
    #[must_use]
    pub fn in_era(self, era: Era) -> Self {
        self.and(Self::of_era(era))
    }

    /// Returns whether the revision is in the set.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 >> revision.index() & 1 == 1
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The newest member.
    #[must_use]
    pub fn newest(self) -> Option<Revision> {
        self.iter().next()
    }

    /// The members, newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL
            .into_iter()
            .rev()
            .filter(move |r| self.contains(*r))
    }

    /// The names of the members, newest first.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Revision::as_str).collect()
    }

    /// The members as a choice, oldest first: "this, that or the other".
    #[must_use]
    pub fn choice(self) -> String {
        let mut names = self.names();
        names.reverse();
        match names.as_slice() {
            [first @ .., last] if !first.is_empty() => {
                alloc::format!("{} or {last}", first.join(", "))
            }
            all => all.concat(),
        }
    }
}

impl FromIterator<Revision> for RevisionSet {
    fn from_iter<I: IntoIterator<Item = Revision>>(all: I) -> Self {
        all.into_iter().fold(Self::NONE, Self::with)
    }
}

impl core::fmt::Display for RevisionSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.names().as_slice() {
            [] => f.write_str("none"),
            names => f.write_str(&names.join(", ")),
        }
    }
}
