//! `mcpact logs`: what happened to the servers of a gateway that runs.

use mcpact_gateway::control::{Answer, Request};

use super::{control, front};
use crate::args::Logs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, Readers, logs};

pub(super) fn run(args: &Logs) -> Result<Exit, CliError> {
    front::block_on(read(args))?;
    Ok(Exit::Ok)
}

async fn read(args: &Logs) -> Result<(), CliError> {
    let request = Request::Logs {
        server: args.server.clone(),
        lines: args.lines,
        follow: args.follow,
    };
    let mut conversation = control::ask(&args.which, &request).await?;
    let mut is_empty = true;
    loop {
        let next = if args.follow {
            conversation.next_entry().await
        } else {
            conversation.next().await
        };
        let Some(answer) = next.map_err(CliError::Control)? else {
            break;
        };
        let Answer::Line(line) = control::granted(answer)? else {
            return Err(CliError::Answer);
        };
        is_empty = false;
        let written = report::print_on(&if args.which.json {
            logs::json(&line)
        } else {
            logs::text(&line)
        })?;
        if written == Readers::HaveLeft {
            return Ok(());
        }
    }
    if args.follow {
        report::hint("the gateway has ended");
    } else if is_empty && args.lines > 0 && !args.which.json {
        report::hint("nothing has happened yet; servers are started when they are first needed");
    }
    Ok(())
}
