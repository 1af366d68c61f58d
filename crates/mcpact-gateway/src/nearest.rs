//! What somebody may have meant.

/// More slips than this are no slip.
const MOST_SLIPS: usize = 3;

/// The candidate that differs least from `given`, if any is close enough to be meant.
#[must_use]
pub fn nearest<'c>(given: &str, candidates: &[&'c str]) -> Option<&'c str> {
    if let [part] = candidates
        .iter()
        .filter(|candidate| !given.is_empty() && candidate.contains(given))
        .collect::<Vec<_>>()[..]
    {
        return Some(part);
    }
    candidates
        .iter()
        .map(|candidate| (slips(given, candidate), *candidate))
        .min()
        .filter(|(slips, _)| *slips <= MOST_SLIPS)
        .map(|(_, candidate)| candidate)
}

/// How many characters must be inserted, removed or replaced to get from one text to the other.
fn slips(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        row[0] = left;
        for (column, b) in to.iter().enumerate() {
            let above = row[column + 1];
            let replaced = diagonal + usize::from(a != *b);
            left = replaced.min(left + 1).min(above + 1);
            diagonal = above;
            row[column + 1] = left;
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_as_edits() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("spec", "spek", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(slips(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn only_a_close_candidate_is_meant() {
        let dates = ["2025-06-18", "2025-11-25"];
        assert_eq!(nearest("2025-06-81", &dates), Some("2025-06-18"));
        assert_eq!(nearest("2025-11-24", &dates), Some("2025-11-25"));
        assert_eq!(nearest("latest", &dates), None);
        assert_eq!(nearest("", &dates), None);
    }

    #[test]
    fn a_part_that_only_one_candidate_has_is_enough() {
        assert_eq!(
            nearest("11-25", &["2025-06-18", "2025-11-25"]),
            Some("2025-11-25")
        );
        assert_eq!(nearest("2025", &["2025-06-18", "2025-11-25"]), None);
    }
}
