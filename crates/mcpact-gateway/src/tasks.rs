//! Tasks between the eras.
//!
//! A client of 2025-11-25 in front of a modern server has tasks that are [hosted](Hosting) here; a
//! modern client in front of a server of 2025-11-25 sees that server's tasks under [other
//! names](Mapping). Whoever knows no tasks waits, and the server does the rest.

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

use crate::error::ServeError;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_translate::input::Outcome;
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::exchange::Inbound;
use crate::exchange::refusal;
use mcpact::connection::ServerResponse;

/// How many tasks are known at a time, in each direction, and how many of them one principal has.
const TASKS: usize = 4096;
const PER_OWNER: usize = 1024;

/// How many questions one task may ask.
const QUESTIONS: usize = 64;

/// How long a task is kept at most.
const LONGEST: Duration = Duration::from_secs(3600);

/// How often expired tasks are looked for.
const ROUND: Duration = Duration::from_secs(1);

/// Those who have tasks, and forget them when their time is up.
pub(crate) trait ExpiringTasks: Send + Sync + 'static {
    fn expire(self: &Arc<Self>);
}

/// Lets tasks be forgotten whose time is up, as long as there is anybody who has some.
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

/// A name that nobody can guess.
fn new_name(to: Revision) -> Result<String, ServeError> {
    let mut random = [0_u8; 16];
    let drawn = getrandom::fill(&mut random);
    drawn.map_err(|_| {
        let why = String::from("the operating system gave no random numbers");
        refusal(ErrorCode::InternalError.code(), why, None, to)
    })?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Parameters that name a task.
fn of_task(id: &str) -> String {
    ObjectWriter::new().text("taskId", id).finish()
}

/// The task that a client means.
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

/// An answer of the server as the outcome of something that nobody asked for directly.
fn outcome(reply: &ServerResponse) -> Outcome {
    match reply {
        ServerResponse::Result(raw) => Outcome::Result(raw.to_string()),
        ServerResponse::Error(raw) => Outcome::Error(raw.to_string()),
    }
}

/// The client asks something that its revision has no word for.
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
