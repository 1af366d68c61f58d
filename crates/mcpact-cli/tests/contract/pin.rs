//! Comparison of one part of the contract with its committed file.

/// Shown in every failure and at the top of every file.
const RULE: &str = "Stable strings are a contract: users and scripts depend on them (CONTRIBUTING.md, \"Stable strings and names\"). \
                    If a change is intended, run `INSTA_UPDATE=always cargo test -p mcpact-cli contract`, commit the files, \
                    and add a line to CHANGELOG.md.";

/// Compares facts of the program with `tests/contract/NAME.snap`, one fact per line.
pub(crate) fn pin(name: &str, facts: impl IntoIterator<Item = String>) {
    let mut lines: Vec<String> = facts.into_iter().collect();
    lines.sort();
    lines.dedup();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(RULE);
    settings.bind(|| insta::assert_snapshot!(name, lines.join("\n")));
}
