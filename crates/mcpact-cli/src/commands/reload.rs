//! `mcpact reload`: a gateway that runs reads its config anew.

use mcpact_gateway::control::{Answer, Request};

use super::{control, front};
use crate::args::Reload;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, reload};

pub(super) fn run(args: &Reload) -> Result<Exit, CliError> {
    let asked = control::answer(&args.which, &Request::Reload {});
    let Answer::Reload(report) = front::block_on(asked)? else {
        return Err(CliError::Answer);
    };
    if args.which.json {
        report::print(&reload::json(&report))?;
    } else {
        report::aside(&reload::problems(&report));
        report::print(&reload::text(&report))?;
    }
    Ok(if report.applied {
        Exit::Ok
    } else {
        Exit::Usage
    })
}
