//! `mcpact schema`: prints the JSON Schema of the config.

use mcpact_config::json_schema;

use crate::error::CliError;
use crate::exit::Exit;
use crate::report;

pub(super) fn run() -> Result<Exit, CliError> {
    report::print(&json_schema())?;
    Ok(Exit::Ok)
}
