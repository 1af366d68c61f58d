//! One file per verb.

mod approve;
mod bridge;
mod check;
#[cfg(unix)]
mod control;
mod everything;
mod explain;
mod front;
#[cfg(target_os = "linux")]
mod guard;
mod import;
mod known;
#[cfg(unix)]
mod logs;
#[cfg(unix)]
mod reload;
mod schema;
mod serve;
#[cfg(unix)]
mod status;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::log;

/// Runs what was asked for.
///
/// # Errors
/// The command could not do its work; a negotiation that was refused is no error.
pub(crate) fn run(cli: &Cli) -> Result<Exit, CliError> {
    let told = std::env::var(log::VARIABLE).ok();
    let format = log::format(cli.log_format, std::env::var(log::FORMAT).ok().as_deref())?;
    log::begin(cli.log.as_deref(), told.as_deref(), cli.verbose, format)?;
    keep_secrets(&cli.command);
    match &cli.command {
        Command::Serve(args) => serve::run(args),
        #[cfg(unix)]
        Command::Status(args) => status::run(args),
        #[cfg(unix)]
        Command::Logs(args) => logs::run(args),
        #[cfg(unix)]
        Command::Reload(args) => reload::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Everything(args) => everything::run(args),
        Command::Bridge(args) => bridge::run(args),
        Command::Check(args) => check::run(args),
        Command::Import(args) => import::run(args),
        Command::Approve(args) => approve::run(args),
        Command::Schema => schema::run(),
        #[cfg(target_os = "linux")]
        Command::Guard(args) => guard::run(args),
    }
}

/// Commands that hold secrets of others do not leave them on the disk when they crash.
fn keep_secrets(command: &Command) {
    #[cfg(unix)]
    if matches!(command, Command::Serve(_) | Command::Bridge(_))
        && let Err(error) = mcpact_transport::cores::leave_none()
    {
        tracing::warn!(%error, "a crash would leave secrets on the disk");
    }
    #[cfg(not(unix))]
    let _ = command;
}
