//! Whether a call runs as a task, by the rules of 2025-11-25.

use mcpact_spec::Capability;

use crate::pact::Pact;
use crate::refusal::{Misbehaviour, Refusal};

/// What a tool says in `execution.taskSupport`; absent means forbidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// It never runs as a task.
    #[default]
    Forbidden,
    /// It runs either way.
    Optional,
    /// It runs only as a task.
    Required,
}

impl TaskSupport {
    /// Reads the word of a tool definition; what is not understood is forbidden.
    #[must_use]
    pub fn parse(word: Option<&str>) -> Self {
        match word {
            Some("required") => Self::Required,
            Some("optional") => Self::Optional,
            Some(_) | None => Self::Forbidden,
        }
    }
}

/// How the caller wants the call to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// With a `task` member in the parameters.
    Task,
    /// Without one.
    Plain,
}

/// Whether the server takes this kind of request only as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRequirement {
    /// Every one must be a task.
    Always,
    /// The tool decides.
    ByTool,
}

/// How the call will run.
///
/// `2025-11-25 basic/utilities/tasks#tool-level-negotiation`: without the capability `task` is
/// ignored; with it, the tool's word is law.
///
/// # Errors
/// The tool does not run that way, or requests of this kind must be tasks.
pub fn judge(
    pact: &Pact,
    support: TaskSupport,
    wish: CallMode,
    demand: TaskRequirement,
) -> Result<CallMode, Refusal> {
    if !pact.declares(Capability::ServerTasksToolsCall) {
        return Ok(CallMode::Plain);
    }
    match (support, wish, demand) {
        (_, CallMode::Plain, TaskRequirement::Always) => Err(Misbehaviour::TaskRequired.into()),
        (TaskSupport::Required, CallMode::Plain, TaskRequirement::ByTool) => {
            Err(Misbehaviour::TaskSupport { is_required: true }.into())
        }
        (TaskSupport::Forbidden, CallMode::Task, _) => {
            Err(Misbehaviour::TaskSupport { is_required: false }.into())
        }
        (
            TaskSupport::Forbidden | TaskSupport::Optional | TaskSupport::Required,
            CallMode::Task | CallMode::Plain,
            TaskRequirement::ByTool | TaskRequirement::Always,
        ) => Ok(wish),
    }
}
