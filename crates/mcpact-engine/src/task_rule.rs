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
pub enum Wish {
    /// With a `task` member in the parameters.
    Task,
    /// Without one.
    Plain,
}

/// Whether the server takes this kind of request only as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
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
    wish: Wish,
    demand: Demand,
) -> Result<Wish, Refusal> {
    if !pact.declares(Capability::ServerTasksToolsCall) {
        return Ok(Wish::Plain);
    }
    match (support, wish, demand) {
        (_, Wish::Plain, Demand::Always) => Err(Misbehaviour::TaskRequired.into()),
        (TaskSupport::Required, Wish::Plain, Demand::ByTool) => {
            Err(Misbehaviour::TaskSupport { is_required: true }.into())
        }
        (TaskSupport::Forbidden, Wish::Task, _) => {
            Err(Misbehaviour::TaskSupport { is_required: false }.into())
        }
        (
            TaskSupport::Forbidden | TaskSupport::Optional | TaskSupport::Required,
            Wish::Task | Wish::Plain,
            Demand::ByTool | Demand::Always,
        ) => Ok(wish),
    }
}
