//! `mcpact status`: how a gateway that runs and its servers are.

use mcpact_gateway::control::{Answer, Request};

use super::{control, front};
use crate::args::Status;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, status};

pub(super) fn run(args: &Status) -> Result<Exit, CliError> {
    let request = Request::Status {
        server: args.server.clone(),
    };
    let answer = front::block_on(control::answer(&args.which, &request))?;
    let Answer::Status(found) = answer else {
        return Err(CliError::Answer);
    };
    report::print(&match (args.which.json, &args.server) {
        (true, _) => status::json(&found),
        (false, None) => status::text(&found),
        (false, Some(_)) => status::one(&found),
    })?;
    Ok(Exit::Ok)
}
