//! Lines over a Unix socket, for clients of the same user on the same machine.

use std::fs::{self, DirBuilder, File, Metadata, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::time::sleep;

use crate::error::DoorError;
use crate::link::Link;

/// Only we may connect.
const MODE: u32 = 0o600;

/// Only we may look into a folder of sockets.
const FOLDER_MODE: u32 = 0o700;

/// How many clients may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How often, and after how long each time, a directory is tried that another process is opening a socket in.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A socket that waits for clients. Dropping it removes its file.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode, so that a file that somebody else put there is left alone.
    identity: (u64, u64),
}

/// Opens a socket that only our own user can connect to.
///
/// The directory must exist. A file that is there already is replaced only if it is a socket on which
/// nobody answers.
///
/// # Errors
/// [`DoorError::Address`]: somebody answers there, it is not a socket, or the directory is missing;
/// [`DoorError::Io`]: the system refuses.
pub async fn listen(path: impl AsRef<Path>) -> Result<Listener, DoorError> {
    let path = path.as_ref();
    // Two processes that both find a stale socket must not remove each other's new one.
    let _lock = lock_directory(path).await?;
    remove_stale(path).await?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    // Nobody can connect before `listen`, so the mode is right for the first client.
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    let socket = socket.listen(BACKLOG)?;
    let identity = identity(&fs::symlink_metadata(path)?);
    Ok(Listener {
        socket,
        path: path.to_owned(),
        identity,
    })
}

/// Makes a folder for sockets that only our own user can look into, and those above it.
///
/// # Errors
/// [`DoorError::Address`]: it is no folder, or belongs to somebody else; [`DoorError::Io`]: the system
/// refuses.
pub fn private_folder(path: impl AsRef<Path>) -> Result<(), DoorError> {
    let path = path.as_ref();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(path)?;
    // Whoever may change the folder may put another socket in the place of ours.
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_dir() {
        return Err(bad(path, "it is not a folder"));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(bad(path, "it belongs to somebody else"));
    }
    if facts.mode() & 0o777 != FOLDER_MODE {
        fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// The sockets in a folder on which somebody answers; those that were left behind are removed.
///
/// # Errors
/// The folder cannot be read; one that is missing has none.
pub async fn sweep(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, DoorError> {
    let listed = match fs::read_dir(folder.as_ref()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut live = Vec::new();
    for entry in listed {
        let path = entry?.path();
        let is_socket =
            fs::symlink_metadata(&path).is_ok_and(|facts| facts.file_type().is_socket());
        if !is_socket {
            continue;
        }
        let _lock = lock_directory(&path).await?;
        match remove_stale(&path).await {
            Ok(()) => {}
            Err(DoorError::Address { .. }) => live.push(path),
            Err(error) => tracing::debug!(%error, path = %path.display(), "a socket is left alone"),
        }
    }
    live.sort();
    Ok(live)
}

/// Connects to a socket.
///
/// # Errors
/// [`DoorError::Address`]: nobody listens there; [`DoorError::Io`]: the system refuses.
pub async fn connect(path: impl AsRef<Path>) -> Result<Link, DoorError> {
    let path = path.as_ref();
    match UnixStream::connect(path).await {
        Ok(stream) => Ok(link(stream)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(bad(path, "there is no such socket"))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            Err(bad(path, "nobody listens there"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The process that opened a socket, as far as the system tells; it need not answer for that.
pub async fn owner(path: impl AsRef<Path>) -> Option<u32> {
    let stream = UnixStream::connect(path).await.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
}

impl Listener {
    /// Waits for a client of our own user or of root; any other is turned away.
    ///
    /// # Errors
    /// The system refuses, for example because too many files are open; trying again later may help.
    pub async fn accept(&self) -> Result<Link, DoorError> {
        loop {
            let (stream, _) = self.socket.accept().await?;
            let client = stream.peer_cred()?.uid();
            if may_connect(client, rustix::process::geteuid().as_raw()) {
                return Ok(link(stream));
            }
            tracing::warn!(client, path = %self.path.display(), "a client of another user was turned away");
        }
    }

    /// Where it waits.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|facts| identity(&facts) == self.identity);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket cannot be removed");
        }
    }
}

/// Whether a process of this user may talk to ours: root may do everything anyway.
const fn may_connect(client: u32, own: u32) -> bool {
    client == 0 || client == own
}

fn link(stream: UnixStream) -> Link {
    let (read, write) = stream.into_split();
    Link::new(read, write)
}

fn bad(path: &Path, why: &'static str) -> DoorError {
    DoorError::Address {
        address: path.display().to_string(),
        why,
    }
}

fn identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

async fn lock_directory(path: &Path) -> Result<File, DoorError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let directory = File::open(directory).map_err(|error| match error.kind() {
        ErrorKind::NotFound => bad(path, "its directory does not exist"),
        _ => error.into(),
    })?;
    for _ in 0..LOCK_TRIES {
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) => sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => {
                return Err(error.into());
            }
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(directory),
        }
    }
    Err(bad(path, "another process holds its directory locked"))
}

async fn remove_stale(path: &Path) -> Result<(), DoorError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
        Ok(facts) if !facts.file_type().is_socket() => return Err(bad(path, "it is not a socket")),
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
        Ok(_) | Err(_) => Err(bad(path, "somebody listens there already")),
    }
}

#[cfg(test)]
mod tests {
    use super::may_connect;

    /// Whatever the mode of the socket says, a process of another user is turned away.
    #[test]
    fn only_our_own_user_and_root_are_heard() {
        for (client, own, expected) in [
            (0, 0, true),
            (0, 1000, true),
            (1000, 1000, true),
            (1001, 1000, false),
            (1000, 0, false),
        ] {
            assert_eq!(may_connect(client, own), expected, "{client} {own}");
        }
    }
}
