//! Index of the protocol rules and the tests that show them, built from the sources at test time.
//!
//! `requirements.toml` lists the rules by id. A test cites the ids that it shows in its doc comment. The command
//! fails on a rule without a test and on a citation of an unknown id, and writes the index to
//! `target/requirements.md`.

mod citations;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;
use citations::TestFn;

const RULES: &str = "requirements.toml";
const INDEX: &str = "target/requirements.md";
const HINT: &str = "cite the id in the doc comment of the test that shows the rule: `/// N4: …`";

/// One protocol rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    text: String,
    /// The part of the rule that is not implemented, with the reason.
    missing: Option<String>,
}

/// Checks the citations and writes the index.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let rules: BTreeMap<String, Rule> =
        toml::from_str(&checkout.read(RULES)?).map_err(|source| Failure::Toml {
            path: checkout.path(RULES),
            source,
        })?;
    let files = checkout.rust_files(&["crates", "xtask"])?;
    let tests: Vec<TestFn> = files.iter().flat_map(citations::tests_in).collect();
    Failure::unless_clean("requirements", findings(&rules, &tests), HINT)?;
    let index = checkout.path(INDEX);
    let folder = checkout.path("target");
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    fs::write(&index, render(&rules, &tests)).map_err(Failure::file(&index))?;
    for (id, missing) in rules
        .iter()
        .filter_map(|(id, rule)| Some((id, rule.missing.as_ref()?)))
    {
        report::say(format_args!("requirements: {id} is incomplete: {missing}"));
    }
    report::say(format_args!(
        "requirements: {} rules, index in {INDEX}",
        rules.len()
    ));
    Ok(())
}

/// Lists rules that no test cites and citations of unknown rules.
fn findings(rules: &BTreeMap<String, Rule>, tests: &[TestFn]) -> Vec<String> {
    let uncited = rules
        .iter()
        .filter(|(id, rule)| rule.missing.is_none() && !tests.iter().any(|test| test.cites(id)))
        .map(|(id, _)| format!("{id}: no test cites it"));
    // Other prefixes (`NL-02`, `HH-09`) name cases of the specification notes that are not listed as rules.
    let has_prefix = |id: &str| rules.keys().any(|rule| prefix(rule) == prefix(id));
    let unknown = tests.iter().flat_map(|test| {
        let ids = test.leading_ids().into_iter();
        ids.filter(|id| has_prefix(id) && !rules.contains_key(id))
            .map(|id| format!("{id}: cited by `{}`, not in {RULES}", test.name()))
            .collect::<Vec<_>>()
    });
    uncited.chain(unknown).collect()
}

/// Returns the letters before the number of an id.
fn prefix(id: &str) -> &str {
    id.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Renders the index as Markdown: every rule with its tests.
fn render(rules: &BTreeMap<String, Rule>, tests: &[TestFn]) -> String {
    let mut page = String::from("# Protocol rules and their tests\n");
    for (id, rule) in rules {
        let _ = write!(page, "\n## {id}\n\n{}\n\n", rule.text);
        for test in tests.iter().filter(|test| test.cites(id)) {
            let _ = writeln!(page, "- `{}`", test.name());
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Rule, findings, render};
    use crate::checkout::SourceFile;
    use crate::requirements::citations::{TestFn, tests_in};

    fn rules(text: &str) -> BTreeMap<String, Rule> {
        toml::from_str(text).unwrap()
    }

    fn tests(text: &str) -> Vec<TestFn> {
        tests_in(&SourceFile {
            path: "a.rs".to_owned(),
            text: text.to_owned(),
        })
    }

    const RULES: &str = "[N1]\ntext = \"first\"\n[N2]\ntext = \"second\"\n";

    #[test]
    fn rule_without_a_test_is_reported() {
        let found = findings(&rules(RULES), &tests("/// N1: x\n#[test]\nfn a() {}\n"));
        assert_eq!(found, ["N2: no test cites it"]);
    }

    #[test]
    fn rule_that_is_marked_incomplete_needs_no_test() {
        let rules = rules("[N1]\ntext = \"first\"\nmissing = \"not built\"\n");
        assert!(findings(&rules, &[]).is_empty());
    }

    #[test]
    fn citation_of_an_unknown_rule_is_reported() {
        let found = findings(
            &rules(RULES),
            &tests("/// N1, N2, N9, ER-01: x\n#[test]\nfn a() {}\n"),
        );
        assert_eq!(found, ["N9: cited by `a.rs::a`, not in requirements.toml"]);
    }

    #[test]
    fn index_lists_the_tests_of_each_rule() {
        let page = render(&rules(RULES), &tests("/// N2: x\n#[test]\nfn a() {}\n"));
        assert!(page.contains("## N1\n\nfirst\n\n\n## N2\n\nsecond\n\n- `a.rs::a`\n"));
    }
}
