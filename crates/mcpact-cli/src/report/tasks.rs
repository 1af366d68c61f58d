//! Output of `mcpact tasks`.

use std::io::stdout;

use mcpact::model::{Task, TaskStatus};

use super::layout::{Layout, cell, in_one_line, printable, widest, width};
use super::style::Tone;

/// Message about the start of a task.
pub(crate) fn started(id: &str) -> String {
    format!("task {} started\n", printable(id))
}

/// Formats a list of tasks.
pub(crate) fn list(tasks: &[Task]) -> String {
    let mut layout = Layout::new(width());
    let ids = widest(tasks.iter().map(|task| &*task.task_id)).min(40) + 2;
    for task in tasks {
        let cells = [
            cell(Tone::Name, &task.task_id, ids),
            cell(tone(task.status), name(task.status), 16),
        ];
        layout.entry(0, &cells, Tone::Plain, &details(task));
    }
    layout.finish(&stdout())
}

fn details(task: &Task) -> String {
    let message = task.status_message.as_deref().map(in_one_line);
    let created = task.created_at.as_deref().map(in_one_line);
    let parts: Vec<String> = created.into_iter().chain(message).collect();
    parts.join(" ")
}

/// Returns the name of a status.
pub(crate) const fn name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "input required",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

const fn tone(status: TaskStatus) -> Tone {
    match status {
        TaskStatus::Completed => Tone::Good,
        TaskStatus::Failed | TaskStatus::Cancelled => Tone::Bad,
        TaskStatus::Working | TaskStatus::InputRequired => Tone::Plain,
    }
}
