//! `mcpact reload`: reloads the config of a running gateway.

use mcpact_gateway::control::{ControlReply, ControlRequest};

use super::{block_on, control};
use crate::args::ReloadArgs;
use crate::error::{CliError, Exit};
use crate::report::{self, reload};

pub(super) fn run(args: &ReloadArgs) -> Result<Exit, CliError> {
    let request = ControlRequest::Reload {};
    let ControlReply::Reload(report) = block_on(control::request(&args.gateway, &request))? else {
        return Err(CliError::UnexpectedResponse);
    };
    if args.gateway.json {
        report::print(&report::json(&report))?;
    } else {
        report::eprint(&reload::problems(&report));
        report::print(&reload::text(&report))?;
    }
    Ok(if report.applied {
        Exit::Ok
    } else {
        Exit::Usage
    })
}
