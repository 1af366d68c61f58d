//! The tables of mcpact-spec as a page of the manual.

mod capabilities;
mod errors;
mod features;
mod gates;
mod headers;
mod markdown;
mod methods;

use std::fs;

use mcpact_spec::Revision;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;

const PAGE: &str = "docs/manual/revisions.md";

const INTRODUCTION: &str = "\
# The five revisions

Methods, capabilities, headers and error codes of each revision of the Model Context Protocol, from the tables \
that mcpact uses: the first four are *legacy* (an `initialize` handshake), the last is *modern* (version and \
capabilities in every request). A dash means that the revision does not have it.

This page is generated; run `cargo xtask tables` to update it.
";

/// Write or compare.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail if the page differs, and write nothing.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(checkout: &Checkout, options: Options) -> Result<(), Failure> {
    if options.check {
        check(checkout)
    } else {
        write(checkout)
    }
}

/// Checks that the page matches the tables.
pub(crate) fn check(checkout: &Checkout) -> Result<(), Failure> {
    let expected = page();
    let found = fs::read_to_string(checkout.path(PAGE)).unwrap_or_default();
    let finding = if found == expected {
        Vec::new()
    } else {
        vec![first_difference(&found, &expected)]
    };
    Failure::unless_clean(
        "tables",
        finding,
        "run `cargo xtask tables` and commit the page",
    )?;
    report::say(format_args!("tables: {PAGE} is up to date"));
    Ok(())
}

fn write(checkout: &Checkout) -> Result<(), Failure> {
    let path = checkout.path(PAGE);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    fs::write(&path, page()).map_err(Failure::file(&path))?;
    report::say(format_args!("tables: wrote {PAGE}"));
    Ok(())
}

fn first_difference(found: &str, expected: &str) -> String {
    if found.is_empty() {
        return format!("{PAGE} is missing or empty");
    }
    let same = found
        .lines()
        .zip(expected.lines())
        .take_while(|(a, b)| a == b)
        .count();
    format!("{PAGE} differs from the tables from line {}", same + 1)
}

fn page() -> String {
    let sections = [
        INTRODUCTION.to_owned(),
        methods::section(),
        capabilities::section(),
        features::section(),
        headers::section(),
        errors::section(),
    ];
    sections.join("\n")
}

/// A row that starts with `first` and has one cell per revision.
fn row(first: String, cell: impl Fn(Revision) -> String) -> Vec<String> {
    std::iter::once(first)
        .chain(Revision::ALL.into_iter().map(cell))
        .collect()
}

/// The head of such a row.
fn head(first: &str) -> Vec<String> {
    row(first.to_owned(), |revision| revision.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use mcpact_spec::{Capability, ErrorCode, Feature, Header, Method};

    use super::{Options, PAGE, page, run};
    use crate::checkout::Checkout;

    /// N34: the page is generated, and no row of a table is left out.
    #[test]
    fn the_page_has_every_row() {
        let page = page();
        let has = |text: &str| assert!(page.contains(&format!("`{text}`")), "{text}");
        Method::ALL.iter().for_each(|method| has(method.as_str()));
        Capability::ALL
            .iter()
            .for_each(|capability| has(capability.path()));
        Feature::ALL.iter().for_each(|feature| has(feature.name()));
        Header::ALL.iter().for_each(|header| has(header.name()));
        ErrorCode::ALL
            .iter()
            .for_each(|code| has(&code.code().to_string()));
    }

    /// N34: a capability without a description fails.
    #[test]
    fn every_capability_is_described() {
        for capability in Capability::ALL {
            assert!(capability.description().ends_with('.'), "{capability}");
        }
    }

    #[test]
    fn check_passes_only_on_the_written_page() {
        let root = tempfile::tempdir().unwrap();
        let checkout = Checkout::at(root.path().to_owned());
        let missing = run(&checkout, Options { check: true })
            .unwrap_err()
            .to_string();
        assert!(missing.contains("cargo xtask tables"), "{missing}");
        run(&checkout, Options { check: false }).unwrap();
        run(&checkout, Options { check: true }).unwrap();
        std::fs::write(checkout.path(PAGE), "# The five revisions\nother").unwrap();
        let differs = run(&checkout, Options { check: true })
            .unwrap_err()
            .to_string();
        assert!(differs.contains("from line 2"), "{differs}");
    }
}
