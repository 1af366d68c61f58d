/// A block of ids that must all be shown by tests.
pub(super) struct Section {
    /// The letter before the number.
    pub(super) letter: char,
    /// The first number.
    pub(super) first: u32,
    /// The last number.
    pub(super) last: u32,
    /// The number of the heading in the document of requirements.
    pub(super) heading: &'static str,
}

/// The blocks that the code covers so far; later work adds its own.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        letter: 'N',
        first: 1,
        last: 35,
        heading: "1.1",
    },
    Section {
        letter: 'L',
        first: 1,
        last: 28,
        heading: "1.2",
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
