//! `mcpact completions`: prints the completion script of a shell.

use clap::{Command, CommandFactory as _};

use crate::args::{Cli, CompletionsArgs};
use crate::error::{CliError, Exit};
use crate::report;

pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible_commands(), "mcpact", &mut script);
    report::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// Returns the program without internal commands, which clap would complete as well.
fn visible_commands() -> Command {
    let program = Cli::command();
    let visible = program.get_subcommands().filter(|one| !one.is_hide_set());
    Command::new("mcpact")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(program.get_arguments())
        .subcommands(visible)
}
