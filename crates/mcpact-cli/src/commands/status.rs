//! `mcpact status`: prints the status of a running gateway and its servers.

use std::path::Path;

use mcpact_gateway::control::{ControlReply, ControlRequest};
use mcpact_transport::private_file;

use super::{block_on, control};
use crate::args::StatusArgs;
use crate::error::{CliError, Exit};
use crate::report;

pub(super) fn run(args: &StatusArgs) -> Result<Exit, CliError> {
    if let Some(file) = &args.bundle {
        return bundle(args, file);
    }
    let request = ControlRequest::Status {
        server: args.server.clone(),
    };
    let reply = block_on(control::request(&args.gateway, &request))?;
    let ControlReply::Status(status) = reply else {
        return Err(CliError::UnexpectedResponse);
    };
    report::print(&match (args.gateway.json, &args.server) {
        (true, _) => report::json(&status),
        (false, None) => report::status::text(&status),
        (false, Some(_)) => report::status::server(&status),
    })?;
    Ok(Exit::Ok)
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
