//! The machine that a config is read on: its variables, files and programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mcpact_transport::stdio::child::{Obstacle, is_executable};

use super::source::{Digest, without_mark};
use super::surroundings::{ProgramFacts, Sought, Surroundings};

/// No secret and no list of variables is longer.
const MOST_BYTES: u64 = 64 << 10;

/// Folders inside of a project that belong to a client.
const CLIENT_FOLDERS: &[&str] = &[
    ".vscode",
    ".cursor",
    ".codex",
    ".gemini",
    ".zed",
    ".roo",
    ".kiro",
    ".claude",
    ".amp",
    ".continue",
];

/// This machine, seen from the folder of a config.
#[derive(Clone, Debug)]
pub struct Machine {
    folder: PathBuf,
    /// The files that were asked for, as they were read.
    asked: RefCell<BTreeMap<PathBuf, Option<Digest>>>,
}

impl Machine {
    /// This machine, for the config in a file.
    ///
    /// # Errors
    /// The current folder is gone.
    pub fn around(config: &Path) -> io::Result<Self> {
        let whole = std::path::absolute(config)?;
        let mut folder = whole.parent().unwrap_or(&whole).to_owned();
        let is_client = |name: &OsStr| CLIENT_FOLDERS.iter().any(|folder| name == *folder);
        if folder.ends_with(".continue/mcpServers") {
            folder.pop();
        }
        if folder.file_name().is_some_and(is_client) {
            folder.pop();
        }
        Ok(Self::at(folder))
    }

    /// This machine, seen from a folder.
    #[must_use]
    pub const fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            asked: RefCell::new(BTreeMap::new()),
        }
    }

    /// The files whose text was asked for, whether they are there or not.
    pub(super) fn into_asked(self) -> BTreeMap<PathBuf, Option<Digest>> {
        self.asked.into_inner()
    }
}

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn raw_variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn folder(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let path = self.path(path);
        let text = read_small(&path);
        let digest = text.as_deref().ok().map(Digest::of);
        self.asked.borrow_mut().insert(path, digest);
        text.map(without_mark).map_err(|error| error.to_string())
    }

    fn has_folder(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn has_place(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn writable_by_all(&self, path: &str) -> Option<String> {
        let path = std::path::absolute(path).ok()?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        open_way(&path, &real)
    }

    fn program(&self, sought: &Sought<'_>) -> ProgramFacts {
        let obstacle = Obstacle::at(&places(sought));
        let folder = sought.folder.map(str::to_owned);
        let Some(path) = self::program(sought) else {
            return ProgramFacts {
                obstacle,
                folder,
                ..ProgramFacts::default()
            };
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        ProgramFacts {
            obstacle,
            folder,
            writable_by_all: open_way(&path, &real),
            path: Some(path.to_string_lossy().into_owned()),
            real: Some(real.to_string_lossy().into_owned()),
        }
    }
}

/// What everybody may write on the way to a file, or to where it really lies.
fn open_way(path: &Path, real: &Path) -> Option<String> {
    let mut ways = path.ancestors().chain(real.ancestors());
    let open = ways.find(|way| is_writable_by_all(way))?;
    Some(open.to_string_lossy().into_owned())
}

/// Text of a file that a config takes values from.
///
/// # Errors
/// It cannot be read, is no plain file, too long, or no UTF-8.
pub fn read_small(path: &Path) -> io::Result<String> {
    read_text(path, MOST_BYTES)
}

/// The text of a file that is no longer than it may be.
pub(super) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_file = || io::Error::other("it is no plain file");
    // A pipe would be waited for without end when it is opened.
    if !std::fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(no_file());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no UTF-8 text"))
}

/// The file of a program on this machine, which a child would start: the path itself, or the first of its name in
/// the folders of the child's `PATH`.
pub(super) fn program(sought: &Sought<'_>) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.metadata().is_ok_and(|file| is_executable(&file));
    places(sought).into_iter().find(is_there)
}

/// Where a program may lie.
fn places(sought: &Sought<'_>) -> Vec<PathBuf> {
    let whole = |path: PathBuf| {
        let path = Path::new(sought.folder.unwrap_or_default()).join(path);
        std::path::absolute(path).ok()
    };
    if sought.program.contains('/') {
        return whole(PathBuf::from(sought.program)).into_iter().collect();
    }
    let given = sought.path.map(OsString::from);
    let folders = given.or_else(|| std::env::var_os("PATH"));
    let folders = folders.unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    folders
        .filter_map(|folder| whole(folder.join(sought.program)))
        .collect()
}

/// Whether everybody may change a file, or put another one into a folder. In a folder with the sticky
/// bit, such as `/tmp`, nobody can replace the files of others.
#[cfg(unix)]
pub(crate) fn is_writable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| {
        let mode = found.permissions().mode();
        mode & 0o002 != 0 && !(found.is_dir() && mode & 0o1000 != 0)
    })
}

#[cfg(not(unix))]
pub(crate) fn is_writable_by_all(_: &Path) -> bool {
    false
}
