//! The ids in the documents of requirements, which lie beside the checkout on some machines.

use std::collections::BTreeSet;

use super::sections::{SECTIONS, Section};
use crate::checkout::Checkout;
use crate::failure::Failure;

/// Where the sections of the documents that are there and our list of them differ.
pub(super) fn findings(checkout: &Checkout) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for section in SECTIONS {
        if checkout.path(section.document).is_file() {
            let document = checkout.read(section.document)?;
            findings.extend(differences(section, &document));
        }
    }
    Ok(findings)
}

fn differences(section: &Section, document: &str) -> Vec<String> {
    let heading = section.heading;
    let written = ids_under(document, heading);
    let required: BTreeSet<String> = section.ids().collect();
    let missing = required
        .difference(&written)
        .map(|id| format!("{id}: required here, but not in section {heading} of the document"));
    let extra = written
        .difference(&required)
        .map(|id| format!("{id}: in section {heading} of the document, but not required here"));
    missing.chain(extra).collect()
}

/// The first cells of the table rows under a heading `## 1.1 …`, however deep it stands.
fn ids_under(document: &str, heading: &str) -> BTreeSet<String> {
    let starts = format!("# {heading} ");
    let is_heading = |line: &&str| line.starts_with('#') && line.contains(&starts);
    let below = document
        .lines()
        .skip_while(|line| !is_heading(line))
        .skip(1);
    below
        .take_while(|line| !line.starts_with('#'))
        .filter_map(id_of_row)
        .collect()
}

/// The id of a row such as `| N4★ | … |` or `| AG-01 | … |`.
fn id_of_row(line: &str) -> Option<String> {
    let cell = line.strip_prefix('|')?.split('|').next()?.trim();
    let id: String = cell
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let number = id.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let number = number.strip_prefix('-').unwrap_or(number);
    if !id.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::{differences, id_of_row, ids_under};
    use crate::requirements::sections::Section;

    const DOCUMENT: &str =
        "# Part\n## 1.1 A\n| ID | R |\n|---|---|\n| N1★ | x |\n| N3 | y |\n## 1.2 B\n| L1 | z |\n";

    #[test]
    fn rows_have_ids_and_heads_do_not() {
        assert_eq!(id_of_row("| N4★ | text |").as_deref(), Some("N4"));
        assert_eq!(id_of_row("| AG-01 | text |").as_deref(), Some("AG-01"));
        assert_eq!(id_of_row("| ID | Requirement |"), None);
        assert_eq!(id_of_row("| 1 | text |"), None);
        assert_eq!(id_of_row("|---|---|"), None);
    }

    #[test]
    fn only_the_rows_of_the_section_count() {
        assert_eq!(ids_under(DOCUMENT, "1.1").len(), 2);
        assert_eq!(ids_under(DOCUMENT, "1.2").len(), 1);
    }

    #[test]
    fn differences_are_found_in_both_directions() {
        let section = Section {
            prefix: "N",
            digits: 1,
            numbers: &[1..=2],
            document: "x",
            heading: "1.1",
        };
        let found = differences(&section, DOCUMENT);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("N2: required here"));
        assert!(found[1].starts_with("N3: in section 1.1"));
    }
}
