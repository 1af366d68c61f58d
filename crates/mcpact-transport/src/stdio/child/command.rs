//! Command line, environment and options of a child process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::{fmt, io};

use tokio::process::Command;

use super::guard::{Guard, pass_args};
use super::launch_problem::LaunchProblem;
use super::masks::Masks;
use super::process::{Child, Role};
use super::tail::{StderrSink, Tail};
use crate::error::TransportError;

/// Environment variables that a child inherits; it sees no others unless they are set for it.
pub const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TERM"];

/// Environment variable with the gateways on the path to a child.
pub const VIA_VARIABLE: &str = "MCPACT_VIA";

/// Default number of bytes kept from the end of standard error: 64 KiB.
pub const DEFAULT_STDERR_LIMIT: usize = 64 * 1024;

/// A program to start. No shell is involved: arguments reach the program unchanged.
///
/// `Debug` shows neither arguments nor values of variables, which may be secrets.
#[derive(Clone)]
pub struct ChildCommand {
    /// Name in the log.
    pub name: String,
    /// A path, or a name that is looked up in the child's `PATH`.
    pub program: OsString,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Environment variables besides [`INHERITED`]; they override inherited ones.
    pub env: BTreeMap<OsString, OsString>,
    /// Value of [`VIA_VARIABLE`]; if `None`, the child inherits the value of this process. It changes with every start, so
    /// it is not part of `env`, which identifies the child.
    pub via: Option<Box<str>>,
    /// Values to mask in the log, besides the values of variables and of options such as `--api-key`.
    pub secrets: Vec<String>,
    /// Working directory; `None` is the current one.
    pub cwd: Option<PathBuf>,
    /// Number of bytes kept from the end of standard error.
    pub stderr_limit: usize,
    /// Guard that kills the child if this process is killed; `None` runs it without one.
    pub guard: Option<Guard>,
    /// Receiver of every line of standard error.
    pub stderr_sink: Option<StderrSink>,
    /// Check right before and right after the start.
    pub start_check: Option<StartCheck>,
}

/// Check of the files that a child runs. If it fails, the child is not started, or killed.
#[derive(Clone)]
pub struct StartCheck(pub Arc<dyn Fn() -> io::Result<()> + Send + Sync>);

impl StartCheck {
    /// Runs the check.
    ///
    /// # Errors
    /// A file differs from what was approved, or cannot be read.
    pub fn run(&self) -> io::Result<()> {
        (self.0)()
    }
}

impl fmt::Debug for StartCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartCheck(..)")
    }
}

impl ChildCommand {
    /// Creates a command without arguments, named after the program.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self {
            name: program.to_string_lossy().into_owned(),
            program,
            args: Vec::new(),
            env: BTreeMap::new(),
            via: None,
            secrets: Vec::new(),
            cwd: None,
            stderr_limit: DEFAULT_STDERR_LIMIT,
            guard: None,
            stderr_sink: None,
            start_check: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Runs the child under a guard; see [`Guard`].
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Passes every line of standard error to `stderr_sink`.
    #[must_use]
    pub fn with_stderr_sink(mut self, stderr_sink: StderrSink) -> Self {
        self.stderr_sink = Some(stderr_sink);
        self
    }

    /// Starts the child. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`TransportError::Spawn`]: the program or directory does not exist, or the system refuses.
    /// [`TransportError::Sandbox`]: the system cannot enforce the sandbox.
    pub fn spawn(&self) -> Result<Child, TransportError> {
        if let Some(problem) = self.guard.as_ref().and_then(Guard::sandbox_problem) {
            return Err(TransportError::Sandbox(problem));
        }
        self.start().map_err(|source| TransportError::Spawn {
            program: self.program.to_string_lossy().into_owned(),
            source,
        })
    }

    /// Paths that the system would try for the program.
    fn places(&self) -> Vec<PathBuf> {
        let folder = |folder: PathBuf| match &self.cwd {
            Some(cwd) => cwd.join(folder),
            None => folder,
        };
        let program = Path::new(&self.program);
        if program.components().count() > 1 || program.has_root() {
            return vec![folder(program.to_owned())];
        }
        let path = self.env.get(OsStr::new("PATH")).cloned();
        let path = path
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        let places = std::env::split_paths(&path);
        places.map(|place| folder(place).join(program)).collect()
    }

    fn via(&self) -> Option<OsString> {
        let own = self.via.as_deref().map(OsString::from);
        own.or_else(|| std::env::var_os(VIA_VARIABLE))
    }

    /// Returns the reason why the program cannot be started, as far as the file system shows it.
    #[must_use]
    pub fn launch_problem(&self) -> Option<LaunchProblem> {
        let cwd = self.cwd.as_ref().filter(|cwd| !cwd.is_dir());
        let no_cwd = cwd.map(|cwd| LaunchProblem::Cwd(cwd.display().to_string()));
        no_cwd.or_else(|| LaunchProblem::at(&self.places()))
    }

    fn start(&self) -> io::Result<Child> {
        // Checked here because a guard would start anyway and fail only later.
        if let Some(launch_problem) = self.launch_problem() {
            return Err(io::Error::other(launch_problem));
        }
        self.start_check.as_ref().map_or(Ok(()), StartCheck::run)?;
        let (mut command, leader) = match &self.guard {
            None => (Command::new(&self.program), Role::Program),
            Some(guard) => guard.command(&self.program),
        };
        command
            .env_clear()
            .envs(
                INHERITED
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .envs(&self.env)
            .envs(self.via().map(|via| (VIA_VARIABLE, via)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        match leader {
            Role::Program => {
                command.args(&self.args);
            }
            Role::Guard => pass_args(&mut command, &self.args),
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        let tail = Tail::new(self.stderr_limit, Masks::of(self), self.stderr_sink.clone());
        let child = Child::start(&self.name, command, leader, tail)?;
        // Dropping the child kills it.
        self.start_check.as_ref().map_or(Ok(()), StartCheck::run)?;
        Ok(child)
    }
}

impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<&OsStr> = self.env.keys().map(OsString::as_os_str).collect();
        f.debug_struct("ChildCommand")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &variables)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::ChildCommand;

    #[test]
    fn debug_shows_no_secret() {
        let command = ChildCommand::new("server")
            .with_args(["--token=hunter2"])
            .with_env("TOKEN", "hunter3");
        let shown = format!("{command:?}");
        assert!(shown.contains("TOKEN") && shown.contains("server"));
        assert!(!shown.contains("hunter"), "{shown}");
    }
}
