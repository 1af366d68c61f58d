//! Intended differences between tables and schemas.

use mcpact_spec::Revision;

/// An intended difference.
pub(super) struct Exception {
    /// Revision of the difference.
    pub(super) revision: Revision,
    /// Name of the fact in the oracle.
    pub(super) fact: &'static str,
    /// Reason why the table is right.
    pub(super) reason: &'static str,
}

/// Differences that do not depend on the available schemas.
const ALWAYS: &[Exception] = &[];

const IN_EXTENSION: &str = "defined by the tasks extension, whose schema is not at hand";

/// Differences that exist only without the schema of the tasks extension.
const WITHOUT_TASKS_SCHEMA: &[Exception] = &[
    of_tasks("role of tasks/get"),
    of_tasks("role of tasks/cancel"),
    of_tasks("role of tasks/update"),
    of_tasks("role of notifications/tasks"),
];

const fn of_tasks(fact: &'static str) -> Exception {
    Exception {
        revision: Revision::V2026_07_28,
        fact,
        reason: IN_EXTENSION,
    }
}

/// Exceptions that apply; each must explain a difference.
pub(super) fn in_force(tasks_schema: TasksSchema) -> Vec<&'static Exception> {
    let conditional = match tasks_schema {
        TasksSchema::AtHand => &[],
        TasksSchema::Missing => WITHOUT_TASKS_SCHEMA,
    };
    ALWAYS.iter().chain(conditional).collect()
}

/// Availability of the schema of the tasks extension.
#[derive(Clone, Copy)]
pub(super) enum TasksSchema {
    AtHand,
    Missing,
}
