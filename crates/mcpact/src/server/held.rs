//! Requests and their results, held against the official schemas on their way to the backend and back.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::refusal::{Dialect, ReasonCode, WireError};
use mcpact_spec::ErrorCode;
use mcpact_wire::raw::ObjectWriter;

use super::backend::Backend;
use super::error::HandlerError;
use super::job::Job;
use super::outbox::Outbox;
use super::session::Session;
use crate::conformity::Validation;

/// What a request is told that is cut off because the server stops.
pub(super) fn cut_off() -> WireError {
    WireError {
        code: ErrorCode::InternalError.code(),
        message: String::from(
            "the server stops, and this was not finished; hint: it may have had its effect, so see whether it had",
        ),
        data: Some(
            ObjectWriter::new()
                .text("reason", ReasonCode::CutOff.as_str())
                .finish(),
        ),
        // Whoever reads 503 may send it once more, and it may have had its effect.
        http_status: 200,
    }
}

/// Lets the backend serve a request that fits, and passes a result on that does.
pub(super) async fn serve<B: Backend>(
    backend: Arc<B>,
    job: Job,
    session: Arc<Session>,
    outbox: Outbox,
) -> Result<ByteString, WireError> {
    let validation = match &backend.settings().validation {
        Validation::Off => return backend.serve(job, session, outbox).await,
        validation => validation.clone(),
    };
    let dialect = Dialect {
        revision: job.pact.revision(),
        errors: backend.terms().policy.errors,
    };
    let method = job.name.clone();
    let params = Some(&**job.params);
    validation
        .params("client", dialect.revision, &method, params)
        .map_err(|misfit| {
            HandlerError::invalid_params(format!("`{method}` {misfit}")).on_wire(dialect)
        })?;
    let raw = backend.serve(job, session, outbox).await?;
    validation
        .result("server", dialect.revision, &method, &raw)
        .map_err(|misfit| {
            let text = format!("the result of `{method}` {misfit}");
            HandlerError::rpc(ErrorCode::InternalError.code(), text).on_wire(dialect)
        })?;
    Ok(raw)
}
