//! Error codes and the HTTP status that they travel with.

use mcpact_spec::{ErrorCode, Revision, Site};

use super::markdown::{code, section as markdown_section};
use super::{head, row};
use crate::labels;

const READING: &str = "\
The HTTP status of an answer with this code; a dash where the code is not sent. Two numbers: the \
first when the message itself is at fault (JSON, envelope, headers, `_meta`), the second when the \
method found the error.";

/// The section on error codes.
pub(super) fn section() -> String {
    let mut names = head("Code");
    names.push("Name".to_owned());
    let rows: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|error| error_row(*error))
        .collect();
    markdown_section("Error codes", READING, &names, &rows)
}

fn error_row(error: ErrorCode) -> Vec<String> {
    let mut cells = row(code(error.code()), |revision| status(error, revision));
    cells.push(error.name().to_owned());
    cells
}

fn status(error: ErrorCode, revision: Revision) -> String {
    if !error.emitted_in(revision) {
        return labels::NOTHING.to_owned();
    }
    let envelope = error.http_status(revision, Site::Envelope);
    let application = error.http_status(revision, Site::Application);
    if envelope == application {
        envelope.to_string()
    } else {
        format!("{envelope} / {application}")
    }
}
