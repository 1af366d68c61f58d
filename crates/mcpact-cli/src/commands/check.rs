//! `mcpact check`: lists the problems and servers of a config.

use mcpact_config::{Severity, inspect};

use crate::args::CheckArgs;
use crate::error::{CliError, Exit};
use crate::report::{self, problems};

pub(super) fn run(args: &CheckArgs) -> Result<Exit, CliError> {
    let file = super::config_file(args.file.as_deref())?;
    let (source, outcome) = inspect(&file)?;
    report::print(&if args.json {
        problems::json(&source, &outcome)
    } else {
        problems::text(&source, &outcome)
    })?;
    let limit = match args.strict {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let mut problems = outcome.problems.iter();
    Ok(match problems.any(|problem| problem.severity >= limit) {
        true => Exit::Problems,
        false => Exit::Ok,
    })
}
