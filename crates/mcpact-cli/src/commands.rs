//! Subcommands, one file each.

mod add;
pub(crate) mod approve;
mod bridge;
pub(crate) mod cache;
mod call;
mod check;
mod completions;
#[cfg(unix)]
pub(crate) mod control;
mod doctor;
mod edit;
mod everything;
mod explain;
#[cfg(target_os = "linux")]
mod guard;
mod http;
mod import;
mod install;
mod items;
mod last_approval;
#[cfg(unix)]
mod logs;
mod man;
mod pin;
mod policy;
mod probe;
#[cfg(unix)]
mod reload;
pub(crate) mod serve;
pub(crate) mod shutdown;
#[cfg(unix)]
mod status;
mod tasks;

use std::path::{Path, PathBuf};

use mcpact_config::{json_schema, nearest_config};
use mcpact_spec::Revision;

use crate::args::{Cli, Command};
use crate::error::{CliError, Exit};
use crate::report::{self, log};

/// Runs the selected command.
///
/// # Errors
/// The command failed. A refused negotiation is a result, not an error.
pub(crate) fn run(cli: &Cli) -> Result<Exit, CliError> {
    let filter = std::env::var(log::FILTER_VAR).ok();
    let filter = filter.or_else(|| default_filter(cli).map(str::to_owned));
    let format = std::env::var(log::FORMAT_VAR).ok();
    let format = log::format(cli.log_format, format.as_deref())?;
    log::init(cli.log.as_deref(), filter.as_deref(), cli.verbose, format)?;
    disable_core_dumps(&cli.command);
    raise_open_files(&cli.command);
    match &cli.command {
        Command::Serve(args) => serve::run(args),
        #[cfg(unix)]
        Command::Status(args) => status::run(args),
        #[cfg(unix)]
        Command::Logs(args) => logs::run(args),
        #[cfg(unix)]
        Command::Reload(args) => reload::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Everything(args) => everything::run(args),
        Command::Bridge(args) => bridge::run(args),
        Command::Tools(args) => items::tools(args),
        Command::Resources(args) => items::resources(args),
        Command::Prompts(args) => items::prompts(args),
        Command::Call(args) => call::call(args),
        Command::Read(args) => call::read(args),
        Command::Prompt(args) => call::prompt(args),
        Command::Complete(args) => call::complete(args),
        Command::Tasks(args) => tasks::run(args),
        Command::Check(args) => check::run(args),
        Command::Import(args) => import::run(args),
        Command::Install(args) => install::run(args),
        Command::Add(args) => add::run(args),
        Command::Remove(args) => add::remove(args),
        Command::Approve(args) => approve::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Schema => report::print(&json_schema()).map(|()| Exit::Ok),
        #[cfg(target_os = "linux")]
        Command::Guard(args) => guard::run(args),
    }
}

/// Returns the log filter of a command that reports failures of its server itself.
fn default_filter(cli: &Cli) -> Option<&'static str> {
    let is_client = matches!(
        cli.command,
        Command::Tools(_)
            | Command::Resources(_)
            | Command::Prompts(_)
            | Command::Call(_)
            | Command::Read(_)
            | Command::Prompt(_)
            | Command::Complete(_)
            | Command::Tasks(_)
            | Command::Probe(_)
            | Command::Doctor(_)
    );
    (is_client && cli.verbose == 0).then_some("off")
}

/// Disables core dumps for commands that hold secrets in memory.
fn disable_core_dumps(command: &Command) {
    #[cfg(unix)]
    if matches!(command, Command::Serve(_) | Command::Bridge(_))
        && let Err(error) = mcpact_transport::core_dumps::disable()
    {
        tracing::warn!(%error, "failed to disable core dumps; a crash may write secrets to disk");
    }
    #[cfg(not(unix))]
    let _ = command;
}

/// Raises the limit of open files for commands that serve many connections.
fn raise_open_files(command: &Command) {
    #[cfg(unix)]
    if matches!(command, Command::Serve(_) | Command::Bridge(_))
        && let Err(error) = mcpact_transport::open_files::raise()
    {
        tracing::debug!(%error, "failed to raise the limit of open files");
    }
    #[cfg(not(unix))]
    let _ = command;
}

/// Parses a revision.
fn revision(given: &str) -> Result<Revision, CliError> {
    let known = Revision::ALL.map(Revision::as_str);
    Revision::parse(given).ok_or_else(|| CliError::unknown("revision", given, "revisions", known))
}

/// Returns the given config, or else the nearest one.
fn config_file(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(file) = given {
        return Ok(file.to_owned());
    }
    let dir = std::env::current_dir().map_err(CliError::CurrentDir)?;
    nearest_config(&dir).ok_or(CliError::NoConfig)
}

/// Runs a future on a new multi-threaded runtime.
fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Runtime::new().map_err(CliError::Runtime)?;
    runtime.block_on(work)
}

/// Runs a future on the current thread: starting threads would take longer than most requests.
fn block_on_this_thread<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(work);
    // A prompt may still wait for a key.
    runtime.shutdown_background();
    outcome
}
