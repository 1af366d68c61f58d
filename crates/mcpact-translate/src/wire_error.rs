//! The errors that the machines answer with, in one place so that they read alike.

use alloc::string::String;

use mcpact_engine::refusal::WireError;
use mcpact_spec::{Era, ErrorCode, Revision, Site};

/// An error for a client that speaks the revision.
pub(crate) fn wire_error(
    code: ErrorCode,
    message: impl Into<String>,
    revision: Revision,
) -> WireError {
    WireError {
        code: code.code(),
        message: message.into(),
        data: None,
        http_status: code.http_status(revision, Site::Application),
    }
}

/// An error for a client that is known to be modern, by a code with one status in that era.
pub(crate) fn modern_error(code: ErrorCode, message: impl Into<String>) -> WireError {
    wire_error(code, message, Revision::newest(Era::Modern))
}
