//! What somebody may have meant.

/// More slips than this are no slip.
const MOST_SLIPS: usize = 3;

/// Nobody mistypes more than this, and comparing takes its time.
const COMPARED: usize = 128;

/// How many candidates an error lists.
const LISTED: usize = 24;

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

/// The candidates, those first that differ least from `given`, as an error lists them.
#[must_use]
pub fn listed(given: &str, candidates: &[&str]) -> String {
    let mut all: Vec<(usize, &str)> = candidates
        .iter()
        .map(|candidate| (slips(given, candidate), *candidate))
        .collect();
    all.sort_unstable();
    all.dedup();
    let quoted: Vec<String> = all
        .iter()
        .take(LISTED)
        .map(|(_, candidate)| format!("`{candidate}`"))
        .collect();
    match all.len() - quoted.len() {
        0 => quoted.join(", "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

/// What somebody gave, no longer than an error should be.
#[must_use]
pub fn shortened(given: &str) -> std::borrow::Cow<'_, str> {
    match given.char_indices().nth(COMPARED) {
        Some((end, _)) => format!("{}…", &given[..end]).into(),
        None => given.into(),
    }
}

/// How many characters must be inserted, removed or replaced to get from one text to the other.
fn slips(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.chars().take(COMPARED).enumerate() {
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

    /// What there is, is listed with the nearest first and not without end.
    #[test]
    fn the_nearest_are_listed_first() {
        assert_eq!(listed("ab", &["xyz", "abc", "b", "b"]), "`abc`, `b`, `xyz`");
        let many: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let told = listed("n77", &many);
        assert!(
            told.starts_with("`n77`, ") && told.ends_with(" and 76 more"),
            "{told}"
        );
        let long = "é".repeat(100_000);
        assert_eq!(shortened(&long).chars().count(), COMPARED + 1);
        assert!(listed(&long, &[&long, "a"]).len() < 2 * long.len());
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
