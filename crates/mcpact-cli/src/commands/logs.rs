//! `mcpact logs`: prints server logs and events of a running gateway.

use mcpact_gateway::control::{ControlReply, ControlRequest};

use super::{block_on, control};
use crate::args::LogsArgs;
use crate::error::{CliError, Exit};
use crate::report::{self, Stdout, logs};

pub(super) fn run(args: &LogsArgs) -> Result<Exit, CliError> {
    block_on(read(args))?;
    Ok(Exit::Ok)
}

async fn read(args: &LogsArgs) -> Result<(), CliError> {
    let request = ControlRequest::Logs {
        server: args.server.clone(),
        lines: args.lines,
        follow: args.follow,
    };
    let mut client = control::open(&args.gateway, &request).await?;
    let mut is_empty = true;
    loop {
        let next = if args.follow {
            client.next_entry().await
        } else {
            client.next().await
        };
        let Some(reply) = next.map_err(CliError::Control)? else {
            break;
        };
        let ControlReply::Line(line) = control::check(reply)? else {
            return Err(CliError::UnexpectedResponse);
        };
        is_empty = false;
        let written = report::print_part(&if args.gateway.json {
            logs::json(&line)
        } else {
            logs::text(&line)
        })?;
        if written == Stdout::Closed {
            return Ok(());
        }
    }
    if args.follow {
        report::hint("the gateway has stopped");
    } else if is_empty && args.lines > 0 && !args.gateway.json {
        report::hint("no entries yet; servers start when they are first used");
    }
    Ok(())
}
