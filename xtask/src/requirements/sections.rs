/// A block of ids that must all be shown by tests.
pub(super) struct Section {
    /// The letter before the number.
    pub(super) letter: char,
    /// The first number.
    pub(super) first: u32,
    /// The last number.
    pub(super) last: u32,
    /// The document that has the rows; it lies beside the checkout on some machines.
    pub(super) document: &'static str,
    /// The number of the heading in that document.
    pub(super) heading: &'static str,
}

const REQUIREMENTS: &str = "../shared/REQUIREMENTS.md";
const SAFETY: &str = "../shared/SAFETY.md";

/// The blocks that the code covers so far; later work adds its own.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        letter: 'N',
        first: 1,
        last: 35,
        document: REQUIREMENTS,
        heading: "1.1",
    },
    Section {
        letter: 'L',
        first: 1,
        last: 28,
        document: REQUIREMENTS,
        heading: "1.2",
    },
    Section {
        letter: 'F',
        first: 1,
        last: 21,
        document: REQUIREMENTS,
        heading: "1.3",
    },
    Section {
        letter: 'T',
        first: 1,
        last: 9,
        document: REQUIREMENTS,
        heading: "1.4",
    },
    Section {
        letter: 'H',
        first: 1,
        last: 24,
        document: SAFETY,
        heading: "1.1",
    },
    Section {
        letter: 'P',
        first: 1,
        last: 24,
        document: SAFETY,
        heading: "1.2",
    },
    Section {
        letter: 'O',
        first: 1,
        last: 8,
        document: REQUIREMENTS,
        heading: "1.7",
    },
    Section {
        letter: 'G',
        first: 1,
        last: 22,
        document: REQUIREMENTS,
        heading: "1.5",
    },
];

impl Section {
    /// The ids of this block, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        (self.first..=self.last).map(|number| format!("{}{number}", self.letter))
    }
}

/// Every id that must be shown, in order.
pub(super) fn required() -> Vec<String> {
    SECTIONS.iter().flat_map(Section::ids).collect()
}
