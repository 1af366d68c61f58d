//! Access to the host on which a config is read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcpact_transport::stdio::child::LaunchProblem;

/// Access to the host on which a config is read: variables, files and programs.
pub trait HostEnvironment {
    /// Value of an environment variable, if it is set and valid UTF-8.
    fn variable(&self, name: &str) -> Option<String>;

    /// Value of an environment variable, if it is set.
    fn raw_variable(&self, name: &str) -> Option<OsString> {
        self.variable(name).map(OsString::from)
    }

    /// Folder of the project: the folder of the config, or its parent if the config is in a client folder such as
    /// `.vscode`.
    fn folder(&self) -> String;

    /// Resolves a path of the config against the project folder.
    fn path(&self, written: &str) -> PathBuf {
        Path::new(&self.folder()).join(written)
    }

    /// Contents of a small file, without byte order mark.
    ///
    /// # Errors
    /// The reason why the file cannot be read.
    fn file(&self, path: &str) -> Result<String, String>;

    /// Returns whether the path is a folder.
    fn has_folder(&self, path: &str) -> bool;

    /// Returns whether the path exists.
    fn exists(&self, path: &str) -> bool;

    /// World-writable file or folder on the path, or on the path after resolving links.
    fn writable_by_all(&self, path: &str) -> Option<String>;

    /// Looks up a program.
    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts;
}

/// A program to look up, and the environment of the child that starts it.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLookup<'a> {
    /// Path or name of the program.
    pub program: &'a str,
    /// `PATH` of the child, if it differs from that of the gateway.
    pub path: Option<&'a str>,
    /// Working directory of the child, if configured. Relative paths start here.
    pub folder: Option<&'a str>,
}

impl<'a> ProgramLookup<'a> {
    /// Looks up a program in the gateway's own environment.
    #[must_use]
    pub const fn here(program: &'a str) -> Self {
        Self {
            program,
            path: None,
            folder: None,
        }
    }
}

/// Result of looking up a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Path of the program, if found.
    pub path: Option<String>,
    /// Reason why the program cannot be started.
    pub launch_problem: Option<LaunchProblem>,
    /// Path with all links resolved.
    pub real: Option<String>,
    /// Working directory used for the lookup.
    pub folder: Option<String>,
    /// World-writable file or folder on the path.
    pub writable_by_all: Option<String>,
}
