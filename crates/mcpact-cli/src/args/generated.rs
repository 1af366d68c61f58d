//! Arguments of the commands that print files generated from the command line definition.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

pub(super) const COMPLETIONS_DETAILS: &str = "\
Examples:
  # Bash
  $ mcpact completions bash > ~/.local/share/bash-completion/completions/mcpact

  # Zsh, with ~/.zfunc in `fpath`
  $ mcpact completions zsh > ~/.zfunc/_mcpact

  # Fish
  $ mcpact completions fish > ~/.config/fish/completions/mcpact.fish

Exit codes:
  0  success
  1  unexpected error
  2  usage error";

/// Arguments of `mcpact completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell: bash, zsh, fish, powershell or elvish
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub(crate) shell: Shell,
}

pub(super) const MAN_DETAILS: &str = "\
Examples:
  # Read the main page
  $ mcpact man | man -l -

  # Install the pages of all commands
  $ mcpact man --out ~/.local/share/man/man1

Exit codes:
  0  success
  1  unexpected error
  2  usage error";

/// Arguments of `mcpact man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per command to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
