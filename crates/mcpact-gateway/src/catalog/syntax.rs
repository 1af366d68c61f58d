//! Texts to trees.

mod toml;

use super::problem::Problem;
use super::source::Source;
use super::tree::Node;

/// The tree in a text.
///
/// # Errors
/// It does not follow its syntax.
pub(super) fn parse(source: &Source) -> Result<Node, Problem> {
    toml::parse(&source.text)
}
