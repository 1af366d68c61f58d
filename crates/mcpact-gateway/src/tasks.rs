//! Translation of MCP tasks between the eras.
//!
//! The gateway hosts tasks ([`hosted::Hosting`]) for clients of 2025-11-25 in front of a modern server. A modern
//! client sees tasks of a 2025-11-25 server under other ids ([`mapped::Mapping`]). For clients without task support,
//! the gateway follows the task while the call waits.

pub(crate) mod aggregate_tasks;
pub(crate) mod hosted;
pub(crate) mod mapped;
pub(crate) mod same_era;
pub(crate) mod waiting;

use std::borrow::Cow;
use std::time::Duration;

use mcpact::connection::RawResult;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_translate::input::Outcome;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::error::ServeError;
use crate::exchange::{Inbound, refusal, refuse};
use crate::target::hex;

/// Maximum number of tasks in each direction, in total and per principal.
const TASKS: usize = 4096;
const PER_OWNER: usize = 1024;

/// Maximum number of questions of one task.
const QUESTIONS: usize = 64;

/// Maximum retention time of a task.
const LONGEST: Duration = Duration::from_secs(3600);

/// Generates an unguessable task id.
fn new_task_id(to: Revision) -> Result<String, ServeError> {
    let mut random = [0_u8; 16];
    match getrandom::fill(&mut random) {
        Ok(()) => Ok(hex(&random)),
        Err(_) => {
            let why = "the operating system returned no random numbers";
            Err(refuse(ErrorCode::InternalError, why, to))
        }
    }
}

/// Returns request parameters with this task id.
fn task_params(id: &str) -> String {
    ObjectWriter::new().text("taskId", id).finish()
}

/// Returns the task id in a client's request.
fn task_id(inbound: &Inbound) -> Result<String, ServeError> {
    let params = Object::parse(&inbound.job.params).unwrap_or_default();
    let id = params.get_str("taskId").map(Cow::into_owned);
    id.ok_or_else(|| {
        let why = "Invalid params: `taskId` must be a string";
        refuse(ErrorCode::InvalidParams, why, inbound.revision())
    })
}

/// Converts the response for a client to an outcome that can be stored.
pub(crate) fn stored_outcome(response: &Result<RawResult, ServeError>) -> Outcome {
    match response {
        Ok(raw) => Outcome::Result(raw.to_string()),
        Err(error) => Outcome::Error(error.to_wire().encode()),
    }
}

/// Converts a stored outcome to the response for a client of this revision.
pub(crate) fn stored_response(outcome: Outcome, to: Revision) -> Result<RawResult, ServeError> {
    let raw = match outcome {
        Outcome::Result(raw) => return Ok(raw.into()),
        Outcome::Error(raw) => raw,
    };
    let Some(body) = ErrorBody::parse(&raw) else {
        return Err(refuse(ErrorCode::InternalError, raw, to));
    };
    let data = body.data.map(str::to_owned);
    Err(refusal(body.code, body.message.into_owned(), data, to))
}

/// Error for a method that the client's revision does not define.
fn method_not_found(inbound: &Inbound) -> ServeError {
    let name = inbound.job.method.map_or("", Method::as_str);
    let why = format!("Method not found: `{name}`");
    refuse(ErrorCode::MethodNotFound, why, inbound.revision())
}
