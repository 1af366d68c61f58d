//! What a config may ask of the machine that it is read on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcpact_transport::stdio::child::Obstacle;

/// What a config may ask of the machine that it is read on.
pub trait Surroundings {
    /// The value of a variable, if it is set to a text.
    fn variable(&self, name: &str) -> Option<String>;

    /// The value of a variable, if it is set, whether it is a text or not.
    fn raw_variable(&self, name: &str) -> Option<OsString> {
        self.variable(name).map(OsString::from)
    }

    /// The folder that the config is about: where it lies, or the folder above if it lies in one such as
    /// `.vscode`.
    fn folder(&self) -> String;

    /// The path that a text of the config means: what is relative starts at its folder, wherever the gateway was
    /// started.
    fn path(&self, written: &str) -> PathBuf {
        Path::new(&self.folder()).join(written)
    }

    /// The text of a small file, without a byte order mark.
    ///
    /// # Errors
    /// It cannot be read; the text says why.
    fn file(&self, path: &str) -> Result<String, String>;

    /// Whether there is such a folder.
    fn has_folder(&self, path: &str) -> bool;

    /// Whether there is such a file or folder.
    fn has_place(&self, path: &str) -> bool;

    /// The file or folder at this path, or a folder on the way to it or to where it really lies, that everybody may
    /// write.
    fn writable_by_all(&self, path: &str) -> Option<String>;

    /// What is known about a program.
    fn program(&self, sought: &Sought<'_>) -> ProgramFacts;
}

/// A program, and what decides where a child finds it.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Its path or name.
    pub program: &'a str,
    /// The `PATH` that the child is given, if it is not that of the gateway.
    pub path: Option<&'a str>,
    /// Where the child runs, if that is said; what is relative starts there.
    pub folder: Option<&'a str>,
}

impl<'a> Sought<'a> {
    /// A program as the gateway itself finds it.
    #[must_use]
    pub const fn here(program: &'a str) -> Self {
        Self {
            program,
            path: None,
            folder: None,
        }
    }
}

/// What is known about a program before it is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Where it was found, if it was.
    pub path: Option<String>,
    /// What keeps it from being started, if it was not found or is none.
    pub obstacle: Option<Obstacle>,
    /// Where it really lies, whatever links lead there.
    pub real: Option<String>,
    /// The folder that it was looked for from, if that was said.
    pub folder: Option<String>,
    /// The file, or a folder on the way to it, that everybody may write.
    pub writable_by_all: Option<String>,
}
