//! Identity and contents of a file whose code is approved.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcpact_transport::stdio::child::LaunchProblem;
use sha2::{Digest as _, Sha256};

/// Maximum size of a file of code: 4 GiB.
const MAX_BYTES: u64 = 4 << 30;

/// Age from which a change of a file always shows in its times: file systems count in ticks of some milliseconds.
const SETTLED: Duration = Duration::from_secs(2);

/// Folders of programs that belong to the system, also those of Nix, Guix and snap.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/snap",
    "/nix/store",
    "/nix/var/nix/profiles",
    "/gnu/store",
    "/etc/profiles",
    "/run/current-system",
];

/// Returns whether a path belongs to the system, and not to the project in a folder: root may have projects anywhere.
pub(super) fn is_system(path: &Path, folder: &Path) -> bool {
    let is_system = SYSTEM.iter().any(|place| path.starts_with(place));
    // The working directory of a service may be `/`.
    let is_project = !SYSTEM
        .iter()
        .any(|place| Path::new(place).starts_with(folder));
    is_system && !path.starts_with("/usr/src") && !(is_project && path.starts_with(folder))
}

/// State of a file, with the links and folders on its path. It differs if the file was changed, replaced, or reached another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    /// Path with all links resolved.
    pub(super) real: PathBuf,
    /// Only root can change the file, or the way to it.
    pub(super) is_protected: bool,
    links: Vec<FileStamp>,
    /// Device and inode of each folder. Their times change with every file in them.
    folders: Vec<(u64, u64)>,
    stamp: Option<FileStamp>,
}

/// Identity, size and times of a file or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileStamp {
    device: u64,
    node: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Component;

    use super::*;

    /// Maximum number of links on a path, as on Linux.
    const MAX_LINKS: usize = 40;

    impl FileStamp {
        pub(super) fn of(file: &fs::Metadata) -> Option<Self> {
            Some(Self {
                device: file.dev(),
                node: file.ino(),
                size: file.size(),
                modified: (file.mtime(), file.mtime_nsec()),
                changed: (file.ctime(), file.ctime_nsec()),
            })
        }
    }

    /// Returns true if only root can change a file, or the entries of a folder. A sticky folder does not count: its
    /// entries belong to their owners.
    fn is_of_root(file: &fs::Metadata) -> bool {
        let (mode, is_link) = (file.mode(), file.file_type().is_symlink());
        let is_group_writable = mode & 0o020 != 0 && file.gid() != 0;
        file.uid() == 0 && (is_link || mode & 0o002 == 0 && !is_group_writable)
    }

    impl FileState {
        /// Follows a path like the system, link by link.
        pub(in super::super) fn of(path: &Path) -> io::Result<Self> {
            let absolute = std::path::absolute(path)?;
            let words = |path: &Path| -> Vec<OsString> {
                let parts = path.components();
                let parts = parts.filter(|part| !matches!(part, Component::CurDir));
                parts.map(|part| part.as_os_str().to_owned()).collect()
            };
            let mut rest = VecDeque::from(words(&absolute));
            let mut real = PathBuf::from("/");
            let (mut is_protected, mut links, mut stamp) = (true, Vec::new(), None);
            let mut folders = Vec::new();
            while let Some(word) = rest.pop_front() {
                if word == ".." {
                    real.pop();
                    continue;
                }
                let next = real.join(&word);
                let found = fs::symlink_metadata(&next)?;
                is_protected &= is_of_root(&found);
                stamp = FileStamp::of(&found);
                if !found.file_type().is_symlink() {
                    if found.is_dir() {
                        folders.push((found.dev(), found.ino()));
                    }
                    real = next;
                    continue;
                }
                links.extend(stamp);
                if links.len() > MAX_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                for word in words(&fs::read_link(&next)?).into_iter().rev() {
                    rest.push_front(word);
                }
            }
            // The home folder of root is not a place for programs of the system.
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let is_at_home = home.is_some_and(|home| {
                home.parent().is_some() && (real.starts_with(&home) || absolute.starts_with(&home))
            });
            Ok(Self {
                real,
                is_protected: is_protected && !is_at_home,
                links,
                folders,
                stamp,
            })
        }
    }
}

#[cfg(not(unix))]
impl FileStamp {
    /// `None` where the system does not provide it.
    fn of(_: &fs::Metadata) -> Option<Self> {
        None
    }
}

#[cfg(not(unix))]
impl FileState {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            real: path.canonicalize()?,
            is_protected: false,
            links: Vec::new(),
            folders: Vec::new(),
            stamp: None,
        })
    }
}

impl FileState {
    /// Digest of the contents; cached until the file changes.
    pub(super) fn contents(&self) -> io::Result<[u8; 32]> {
        /// Maximum number of cached digests.
        const FILES: usize = 256;
        static KNOWN: Mutex<BTreeMap<FileStamp, [u8; 32]>> = Mutex::new(BTreeMap::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = self.stamp.and_then(|stamp| known().get(&stamp).copied()) {
            return Ok(digest);
        }
        // Checked before opening: opening a FIFO blocks.
        if !fs::metadata(&self.real)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut file = File::open(&self.real)?;
        let is_same = |file: &File| -> io::Result<bool> {
            Ok(FileStamp::of(&file.metadata()?) == self.stamp)
        };
        let before = is_same(&file)?;
        let digest = digest(&mut file)?;
        if !before || !is_same(&file)? {
            return Err(exchanged(&self.real));
        }
        if let Some(stamp) = self.stamp.filter(FileStamp::is_settled) {
            let mut known = known();
            if known.len() >= FILES {
                known.clear();
            }
            known.insert(stamp, digest);
        }
        Ok(digest)
    }
}

impl FileStamp {
    /// Returns true if a change from now on has other times.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let changed = u64::try_from(self.changed.0).unwrap_or(u64::MAX);
        now.as_secs() > changed.saturating_add(SETTLED.as_secs())
    }
}

/// Error for a file that changes while it is checked or started.
pub(super) fn exchanged(path: &Path) -> io::Error {
    io::Error::other(LaunchProblem::Exchanged(path.display().to_string()))
}

fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    let mut size = 0;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(hash.finalize().into());
        }
        size += read as u64;
        if size > MAX_BYTES {
            return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
        }
        hash.update(&chunk[..read]);
    }
}
