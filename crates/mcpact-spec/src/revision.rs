use crate::{Era, Feature};

/// A revision of the protocol that this build speaks.
///
/// The order is the registry's order, oldest first. What a peer wrote is text until
/// [`Revision::parse`] recognises it; unknown text has no order at all, so `"zzz"` can never rank
/// above a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// `2024-11-05`, the first one.
    V2024_11_05,
    /// `2025-03-26`: Streamable HTTP, batches, `completions`.
    V2025_03_26,
    /// `2025-06-18`: structured output, elicitation, no batches.
    V2025_06_18,
    /// `2025-11-25`: tasks, URL elicitation, sampling with tools.
    V2025_11_25,
    /// `2026-07-28`: no handshake, no sessions, multi-round-trip requests.
    V2026_07_28,
}

impl Revision {
    /// How many revisions there are: the width of every table.
    pub const COUNT: usize = 5;

    /// All revisions, oldest first.
    pub const ALL: [Self; Self::COUNT] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision of all.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that has an `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// What an HTTP server assumes when nothing tells the version.
    ///
    /// `2025-11-25 basic/transports#protocol-version-header`
    pub const ASSUMED_WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The revision with exactly this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era that this revision belongs to: the only source of an [`Era`].
    #[must_use]
    pub const fn era(self) -> Era {
        if self.has(Feature::Initialize) {
            Era::Legacy
        } else {
            Era::Modern
        }
    }

    /// Whether this revision has the feature.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        feature.column()[self.index()]
    }

    /// The column of this revision in every table.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl core::fmt::Display for Revision {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}
