//! What to start, and how.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::guard::Guard;
use super::masks::Masks;
use super::obstacle::Obstacle;
use super::process::{Child, Role};
use super::tail::{Scribe, Tail};
use crate::error::DoorError;

/// The variables that a child inherits; of all others it sees none that is not given to it.
pub const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TERM"];

/// The variable that tells a child which gateways have led to it.
pub const LINEAGE: &str = "MCPACT_VIA";

/// How much of the end of standard error is kept for owners that have no opinion: 64 KiB.
pub const DEFAULT_STDERR_LIMIT: usize = 64 * 1024;

/// A program to start. There is no shell: every argument reaches the program as it is.
///
/// Its `Debug` shows neither arguments nor values of variables, which may be secrets.
#[derive(Clone)]
pub struct ChildCommand {
    /// What the log calls it.
    pub name: String,
    /// A path, or a name that is looked up in the child's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its variables besides those of [`INHERITED`], which they replace.
    pub env: BTreeMap<OsString, OsString>,
    /// What [`LINEAGE`] says; without it what it says here, too. It is different each time, and so none of the variables
    /// that make the child what it is.
    pub lineage: Option<Box<str>>,
    /// What must not be seen in its log, beside the values of its variables and of options such as
    /// `--api-key`.
    pub secrets: Vec<String>,
    /// Where it runs; `None` means here.
    pub cwd: Option<PathBuf>,
    /// How many bytes of the end of its standard error are kept.
    pub stderr_limit: usize,
    /// Who ends it should this process be killed; `None` leaves that to the child itself.
    pub guard: Option<Guard>,
    /// Who is given every line of its log.
    pub scribe: Option<Scribe>,
}

impl ChildCommand {
    /// A program without arguments, named after itself.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self {
            name: program.to_string_lossy().into_owned(),
            program,
            args: Vec::new(),
            env: BTreeMap::new(),
            lineage: None,
            secrets: Vec::new(),
            cwd: None,
            stderr_limit: DEFAULT_STDERR_LIMIT,
            guard: None,
            scribe: None,
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

    /// Puts it under guard; see [`Guard`].
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Gives every line of its log to somebody.
    #[must_use]
    pub fn with_scribe(mut self, scribe: Scribe) -> Self {
        self.scribe = Some(scribe);
        self
    }

    /// Starts it. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`DoorError::Spawn`]: there is no such program or directory, or the system refuses.
    pub fn spawn(&self) -> Result<Child, DoorError> {
        self.start().map_err(|source| DoorError::Spawn {
            program: self.program.to_string_lossy().into_owned(),
            source,
        })
    }

    /// Where the system would look for the program.
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

    fn lineage(&self) -> Option<OsString> {
        let own = self.lineage.as_deref().map(OsString::from);
        own.or_else(|| std::env::var_os(LINEAGE))
    }

    fn start(&self) -> io::Result<Child> {
        let cwd = self.cwd.as_ref().filter(|cwd| !cwd.is_dir());
        let no_cwd = cwd.map(|cwd| Obstacle::Cwd(cwd.display().to_string()));
        // A guard would be started all the same, and only then find out.
        if let Some(obstacle) = no_cwd.or_else(|| Obstacle::at(&self.places())) {
            return Err(io::Error::other(obstacle));
        }
        let (mut command, leader) = match &self.guard {
            None => (Command::new(&self.program), Role::Program),
            Some(guard) => guard.command(&self.program),
        };
        command
            .args(&self.args)
            .env_clear()
            .envs(
                INHERITED
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .envs(&self.env)
            .envs(self.lineage().map(|lineage| (LINEAGE, lineage)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        let tail = Tail::new(self.stderr_limit, Masks::of(self), self.scribe.clone());
        Child::start(&self.name, command, leader, tail)
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
