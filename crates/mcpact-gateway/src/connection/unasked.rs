//! Questions between two legacy peers.

use std::time::Duration;

use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_translate::plan::without_progress_token;
use mcpact_translate::shape::{ShapeError, adapt_client_result, adapt_params};
use mcpact_wire::model::error;

/// How long a person may think. The call that a question belongs to may end earlier, and takes the
/// question back then.
pub(crate) const PATIENCE: RequestTimeout = RequestTimeout {
    timeout: Duration::from_secs(600),
    maximum: Duration::from_secs(600),
    on_progress: OnProgress::Extend,
};

/// A server's question in the words of an older client, without what only its sender could use:
/// nobody reports progress on it. If there are no such words, the error for the server.
pub(crate) fn lowered(
    method: Method,
    params: &str,
    downstream: Revision,
) -> Result<String, String> {
    let lowered = without_progress_token(params)
        .and_then(|params| Ok(adapt_params(method, &params, downstream)?.into_owned()));
    lowered.map_err(|fault| refused(ErrorCode::InvalidParams, "the question", &fault))
}

/// A client's answer in the words of an older server, or an error for it.
pub(crate) fn answer(method: Method, raw: &str, upstream: Revision) -> Result<String, String> {
    adapt_client_result(method, raw, upstream)
        .map(std::borrow::Cow::into_owned)
        .map_err(|fault| refused(ErrorCode::InternalError, "the client's answer", &fault))
}

fn refused(code: ErrorCode, what: &str, fault: &ShapeError) -> String {
    error::encode(code.code(), &format!("{what} does not fit: {fault}"), None)
}
