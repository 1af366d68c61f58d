use std::ops::RangeInclusive;

/// A block of ids that must all be shown by tests.
pub(super) struct Section {
    /// What stands before the number.
    pub(super) prefix: &'static str,
    /// How many digits a number has at least.
    pub(super) digits: usize,
    /// The numbers that there are.
    pub(super) numbers: &'static [RangeInclusive<u32>],
    /// The document that has the rows; it lies beside the checkout on some machines.
    pub(super) document: &'static str,
    /// The number of the heading in that document.
    pub(super) heading: &'static str,
}

const REQUIREMENTS: &str = "../shared/REQUIREMENTS.md";
const REVISIONS: &str = "../shared/REVISIONS.md";
const SAFETY: &str = "../shared/SAFETY.md";

/// The blocks that the code covers so far; later work adds its own.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        prefix: "N",
        digits: 1,
        numbers: &[1..=35],
        document: REQUIREMENTS,
        heading: "1.1",
    },
    Section {
        prefix: "L",
        digits: 1,
        numbers: &[1..=28],
        document: REQUIREMENTS,
        heading: "1.2",
    },
    Section {
        prefix: "F",
        digits: 1,
        numbers: &[1..=21],
        document: REQUIREMENTS,
        heading: "1.3",
    },
    Section {
        prefix: "T",
        digits: 1,
        numbers: &[1..=9],
        document: REQUIREMENTS,
        heading: "1.4",
    },
    Section {
        prefix: "H",
        digits: 1,
        numbers: &[1..=24],
        document: SAFETY,
        heading: "1.1",
    },
    Section {
        prefix: "P",
        digits: 1,
        numbers: &[1..=24],
        document: SAFETY,
        heading: "1.2",
    },
    Section {
        prefix: "O",
        digits: 1,
        numbers: &[1..=8],
        document: REQUIREMENTS,
        heading: "1.7",
    },
    Section {
        prefix: "G",
        digits: 1,
        numbers: &[1..=22],
        document: REQUIREMENTS,
        heading: "1.5",
    },
    Section {
        prefix: "MR-",
        digits: 2,
        numbers: &[1..=5, 7..=8, 10..=11],
        document: REVISIONS,
        heading: "8.7",
    },
    Section {
        prefix: "BA-",
        digits: 2,
        numbers: &[1..=4, 6..=10, 13..=14, 16..=20, 22..=24, 26..=26, 28..=28],
        document: REVISIONS,
        heading: "8.8",
    },
    Section {
        prefix: "BB-",
        digits: 2,
        numbers: &[2..=2, 4..=9, 11..=11, 13..=13, 15..=17, 19..=19, 21..=32],
        document: REVISIONS,
        heading: "8.9",
    },
    Section {
        prefix: "AG-",
        digits: 2,
        numbers: &[1..=5, 7..=8],
        document: REVISIONS,
        heading: "8.10",
    },
    Section {
        prefix: "XR-",
        digits: 2,
        numbers: &[1..=5, 8..=12, 14..=14],
        document: REVISIONS,
        heading: "8.11",
    },
];

impl Section {
    /// The ids of this block, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = String> {
        let Self { prefix, digits, .. } = self;
        let numbers = self.numbers.iter().cloned().flatten();
        numbers.map(move |number| format!("{prefix}{number:0digits$}"))
    }
}

/// Every id that must be shown, in order.
pub(super) fn required() -> Vec<String> {
    SECTIONS.iter().flat_map(Section::ids).collect()
}
