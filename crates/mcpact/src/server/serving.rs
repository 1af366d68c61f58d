//! Serving of one request by the backend, with validation against the official schemas.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::refusal::{Dialect, ReasonCode, WireError};
use mcpact_spec::ErrorCode;
use mcpact_wire::raw::ObjectWriter;

use super::backend::Backend;
use super::backend_request::BackendRequest;
use super::handler_error::HandlerError;
use super::outbox::Outbox;
use super::session::Session;
use crate::validation::Validation;

/// Error response of a request that is cut off by the shutdown of the server.
pub(super) fn cut_off() -> WireError {
    WireError {
        code: ErrorCode::InternalError.code(),
        message: String::from(
            "the server shut down before the request finished; hint: it may have taken effect, check before you retry",
        ),
        data: Some(
            ObjectWriter::new()
                .text("reason", ReasonCode::CutOff.as_str())
                .finish(),
        ),
        // With 503 a client may retry, although the request may have taken effect.
        http_status: 200,
    }
}

/// Validates a request, lets the backend serve it, and validates the result.
pub(super) async fn serve<B: Backend>(
    backend: Arc<B>,
    request: BackendRequest,
    session: Arc<Session<B::State>>,
    outbox: Outbox,
) -> Result<ByteString, WireError> {
    let validation = match &backend.settings().validation {
        Validation::Off => return backend.serve(request, session, outbox).await,
        validation => validation.clone(),
    };
    let dialect = Dialect {
        revision: request.pact.revision(),
        errors: backend.terms().policy.errors,
    };
    let method = request.name.clone();
    let params = Some(&**request.params);
    validation
        .params("client", dialect.revision, &method, params)
        .map_err(|error| {
            HandlerError::invalid_params(format!("`{method}` {error}")).on_wire(dialect)
        })?;
    let raw = backend.serve(request, session, outbox).await?;
    validation
        .result("server", dialect.revision, &method, &raw)
        .map_err(|error| {
            let text = format!("the result of `{method}` {error}");
            HandlerError::rpc(ErrorCode::InternalError.code(), text).on_wire(dialect)
        })?;
    Ok(raw)
}
