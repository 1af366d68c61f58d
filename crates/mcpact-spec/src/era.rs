/// Protocol era: the way in which a revision carries version and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Once per connection or session, in the `initialize` handshake.
    Legacy,
    /// In the `_meta` of every request; there is no handshake and no session.
    Modern,
}

impl Era {
    /// The word that the specification uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl core::fmt::Display for Era {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}
