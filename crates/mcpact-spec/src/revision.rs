use crate::{Era, Feature};

/// Protocol revision that this build supports.
///
/// Ordered by age, oldest first. A version that a peer wrote is text until [`Revision::parse`]
/// recognises it; unknown text has no order, so `"zzz"` never ranks above a date.
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
    /// Pretend revision for tests only: its predecessor with a new method, without a member of
    /// tools, and with another code for missing resources.
    #[cfg(feature = "pretend-revision")]
    V2099_01_01,
}

impl Revision {
    /// Number of revisions: the width of every table.
    pub const COUNT: usize = Self::ALL.len();

    /// Number of cells that a row of a table spells out; see [`columns`].
    pub(crate) const WRITTEN: usize = 5;

    /// All revisions, oldest first.
    pub const ALL: [Self; Self::WRITTEN + cfg!(feature = "pretend-revision") as usize] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
        #[cfg(feature = "pretend-revision")]
        Self::V2099_01_01,
    ];

    /// Names on the wire of all revisions, oldest first.
    pub const NAMES: [&str; Self::COUNT] = {
        let mut names = [""; Self::COUNT];
        let mut column = 0;
        while column < Self::COUNT {
            names[column] = Self::ALL[column].as_str();
            column += 1;
        }
        names
    };

    /// Revision that an HTTP server assumes for a request without a version.
    ///
    /// `2025-11-25 basic/transports#protocol-version-header`
    pub const ASSUMED_WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// Revision with exactly this name.
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
            #[cfg(feature = "pretend-revision")]
            Self::V2099_01_01 => "2099-01-01",
        }
    }

    /// Newest revision of an era.
    ///
    /// An era may have several revisions: use this for an offer or a default, never to mean "the
    /// revision of this era".
    #[must_use]
    pub const fn newest(era: Era) -> Self {
        let mut column = Self::COUNT - 1;
        while column > 0 && !Self::ALL[column].is_of(era) {
            column -= 1;
        }
        Self::ALL[column]
    }

    /// Newest revision that has the feature; the oldest of all if none has it.
    #[must_use]
    pub const fn newest_with(feature: Feature) -> Self {
        let mut column = Self::COUNT - 1;
        while column > 0 && !Self::ALL[column].has(feature) {
            column -= 1;
        }
        Self::ALL[column]
    }

    const fn is_of(self, era: Era) -> bool {
        matches!(
            (self.era(), era),
            (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern)
        )
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

    /// Returns whether this revision has the feature.
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

/// Row of a table from its written cells, oldest revision first.
///
/// Every column beyond the written ones repeats the last cell: that is the pretend revision, if
/// [`pretending`] does not say otherwise.
pub(crate) const fn columns<T: Copy>(cells: [T; Revision::WRITTEN]) -> [T; Revision::COUNT] {
    let mut row = [cells[Revision::WRITTEN - 1]; Revision::COUNT];
    let mut column = 0;
    while column < Revision::WRITTEN {
        row[column] = cells[column];
        column += 1;
    }
    row
}

/// Row with another cell for the pretend revision, where there is one.
pub(crate) const fn pretending<T: Copy>(
    mut row: [T; Revision::COUNT],
    cell: T,
) -> [T; Revision::COUNT] {
    if Revision::COUNT > Revision::WRITTEN {
        row[Revision::COUNT - 1] = cell;
    }
    row
}

// `newest` needs a revision of each era, and the oldest column is its fallback.
const _: () = assert!(Revision::ALL[0].is_of(Era::Legacy));
const _: () = assert!(Revision::newest(Era::Modern).is_of(Era::Modern));
