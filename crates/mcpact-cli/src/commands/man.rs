//! `mcpact man`: prints the main manual page, or writes the pages of all commands.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::error::{CliError, Exit};
use crate::report;

pub(super) fn run(args: &ManArgs) -> Result<Exit, CliError> {
    let mut program = Cli::command();
    program.build();
    match &args.out {
        None => report::print(&page(program)?)?,
        Some(folder) => {
            fs::create_dir_all(folder).map_err(failed(folder))?;
            let count = write_pages(program, folder)?;
            let pages = report::count(count, "page");
            report::print(&format!("{}: {pages}\n", folder.display()))?;
        }
    }
    Ok(Exit::Ok)
}

/// Renders the page of one command.
fn page(command: Command) -> Result<String, CliError> {
    let mut page = Vec::new();
    let rendered = Man::new(command).render(&mut page);
    rendered.map_err(CliError::Output)?;
    // Examples and tables keep their lines.
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA\n", ".SH DETAILS\n.nf\n"))
}

/// Writes the page of a command and those of its subcommands; returns their number.
fn write_pages(command: Command, folder: &Path) -> Result<usize, CliError> {
    let mut count = 1;
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    for inner in visible.cloned() {
        count += write_pages(inner, folder)?;
    }
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    let page = page(command)?;
    let written = fs::write(&file, page).inspect_err(|_| {
        // A page that was cut off by a full disk is of no use.
        let _ = fs::remove_file(&file);
    });
    written.map_err(failed(&file))?;
    Ok(count)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Write { path, source }
}
