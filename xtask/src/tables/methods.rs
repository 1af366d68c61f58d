//! Methods by revision, with sender and required capabilities.

use mcpact_spec::Method;

use super::markdown::{code, section as markdown_section};
use super::{gates, head, row};
use crate::labels;

const READING: &str = "\
A *request* wants an answer, a *note* (notification) does not; *client*, *server* and *either* tell \
who sends it. *Embedded* is a question inside the result of another request. *Needs* names the \
capability, or the extension, that must have been declared before the method may be used.";

/// The section on methods.
pub(super) fn section() -> String {
    let mut names = head("Method");
    names.extend(["Needs".to_owned(), "Era".to_owned()]);
    let rows: Vec<_> = Method::ALL
        .iter()
        .map(|method| method_row(*method))
        .collect();
    markdown_section("Methods", READING, &names, &rows)
}

fn method_row(method: Method) -> Vec<String> {
    let mut cells = row(code(method), |revision| {
        labels::role(method.role(revision)).to_owned()
    });
    cells.push(gates::needs(method));
    cells.push(labels::era_use(method.era_use()).to_owned());
    cells
}
