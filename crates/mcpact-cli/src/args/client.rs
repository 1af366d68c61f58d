//! Arguments of the commands that act as a client of one server.

use std::path::PathBuf;

use clap::Args;
use mcpact_spec::LogLevel;

use super::target::ConnectArgs;

/// Exit codes of a request.
macro_rules! exit_codes {
    () => {
        "
Exit codes:
  0  success
  1  unexpected error
  2  usage or config error
  3  authentication needed
  4  server unreachable or timed out
  5  not found, or the server returned an error
  6  negotiation refused"
    };
}

pub(super) const TOOLS_USAGE: &str = "\
mcpact tools [OPTIONS] TARGET [NAME]
       mcpact tools [OPTIONS] [NAME] -- COMMAND...";

pub(super) const RESOURCES_USAGE: &str = "\
mcpact resources [OPTIONS] TARGET [NAME]
       mcpact resources [OPTIONS] [NAME] -- COMMAND...";

pub(super) const PROMPTS_USAGE: &str = "\
mcpact prompts [OPTIONS] TARGET [NAME]
       mcpact prompts [OPTIONS] [NAME] -- COMMAND...";

pub(super) const CALL_USAGE: &str = "\
mcpact call [OPTIONS] TARGET TOOL [KEY=VALUE]...
       mcpact call [OPTIONS] TOOL [KEY=VALUE]... -- COMMAND...";

pub(super) const READ_USAGE: &str = "\
mcpact read [OPTIONS] TARGET URI
       mcpact read [OPTIONS] URI -- COMMAND...";

pub(super) const PROMPT_USAGE: &str = "\
mcpact prompt [OPTIONS] TARGET NAME [KEY=VALUE]...
       mcpact prompt [OPTIONS] NAME [KEY=VALUE]... -- COMMAND...";

pub(super) const COMPLETE_USAGE: &str = "\
mcpact complete [OPTIONS] TARGET REF KEY=START [KEY=VALUE]...
       mcpact complete [OPTIONS] REF KEY=START [KEY=VALUE]... -- COMMAND...";

pub(super) const TASKS_USAGE: &str = "\
mcpact tasks [OPTIONS] TARGET [ACTION] [ID]
       mcpact tasks [OPTIONS] [ACTION] [ID] -- COMMAND...";

pub(super) const TOOLS_DETAILS: &str = concat!(
    "\
Examples:
  # List the tools of a server of the nearest config
  $ mcpact tools files

  # Show the description and schema of one tool
  $ mcpact tools https://tickets.example/mcp create_ticket

  # A command comes last, after `--`
  $ mcpact tools create_ticket -- npx -y some-server
",
    exit_codes!()
);

pub(super) const RESOURCES_DETAILS: &str = concat!(
    "\
Examples:
  # List resources and resource templates
  $ mcpact resources files

  # Print JSON
  $ mcpact resources --json -- npx -y some-server
",
    exit_codes!()
);

pub(super) const PROMPTS_DETAILS: &str = concat!(
    "\
Examples:
  # List prompts
  $ mcpact prompts files

  # Show one prompt with its arguments
  $ mcpact prompts files summarize
",
    exit_codes!()
);

pub(super) const CALL_DETAILS: &str = concat!(
    "\
Arguments:
  key=value    Converted to the type of the tool's input schema
  key=@FILE    Content of a file, as a string
  key:=JSON    JSON value

Examples:
  # Call a tool of a server of the nearest config
  $ mcpact call files read_file path=notes.txt

  # A command comes last, after `--`
  $ mcpact call add a=1 b=2 -- npx -y some-server

  # Arguments as JSON, from stdin
  $ jq '{query: .title}' issue.json | mcpact call tickets search --args -

  # Answer the server's questions from a file
  $ mcpact call tickets create title=x --answer answer.json

Ctrl-C cancels the call at the server and exits with code 1.
",
    exit_codes!()
);

pub(super) const READ_DETAILS: &str = concat!(
    "\
Examples:
  # Print a resource
  $ mcpact read files file:///home/ada/notes.txt

  # Save a binary resource
  $ mcpact read files image://logo --out logo.png
",
    exit_codes!()
);

pub(super) const PROMPT_DETAILS: &str = concat!(
    "\
Examples:
  # Print the messages of a prompt
  $ mcpact prompt files summarize path=notes.txt
",
    exit_codes!()
);

pub(super) const COMPLETE_DETAILS: &str = concat!(
    "\
Examples:
  # Complete an argument of a prompt
  $ mcpact complete files prompt:summarize path=no

  # Complete a variable of a resource template; other variables as context
  $ mcpact complete files 'file:///{dir}/{name}' name=no dir=home
",
    exit_codes!()
);

pub(super) const TASKS_DETAILS: &str = concat!(
    "\
Examples:
  # List the tasks of a server
  $ mcpact tasks tickets

  # Wait for the result of a task
  $ mcpact tasks tickets result 786512e2

A stdio server ends with the command, and its tasks with it.
",
    exit_codes!()
);

/// Options of a client.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Timeout for connecting, and for each request without progress; 0 is none
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) timeout: u32,

    /// Request and show log messages of the server from this level
    #[arg(long, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log_level: Option<LogLevel>,

    /// Answer questions of the server with this JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,

    /// Offer this folder to the server as a root
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Vec<PathBuf>,
}

fn log_level(text: &str) -> Result<LogLevel, String> {
    LogLevel::parse(text).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::as_str);
        format!("possible values: {}", known.join(", "))
    })
}

/// Arguments of `mcpact tools`, `resources` and `prompts`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// URL, unix:PATH or server name, unless a command follows; then the name of
    /// one item to show
    #[arg(value_name = "WORD", num_args = 0..=2)]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `mcpact call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// URL, unix:PATH or server name, unless a command follows; then the tool and
    /// its arguments
    #[arg(value_name = "WORD", num_args = 0..)]
    pub(crate) words: Vec<String>,

    /// Arguments as a JSON object, `@FILE`, or `-` for stdin
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// Save the result: binary content, otherwise the text
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    /// Run the call as a task, if the server supports it
    #[arg(long)]
    pub(crate) task: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `mcpact read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// URL, unix:PATH or server name, unless a command follows; then the URI of
    /// the resource
    #[arg(value_name = "WORD", num_args = 0..=2)]
    pub(crate) words: Vec<String>,

    /// Save the content
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `mcpact prompt`.
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// URL, unix:PATH or server name, unless a command follows; then the prompt
    /// and its arguments
    #[arg(value_name = "WORD", num_args = 0..)]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `mcpact complete`.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// URL, unix:PATH or server name, unless a command follows; then
    /// `prompt:NAME` or a URI template, the argument to complete with its start,
    /// and the other arguments
    #[arg(value_name = "WORD", num_args = 0..)]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `mcpact tasks`.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// URL, unix:PATH or server name, unless a command follows; then `list`
    /// (default), or `get`, `cancel` or `result` and the ID of a task
    #[arg(value_name = "WORD", num_args = 0..=3)]
    pub(crate) words: Vec<String>,

    /// Save the result of a task
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
