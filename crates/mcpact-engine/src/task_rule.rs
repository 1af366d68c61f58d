//! Rules of 2025-11-25 for calls that run as tasks.

use mcpact_spec::Capability;

use crate::pact::Pact;
use crate::refusal::{Misbehaviour, Refusal};

/// Value of `execution.taskSupport` of a tool; absent means forbidden.
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

/// Mode that the caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// With a `task` member in the parameters.
    Task,
    /// Without one.
    Plain,
}

/// Rule of the server for this kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRequirement {
    /// Every one must be a task.
    Always,
    /// The tool decides.
    ByTool,
}

/// Decides the mode of a call.
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
