//! The local host: variables, files and programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mcpact_transport::stdio::child::{LaunchProblem, is_executable};

use super::source::{Digest, without_mark};

/// Maximum size of a file that holds a secret or variables.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum size of `/etc/passwd`.
const MAX_PASSWD_BYTES: u64 = 16 << 20;

/// Folders in a project that belong to a client.
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

/// The local host, with paths relative to the folder of a config.
#[derive(Clone, Debug)]
pub struct LocalHost {
    folder: PathBuf,
    /// Files that were read, with their digests.
    read_files: RefCell<BTreeMap<PathBuf, Option<Digest>>>,
}

impl LocalHost {
    /// Creates the environment of a config file.
    ///
    /// # Errors
    /// The current directory does not exist.
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

    /// Creates an environment with this project folder.
    #[must_use]
    pub const fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            read_files: RefCell::new(BTreeMap::new()),
        }
    }

    /// Files that the config refers to, including missing ones.
    pub(super) fn into_read_files(self) -> BTreeMap<PathBuf, Option<Digest>> {
        self.read_files.into_inner()
    }
}

impl HostEnvironment for LocalHost {
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
        self.read_files.borrow_mut().insert(path, digest);
        text.map(without_mark).map_err(|error| error.to_string())
    }

    fn has_folder(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn readable_by_all(&self, path: &Path) -> bool {
        is_readable_by_all(path)
    }

    fn writable_by_all(&self, path: &str) -> Option<String> {
        let path = std::path::absolute(path).ok()?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        world_writable_entry(&path, &real)
    }

    fn user_id(&self, user: &str) -> Option<u32> {
        user_id(user)
    }

    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts {
        let launch_problem = LaunchProblem::at(&candidates(lookup));
        let folder = lookup.folder.map(str::to_owned);
        let Some(path) = self::program(lookup) else {
            return ProgramFacts {
                launch_problem,
                folder,
                ..ProgramFacts::default()
            };
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        ProgramFacts {
            launch_problem,
            folder,
            writable_by_all: world_writable_entry(&path, &real),
            path: Some(path.to_string_lossy().into_owned()),
            real: Some(real.to_string_lossy().into_owned()),
        }
    }
}

/// Returns the id of a user, given by id or by name in `/etc/passwd`. Directory services are not asked.
#[must_use]
pub fn user_id(user: &str) -> Option<u32> {
    let named = |line: &str| {
        let mut fields = line.split(':');
        let is_named = fields.next() == Some(user);
        fields.nth(1).filter(|_| is_named)?.parse().ok()
    };
    let in_passwd = || {
        let passwd = read_text(Path::new("/etc/passwd"), MAX_PASSWD_BYTES).ok()?;
        passwd.lines().find_map(named)
    };
    user.parse().ok().or_else(in_passwd)
}

/// First world-writable entry on a path or on its resolved form.
fn world_writable_entry(path: &Path, real: &Path) -> Option<String> {
    let mut ways = path.ancestors().chain(real.ancestors());
    let open = ways.find(|way| is_writable_by_all(way))?;
    Some(open.to_string_lossy().into_owned())
}

/// Reads a file that a config takes values from.
///
/// # Errors
/// The file cannot be read, is not a regular file, is too large, or is not UTF-8.
pub fn read_small(path: &Path) -> io::Result<String> {
    read_text(path, MAX_BYTES)
}

/// Reads a text file of limited size.
pub(super) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_file = || io::Error::other("not a regular file");
    // Checked before opening: opening a FIFO blocks.
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
        return Err(io::Error::other(format!("larger than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not valid UTF-8"))
}

/// Finds the executable a child would start: the path itself, or the first match in the child's `PATH`.
pub(super) fn program(lookup: &ProgramLookup<'_>) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.metadata().is_ok_and(|file| is_executable(&file));
    candidates(lookup).into_iter().find(is_there)
}

/// Candidate paths of a program.
fn candidates(lookup: &ProgramLookup<'_>) -> Vec<PathBuf> {
    let whole = |path: PathBuf| {
        let path = Path::new(lookup.folder.unwrap_or_default()).join(path);
        std::path::absolute(path).ok()
    };
    if lookup.program.contains('/') {
        return whole(PathBuf::from(lookup.program)).into_iter().collect();
    }
    let given = lookup.path.map(OsString::from);
    let folders = given.or_else(|| std::env::var_os("PATH"));
    let folders = folders.unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    folders
        .filter_map(|folder| whole(folder.join(lookup.program)))
        .collect()
}

/// Returns whether the mode of a file lets every user read it.
#[cfg(unix)]
#[must_use]
pub fn is_readable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// Returns whether the mode of a file lets every user read it.
#[cfg(not(unix))]
#[must_use]
pub fn is_readable_by_all(_: &Path) -> bool {
    false
}

/// Warning and hint for a private key that every user can read.
#[must_use]
pub fn readable_key_warning(key: &Path) -> (String, String) {
    let key = key.display();
    (
        format!("every user of this machine can read the private key `{key}`"),
        format!("run `chmod 600 {key}`"),
    )
}

/// Returns whether others may modify a file, or replace entries of a folder. Folders with the sticky bit, such as
/// `/tmp`, are safe.
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

/// A host on which every variable and file has a value.
pub(super) struct Placeholders<'a>(pub(super) &'a LocalHost);

/// Value of missing variables and files. It is valid as a URL, as a token and as the line of an `env_file`.
const PLACEHOLDER: &str = "https://placeholder.invalid/?name=value";

impl HostEnvironment for Placeholders<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.0.variable(name);
        value.or_else(|| Some(PLACEHOLDER.to_owned()))
    }

    fn folder(&self) -> String {
        self.0.folder()
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let text = self.0.file(path);
        text.or_else(|_| Ok(PLACEHOLDER.to_owned()))
    }

    fn has_folder(&self, path: &str) -> bool {
        self.0.has_folder(path)
    }

    fn exists(&self, path: &str) -> bool {
        self.0.exists(path)
    }

    fn readable_by_all(&self, path: &Path) -> bool {
        self.0.readable_by_all(path)
    }

    fn writable_by_all(&self, path: &str) -> Option<String> {
        self.0.writable_by_all(path)
    }

    fn user_id(&self, user: &str) -> Option<u32> {
        self.0.user_id(user)
    }

    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts {
        self.0.program(lookup)
    }
}

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

    /// Returns whether every user can read a file.
    fn readable_by_all(&self, _: &Path) -> bool {
        false
    }

    /// World-writable file or folder on the path, or on the path after resolving links.
    fn writable_by_all(&self, path: &str) -> Option<String>;

    /// Returns the id of a user, given by name or id.
    fn user_id(&self, user: &str) -> Option<u32> {
        user.parse().ok()
    }

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
