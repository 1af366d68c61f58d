//! Newline-delimited messages over a Unix socket, for clients of the same user.

use std::fs::{self, DirBuilder, File, Metadata, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::time::sleep;

use crate::error::TransportError;
use crate::link::Link;

/// Mode of a socket: only the owner may connect.
const MODE: u32 = 0o600;

/// Mode of a socket directory: only the owner may list it.
const FOLDER_MODE: u32 = 0o700;

/// Clients that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Number of attempts, and pause between them, to lock a directory in which another process opens a socket.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A listening socket. Dropping it removes its file.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode; a file that replaced ours is left alone.
    identity: (u64, u64),
}

/// Listens on a socket that only the same user can connect to.
///
/// The directory must exist. An existing file is replaced only if it is a socket without a listener.
///
/// # Errors
/// [`TransportError::Address`]: the socket is in use, the file is not a socket, or the directory is missing;
/// [`TransportError::Io`]: the system refuses.
pub async fn listen(path: impl AsRef<Path>) -> Result<Listener, TransportError> {
    bind(path.as_ref(), MODE).await
}

/// Listens on a socket with this mode, in a folder in which only its owner or group creates files: elsewhere another
/// user could take the path first.
pub(crate) async fn listen_in_safe_folder(
    path: impl AsRef<Path>,
    mode: u32,
) -> Result<Listener, TransportError> {
    let path = path.as_ref();
    let facts = fs::metadata(directory_of(path)).map_err(|error| no_directory(path, error))?;
    if facts.mode() & 0o002 != 0 {
        let why = "every user may create files in its folder: use a private one, such as `$XDG_RUNTIME_DIR`";
        return Err(bad(path, why));
    }
    bind(path, mode).await
}

async fn bind(path: &Path, mode: u32) -> Result<Listener, TransportError> {
    // Two processes that find the same stale socket must not remove each other's new one.
    let _lock = lock_directory(path).await?;
    remove_stale(path).await?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    // Connecting is impossible before `listen`, so the mode is right for the first client.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    let socket = socket.listen(BACKLOG)?;
    let identity = identity(&fs::symlink_metadata(path)?);
    Ok(Listener {
        socket,
        path: path.to_owned(),
        identity,
    })
}

/// Creates a socket directory, with its parents, that only the same user can list.
///
/// # Errors
/// [`TransportError::Address`]: it is not a directory, or belongs to another user; [`TransportError::Io`]: the system refuses.
pub fn private_folder(path: impl AsRef<Path>) -> Result<(), TransportError> {
    let path = path.as_ref();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(path)?;
    // Another owner of the directory could replace our socket.
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_dir() {
        return Err(bad(path, "it is not a directory"));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(bad(path, "it belongs to another user"));
    }
    if facts.mode() & 0o777 != FOLDER_MODE {
        fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// Returns the sockets with a listener in a directory and removes stale ones.
///
/// # Errors
/// The directory cannot be read; a missing one has no sockets.
pub async fn sweep(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, TransportError> {
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
            Err(TransportError::Address { .. }) => live.push(path),
            Err(error) => tracing::debug!(%error, path = %path.display(), "socket not removed"),
        }
    }
    live.sort();
    Ok(live)
}

/// Connects to a socket.
///
/// # Errors
/// [`TransportError::Address`]: there is no listener; [`TransportError::Io`]: the system refuses.
pub async fn connect(path: impl AsRef<Path>) -> Result<Link, TransportError> {
    let path = path.as_ref();
    match UnixStream::connect(path).await {
        Ok(stream) => Ok(link(stream)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(bad(path, "no such socket")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(bad(path, "no listener")),
        Err(error) => Err(error.into()),
    }
}

/// Returns the process that opened a socket, as reported by the system. The process may have passed it on.
pub async fn owner(path: impl AsRef<Path>) -> Option<u32> {
    let stream = UnixStream::connect(path).await.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
}

impl Listener {
    /// Accepts a client of the same user or of root; others are rejected.
    ///
    /// # Errors
    /// The system refuses, for example because too many files are open; a retry may succeed.
    pub async fn accept(&self) -> Result<Link, TransportError> {
        loop {
            let (stream, _) = self.socket.accept().await?;
            let client = stream.peer_cred()?.uid();
            if may_connect(client, rustix::process::geteuid().as_raw()) {
                return Ok(link(stream));
            }
            tracing::warn!(client, path = %self.path.display(), "client of another user rejected");
        }
    }

    /// Accepts a client of any user; returns its user id.
    pub(crate) async fn accept_any(&self) -> std::io::Result<(UnixStream, Option<u32>)> {
        let (stream, _) = self.socket.accept().await?;
        let uid = stream.peer_cred().ok().map(|client| client.uid());
        Ok((stream, uid))
    }

    /// Returns the path of the socket.
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
            tracing::debug!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// Returns whether a client with this user id may connect; root always may.
const fn may_connect(client: u32, own: u32) -> bool {
    client == 0 || client == own
}

fn link(stream: UnixStream) -> Link {
    let (read, write) = stream.into_split();
    Link::new(read, write)
}

fn bad(path: &Path, why: &'static str) -> TransportError {
    TransportError::address(path.display().to_string(), why)
}

fn identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

fn no_directory(path: &Path, error: std::io::Error) -> TransportError {
    match error.kind() {
        ErrorKind::NotFound => bad(path, "its directory does not exist"),
        _ => error.into(),
    }
}

async fn lock_directory(path: &Path) -> Result<File, TransportError> {
    let directory = File::open(directory_of(path)).map_err(|error| no_directory(path, error))?;
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

async fn remove_stale(path: &Path) -> Result<(), TransportError> {
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
        Ok(_) | Err(_) => Err(bad(path, "the socket is in use")),
    }
}

#[cfg(test)]
mod tests {
    use super::may_connect;

    /// Processes of other users are rejected, whatever the mode of the socket is.
    #[test]
    fn only_the_same_user_and_root_may_connect() {
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
