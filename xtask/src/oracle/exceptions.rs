//! Where a table may differ from a schema, and why.

use mcpact_spec::Revision;

/// A difference that is meant.
pub(super) struct Exception {
    /// The revision in which it stands.
    pub(super) revision: Revision,
    /// The fact, spelled as the oracle spells it.
    pub(super) fact: &'static str,
    /// Why the table is right.
    pub(super) reason: &'static str,
}

/// Differences that hold whatever schemas are at hand.
const ALWAYS: &[Exception] = &[];

const IN_EXTENSION: &str = "defined by the tasks extension, whose schema is not at hand";

/// Differences that hold only while the schema of the tasks extension is missing.
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

/// The exceptions that must each explain a difference, given whether the extension has a schema.
pub(super) fn in_force(tasks_schema: TasksSchema) -> Vec<&'static Exception> {
    let conditional = match tasks_schema {
        TasksSchema::AtHand => &[],
        TasksSchema::Missing => WITHOUT_TASKS_SCHEMA,
    };
    ALWAYS.iter().chain(conditional).collect()
}

/// Whether the schema of the tasks extension lies beside the others.
#[derive(Clone, Copy)]
pub(super) enum TasksSchema {
    AtHand,
    Missing,
}
