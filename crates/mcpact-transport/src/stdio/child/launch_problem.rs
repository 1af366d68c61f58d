//! Problems that prevent a program from starting, detected before the start.
//!
//! The system reports `No such file or directory` alike for a missing program, working directory and script
//! interpreter.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Problem that prevents a program from starting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchProblem {
    /// The program does not exist.
    #[error("program not found")]
    Missing,
    /// The path is a directory.
    #[error("`{0}` is a folder")]
    Folder(String),
    /// The file is not executable.
    #[error("`{0}` is not executable")]
    Unexecutable(String),
    /// The interpreter of a script does not exist.
    #[error("the interpreter `{interpreter}` of `{script}` does not exist")]
    Interpreter {
        /// Path of the script.
        script: String,
        /// Path of the interpreter.
        interpreter: String,
    },
    /// The working directory does not exist.
    #[error("the working directory `{0}` does not exist")]
    Cwd(String),
    /// The file has changed since the approval of the command was checked.
    #[error("`{0}` was changed while the command was started")]
    Exchanged(String),
}

impl LaunchProblem {
    /// Returns the hint for the user.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Missing => {
                "install it, or use its full path: it is looked up in the PATH of mcpact"
            }
            Self::Folder(_) => "use the path of the program inside it",
            Self::Unexecutable(_) => {
                "make it executable with `chmod +x`, or start what runs it, such as `python3`, with it as an \
                 argument"
            }
            Self::Interpreter { .. } => "install it, or correct the first line of the script",
            Self::Cwd(_) => "create it or correct `cwd`",
            Self::Exchanged(_) => "run `mcpact approve` to review the command as it is now",
        }
    }

    /// Returns the problem inside an error.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the problem of a program that is looked up in these paths, in this order; `None` if the system would
    /// start one.
    #[must_use]
    pub fn at(places: &[PathBuf]) -> Option<Self> {
        let found = places.iter().filter_map(|place| {
            let file = place.metadata().ok()?;
            Some((place, file))
        });
        let mut launch_problem = None;
        for (place, file) in found {
            match Self::in_file(place, &file) {
                None => return interpreter(place),
                first => launch_problem = launch_problem.or(first),
            }
        }
        Some(launch_problem.unwrap_or(Self::Missing))
    }

    fn in_file(place: &Path, file: &Metadata) -> Option<Self> {
        let shown = || place.display().to_string();
        if file.is_dir() {
            return Some(Self::Folder(shown()));
        }
        (!is_executable(file)).then(|| Self::Unexecutable(shown()))
    }
}

/// Returns the missing interpreter of a script.
fn interpreter(script: &Path) -> Option<LaunchProblem> {
    /// Systems read at most this much of the first line.
    const LONGEST: u64 = 256;
    let mut start = Vec::new();
    let file = File::open(script).ok()?;
    file.take(LONGEST).read_to_end(&mut start).ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = std::str::from_utf8(line)
        .ok()?
        .trim_start_matches([' ', '\t']);
    let interpreter = line
        .split([' ', '\t'])
        .next()
        .filter(|path| path.starts_with('/'))?;
    let is_there = Path::new(interpreter).exists();
    (!is_there).then(|| LaunchProblem::Interpreter {
        script: script.display().to_string(),
        // A Windows line ending is part of the path.
        interpreter: interpreter.escape_debug().to_string(),
    })
}

/// Returns whether a file is an executable program.
#[cfg(unix)]
#[must_use]
pub fn is_executable(file: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.is_file() && file.permissions().mode() & 0o111 != 0
}

/// Returns whether a file may be an executable program.
#[cfg(not(unix))]
#[must_use]
pub fn is_executable(file: &Metadata) -> bool {
    file.is_file()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn problems_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let good = file("good", "#!/bin/sh\n", 0o700);
        let plain = file("plain", "#!/bin/sh\n", 0o600);
        let lost = file("lost", "#! /no/such/sh -e\n", 0o700);
        let windows = file("windows", "#!/bin/sh\r\necho\r\n", 0o700);
        let nowhere = folder.path().join("nowhere");
        let inside = folder.path().to_owned();
        let shown = |path: &Path| path.display().to_string();
        let needs = |script: &Path, interpreter: &str| LaunchProblem::Interpreter {
            script: shown(script),
            interpreter: interpreter.to_owned(),
        };
        let cells = [
            (vec![], Some(LaunchProblem::Missing)),
            (vec![&nowhere], Some(LaunchProblem::Missing)),
            (vec![&inside], Some(LaunchProblem::Folder(shown(&inside)))),
            (
                vec![&plain],
                Some(LaunchProblem::Unexecutable(shown(&plain))),
            ),
            (vec![&lost], Some(needs(&lost, "/no/such/sh"))),
            (vec![&windows], Some(needs(&windows, "/bin/sh\\r"))),
            (vec![&good], None),
            (vec![&nowhere, &plain, &good], None),
            (
                vec![&plain, &nowhere],
                Some(LaunchProblem::Unexecutable(shown(&plain))),
            ),
        ];
        for (places, expected) in cells {
            let places: Vec<PathBuf> = places.into_iter().cloned().collect();
            assert_eq!(LaunchProblem::at(&places), expected, "{places:?}");
        }
    }
}
