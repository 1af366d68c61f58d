//! `mcpact check`: lists the problems and servers of a config.

use mcpact_config::{Severity, inspect};

use crate::args::CheckArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, problems};

pub(super) fn run(args: &CheckArgs) -> Result<Exit, CliError> {
    let file = super::config_file(args.file.as_deref())?;
    let (source, outcome) = inspect(&file)?;
    let checked = problems::Checked {
        source: &source,
        outcome: &outcome,
    };
    report::print(&if args.json {
        problems::json(&checked)
    } else {
        problems::text(&checked)
    })?;
    let limit = if args.strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let worst = outcome
        .problems
        .iter()
        .map(|problem| problem.severity)
        .max();
    Ok(match worst {
        Some(worst) if worst >= limit => Exit::Problems,
        Some(_) | None => Exit::Ok,
    })
}
