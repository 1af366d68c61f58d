use mcpact_engine::revisions::RevisionId;
use mcpact_spec::{Era, Revision, Side};

/// Returns the versions that a side supports, the one that a client requests first.
///
/// A list is taken as is. A single version of a server or a modern client is the only one; a legacy
/// client offers its latest and can fall back to older ones
/// (`2025-11-25 basic/lifecycle#version-negotiation`). Without a version, all are assumed.
pub(super) fn supported(
    side: Side,
    single: Option<&str>,
    listed: Option<&[String]>,
) -> Vec<RevisionId> {
    let single = single.map(RevisionId::parse);
    let others = match (&single, listed) {
        (_, Some(listed)) => newest_first(listed),
        (None, None) => Revision::ALL
            .into_iter()
            .rev()
            .map(RevisionId::Known)
            .collect(),
        (Some(RevisionId::Known(offered)), None) if side == Side::Client => fallbacks(*offered),
        (Some(_), None) => Vec::new(),
    };
    let rest = others.into_iter().filter(|v| Some(v) != single.as_ref());
    single.clone().into_iter().chain(rest).collect()
}

/// Returns the legacy revisions before a legacy revision, newest first.
fn fallbacks(offered: Revision) -> Vec<RevisionId> {
    if offered.era() == Era::Modern {
        return Vec::new();
    }
    let older = Revision::ALL.into_iter().take_while(|r| *r != offered);
    let mut older: Vec<RevisionId> = older.map(RevisionId::Known).collect();
    older.reverse();
    older
}

/// Sorts known revisions newest first, then unknown ones in their order, without duplicates.
fn newest_first(listed: &[String]) -> Vec<RevisionId> {
    let names = |r: &Revision| listed.iter().any(|text| text == r.as_str());
    let known = Revision::ALL.into_iter().rev().filter(names);
    let mut all: Vec<RevisionId> = known.map(RevisionId::Known).collect();
    for text in listed {
        let version = RevisionId::parse(text);
        if !all.contains(&version) {
            all.push(version);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supported_by(side: Side, single: Option<&str>, listed: Option<&[&str]>) -> String {
        let listed: Option<Vec<String>> =
            listed.map(|all| all.iter().map(|v| (*v).to_owned()).collect());
        let all = supported(side, single, listed.as_deref());
        let names: Vec<&str> = all.iter().map(RevisionId::as_str).collect();
        names.join(" ")
    }

    #[test]
    fn single_version_depends_on_side_and_era() {
        let client = |v| supported_by(Side::Client, Some(v), None);
        let server = |v| supported_by(Side::Server, Some(v), None);
        assert_eq!(client("2025-06-18"), "2025-06-18 2025-03-26 2024-11-05");
        assert_eq!(client("2024-11-05"), "2024-11-05");
        assert_eq!(client("2026-07-28"), "2026-07-28");
        assert_eq!(client("2099-01-01"), "2099-01-01");
        assert_eq!(server("2025-06-18"), "2025-06-18");
        assert_eq!(server("2026-07-28"), "2026-07-28");
    }

    #[test]
    fn missing_version_means_all_versions() {
        assert_eq!(
            supported_by(Side::Client, None, None),
            "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05"
        );
    }

    #[test]
    fn list_is_sorted_with_the_single_version_first() {
        let listed: &[&str] = &["2024-11-05", "draft", "2025-11-25", "draft"];
        assert_eq!(
            supported_by(Side::Client, None, Some(listed)),
            "2025-11-25 2024-11-05 draft"
        );
        assert_eq!(
            supported_by(Side::Client, Some("2024-11-05"), Some(listed)),
            "2024-11-05 2025-11-25 draft"
        );
        assert_eq!(supported_by(Side::Server, None, Some(&[])), "");
    }
}
