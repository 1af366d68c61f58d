//! Calls that a server has not seen when another one takes its place.

use mcpact_engine::refusal::WireError;

use crate::error::CLOSED;

/// Whether the server that was to get a call is not served any more, and has not seen it.
pub(crate) fn is_unseen(error: &WireError) -> bool {
    let data = error.data.as_deref();
    data.is_some_and(|data| data.contains(CLOSED))
}
