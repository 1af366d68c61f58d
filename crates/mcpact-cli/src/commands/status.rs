//! `mcpact status`: prints the status of a running gateway and its servers.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use mcpact_gateway::control::{ControlReply, ControlRequest, Status};
use mcpact_transport::private_file;

use super::{block_on, control};
use crate::args::StatusArgs;
use crate::error::{CliError, Exit};
use crate::report::{self, Stdout};

pub(super) fn run(args: &StatusArgs) -> Result<Exit, CliError> {
    if let Some(file) = &args.bundle {
        return bundle(args, file);
    }
    match args.watch {
        true => block_on(watch(args))?,
        false => {
            let status = block_on(read(args))?;
            report::print(&text(args, &status))?;
        }
    }
    Ok(Exit::Ok)
}

async fn read(args: &StatusArgs) -> Result<Status, CliError> {
    let request = ControlRequest::Status {
        server: args.server.clone(),
    };
    match control::request(&args.gateway, &request).await? {
        ControlReply::Status(status) => Ok(*status),
        _ => Err(CliError::UnexpectedResponse),
    }
}

fn text(args: &StatusArgs, status: &Status) -> String {
    match (args.gateway.json, &args.server) {
        (true, _) => report::json(status),
        (false, None) => report::status::text(status),
        (false, Some(_)) => report::status::server(status),
    }
}

/// Prints the status until the reader closes stdout or the gateway stops. Ctrl-C ends the process.
async fn watch(args: &StatusArgs) -> Result<(), CliError> {
    /// Clears the terminal.
    const CLEAR: &str = "\u{1b}[H\u{1b}[2J";
    const INTERVAL: Duration = Duration::from_secs(1);
    let redraws = !args.gateway.json && std::io::stdout().is_terminal();
    let mut shown = None;
    loop {
        let status = read(args).await?;
        let facts = without_times(status.clone());
        let text = text(args, &status);
        let written = match redraws {
            true => report::print_part(&format!("{CLEAR}{text}"))?,
            false if shown.as_ref() == Some(&facts) => Stdout::Open,
            false if shown.is_some() && !args.gateway.json => {
                report::print_part(&format!("\n{text}"))?
            }
            false => report::print_part(&text)?,
        };
        if written == Stdout::Closed {
            return Ok(());
        }
        shown = Some(facts);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns the status without what changes by itself.
fn without_times(mut status: Status) -> Status {
    let gateway = &mut status.gateway;
    (gateway.uptime_seconds, gateway.state_seconds) = (0, 0);
    for server in &mut status.servers {
        server.retry_seconds = None;
        server.missing_seconds = None;
        if let Some(error) = &mut server.last_error {
            error.seconds_ago = 0;
        }
        for instance in &mut server.instances {
            (instance.state_seconds, instance.uptime_seconds) = (0, 0);
        }
    }
    status
}

/// Writes a diagnostic bundle.
fn bundle(args: &StatusArgs, file: &Path) -> Result<Exit, CliError> {
    let reply = block_on(control::request(&args.gateway, &ControlRequest::Bundle {}))?;
    let ControlReply::Bundle(bundle) = reply else {
        return Err(CliError::UnexpectedResponse);
    };
    let text = report::json(&bundle);
    if file == Path::new("-") {
        report::print(&text)?;
        return Ok(Exit::Ok);
    }
    // Server output may contain secrets.
    private_file::replace_own(file, text.as_bytes()).map_err(|source| CliError::Write {
        path: file.to_owned(),
        source,
    })?;
    report::hint(&format!(
        "review `{}` before you share it: config secrets are masked, other server output is not",
        file.display()
    ));
    Ok(Exit::Ok)
}
