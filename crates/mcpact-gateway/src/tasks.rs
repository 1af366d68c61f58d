//! Translation of MCP tasks between the eras.
//!
//! The gateway hosts tasks ([`hosted::Hosting`]) for clients of 2025-11-25 in front of a modern server. A modern
//! client sees tasks of a 2025-11-25 server under other ids ([`mapped::Mapping`]). For clients without task support,
//! the gateway follows the task while the call waits.

pub(crate) mod aggregate_tasks;
pub(crate) mod follow;
pub(crate) mod hosted;
pub(crate) mod ids;
pub(crate) mod kept;
pub(crate) mod mapped;
pub(crate) mod runner;
pub(crate) mod status;
pub(crate) mod tool_support;
pub(crate) mod waited;

use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_translate::input::Outcome;
use mcpact_wire::raw::{Object, ObjectWriter};

use mcpact::connection::ServerResponse;

use crate::error::ServeError;
use crate::exchange::{Inbound, refusal};

/// Maximum number of tasks in each direction, in total and per principal.
const TASKS: usize = 4096;
const PER_OWNER: usize = 1024;

/// Maximum number of questions of one task.
const QUESTIONS: usize = 64;

/// Maximum retention time of a task.
const LONGEST: Duration = Duration::from_secs(3600);

/// Interval of the check for expired tasks.
const ROUND: Duration = Duration::from_secs(1);

/// Store of tasks with an expiry time.
pub(crate) trait ExpiringTasks: Send + Sync + 'static {
    fn expire(self: &Arc<Self>);
}

/// Starts a background job that expires tasks; it ends when the store is dropped.
pub(crate) fn watch<T: ExpiringTasks>(tasks: &Arc<T>) {
    let tasks = Arc::downgrade(tasks);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(ROUND).await;
            match Weak::upgrade(&tasks) {
                Some(tasks) => tasks.expire(),
                None => return,
            }
        }
    });
}

/// Generates an unguessable task id.
fn new_name(to: Revision) -> Result<String, ServeError> {
    let mut random = [0_u8; 16];
    let drawn = getrandom::fill(&mut random);
    drawn.map_err(|_| {
        let why = String::from("the operating system gave no random numbers");
        refusal(ErrorCode::InternalError.code(), why, None, to)
    })?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns request parameters with this task id.
fn of_task(id: &str) -> String {
    ObjectWriter::new().text("taskId", id).finish()
}

/// Returns the task id in a client's request.
fn meant(inbound: &Inbound) -> Result<String, ServeError> {
    let params = Object::parse(&inbound.job.params).unwrap_or_default();
    let id = params.get_str("taskId").map(std::borrow::Cow::into_owned);
    id.ok_or_else(|| {
        let why = String::from("Invalid params: `taskId` must be a string");
        refusal(
            ErrorCode::InvalidParams.code(),
            why,
            None,
            inbound.revision(),
        )
    })
}

/// Converts a server response to an outcome, for requests that the gateway sent itself.
fn outcome(reply: &ServerResponse) -> Outcome {
    match reply {
        ServerResponse::Result(raw) => Outcome::Result(raw.to_string()),
        ServerResponse::Error(raw) => Outcome::Error(raw.to_string()),
    }
}

/// Error for a method that the client's revision does not define.
fn unknown(inbound: &Inbound) -> ServeError {
    let name = inbound.job.method.map_or("", Method::as_str);
    let why = format!("Method not found: `{name}`");
    refusal(
        ErrorCode::MethodNotFound.code(),
        why,
        None,
        inbound.revision(),
    )
}
