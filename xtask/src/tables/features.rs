//! Features by revision.

use mcpact_spec::Feature;

use super::markdown::{code, section as markdown_section};
use super::{head, row};
use crate::labels;

const READING: &str = "\
Properties of a revision that are neither a method nor a capability, under the names that the code \
of mcpact uses.";

/// The section on features.
pub(super) fn section() -> String {
    let rows: Vec<_> = Feature::ALL
        .iter()
        .map(|feature| feature_row(*feature))
        .collect();
    markdown_section("Features", READING, &head("Feature"), &rows)
}

fn feature_row(feature: Feature) -> Vec<String> {
    row(code(feature.name()), |revision| {
        let word = if revision.has(feature) {
            "yes"
        } else {
            labels::NOTHING
        };
        word.to_owned()
    })
}
