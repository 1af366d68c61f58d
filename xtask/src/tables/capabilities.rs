//! Capabilities by revision.

use mcpact_spec::{Capability, Side};

use super::markdown::{code, section as markdown_section};
use super::{head, row};
use crate::labels;

const READING: &str = "\
The path in the capability document of the side that declares it. *Deprecated* is defined, but will \
go; *implied* is meant by its parent without being spelled out; *tolerated* is in no schema of the \
revision, yet peers send it and it does no harm; *removed* was there before.";

/// The section on capabilities.
pub(super) fn section() -> String {
    let client = table("Client capabilities", READING, Side::Client);
    let server = table("Server capabilities", "Read as above.", Side::Server);
    format!("{client}\n{server}")
}

fn table(heading: &str, reading: &str, side: Side) -> String {
    let mut names = head("Capability");
    names.extend(["Shape".to_owned(), "Meaning".to_owned()]);
    let rows: Vec<_> = Capability::of(side).map(capability_row).collect();
    markdown_section(heading, reading, &names, &rows)
}

fn capability_row(capability: Capability) -> Vec<String> {
    let mut cells = row(code(capability), |revision| {
        labels::presence(capability.presence(revision)).to_owned()
    });
    cells.push(labels::shape(capability.shape()).to_owned());
    cells.push(capability.description().to_owned());
    cells
}
