//! Suggestions for mistyped words.

/// Maximum edit distance of a suggestion.
const MAX_DISTANCE: usize = 3;

/// Number of characters that are compared.
const COMPARED: usize = 128;

/// Maximum number of listed candidates.
const LISTED: usize = 24;

/// Candidate with the smallest edit distance to `given`, if it is close enough.
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
        .map(|candidate| (edit_distance(given, candidate), *candidate))
        .min()
        // Of short words, half of the letters must stay.
        .filter(|(distance, near)| {
            *distance <= MAX_DISTANCE && distance * 2 <= given.len().max(near.len())
        })
        .map(|(_, candidate)| candidate)
}

/// Candidates for an error message, nearest first.
#[must_use]
pub fn listed(given: &str, candidates: &[&str]) -> String {
    let mut all: Vec<(usize, &str)> = candidates
        .iter()
        .map(|candidate| (edit_distance(given, candidate), *candidate))
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

/// Shortens a text for error messages.
#[must_use]
pub fn shortened(given: &str) -> std::borrow::Cow<'_, str> {
    match start(given) {
        start if start.len() < given.len() => format!("{start}…").into(),
        whole => whole.into(),
    }
}

fn edit_distance(from: &str, to: &str) -> usize {
    strsim::levenshtein(start(from), start(to))
}

/// The part of a text that is compared and shown.
fn start(text: &str) -> &str {
    let end = text.char_indices().nth(COMPARED);
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_edits() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("spec", "spek", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn only_close_candidates_are_suggested() {
        let dates = ["2025-06-18", "2025-11-25"];
        assert_eq!(nearest("2025-06-81", &dates), Some("2025-06-18"));
        assert_eq!(nearest("2025-11-24", &dates), Some("2025-11-25"));
        assert_eq!(nearest("latest", &dates), None);
        assert_eq!(nearest("bar", &["rpc"]), None);
        assert_eq!(nearest("foo", &["roots"]), None);
        assert_eq!(nearest("", &dates), None);
    }

    /// Candidates are listed nearest first, up to a limit.
    #[test]
    fn nearest_candidates_are_listed_first() {
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
    fn unique_substring_is_suggested() {
        assert_eq!(
            nearest("11-25", &["2025-06-18", "2025-11-25"]),
            Some("2025-11-25")
        );
        assert_eq!(nearest("2025", &["2025-06-18", "2025-11-25"]), None);
    }
}
