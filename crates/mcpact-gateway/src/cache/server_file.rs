//! Cache file of one server.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use mcpact_transport::private_file;
use tokio::sync::Semaphore;

use super::metadata::ServerMetadata;
use crate::sync::lock;

/// Maximum file size. Larger metadata is not cached.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of files; the oldest are removed.
const MAX_FILES: usize = 512;

/// Maximum number of files that are written at the same time.
static WRITERS: Semaphore = Semaphore::const_new(2);

/// Cache file of one server.
#[derive(Clone, Debug)]
pub(crate) struct ServerCacheFile {
    path: Arc<Path>,
    /// Known content of the file, and the ticket of its write; locked while writing.
    written: Arc<Mutex<(Option<String>, u64)>>,
    /// Number of write tickets.
    tickets: Arc<AtomicU64>,
}

impl ServerCacheFile {
    pub(super) fn new(folder: &Path, fingerprint: &str) -> Self {
        Self {
            path: Arc::from(folder.join(format!("{fingerprint}.json"))),
            written: Arc::default(),
            tickets: Arc::default(),
        }
    }

    /// Reads the metadata. Returns none if the file is missing or invalid.
    pub(crate) fn read(&self) -> Option<ServerMetadata> {
        let path = self.path.display();
        let text = match read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%path, %error, "failed to read cached server metadata");
                return None;
            }
        };
        let metadata = ServerMetadata::parse(&text);
        if metadata.is_some() {
            lock(&self.written).0 = Some(text);
        } else {
            tracing::warn!(%path, "cached server metadata ignored: damaged or from another version");
        }
        metadata
    }

    /// Returns a ticket for a write. Take it before collecting the metadata.
    pub(crate) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Writes the metadata in the background.
    pub(crate) fn write_later(self, metadata: ServerMetadata, ticket: u64) {
        let write = move || self.write(ticket, &metadata);
        // Each blocking job may need a thread. A free writer begins at once, also during a shutdown.
        if let Ok(permit) = WRITERS.try_acquire() {
            tokio::task::spawn_blocking(move || {
                write();
                drop(permit);
            });
            return;
        }
        tokio::spawn(async move {
            // Fails only for a closed semaphore, which this one never is.
            let permit = WRITERS.acquire().await;
            let _ = tokio::task::spawn_blocking(write).await;
            drop(permit);
        });
    }

    /// Writes the metadata, unless it is unchanged or a later ticket was written first.
    pub(crate) fn write(&self, ticket: u64, metadata: &ServerMetadata) {
        let text = metadata.encode();
        let (last_text, last_ticket) = &mut *lock(&self.written);
        if ticket < *last_ticket {
            return;
        }
        *last_ticket = ticket;
        if last_text.as_deref() == Some(&*text) {
            return;
        }
        match replace(&self.path, &text) {
            Ok(()) => *last_text = Some(text),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "failed to write cached server metadata");
            }
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::from(ErrorKind::FileTooLarge));
    }
    fs::read_to_string(path)
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::from(ErrorKind::FileTooLarge));
    }
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    private_file::create_folder(folder)?;
    // Other gateways may write at the same time.
    private_file::replace(path, text.as_bytes())?;
    remove_oldest(folder, MAX_FILES);
    Ok(())
}

/// Removes the oldest files above a limit.
fn remove_oldest(folder: &Path, limit: usize) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    // Their dates are read only if it is necessary: each server writes a file when the gateway starts.
    let entries: Vec<_> = entries.collect();
    if entries.len() <= limit {
        return;
    }
    let dated = |entry: io::Result<fs::DirEntry>| -> Option<(SystemTime, PathBuf)> {
        let entry = entry.ok()?;
        Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    };
    let mut files: Vec<(SystemTime, PathBuf)> = entries.into_iter().filter_map(dated).collect();
    files.sort_unstable();
    for (_, path) in &files[..files.len().saturating_sub(limit)] {
        // Another gateway may have removed it already.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(version: &str) -> ServerMetadata {
        let result = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"{version}"}}}}"#
        );
        let introduction = mcpact_translate::lifecycle::Introduction::of_initialize(
            &result,
            mcpact_engine::policy::Reading::Lenient,
        );
        let profile = crate::cache::ServerProfile {
            revision: mcpact_spec::Revision::V2025_11_25,
            introduction: introduction.unwrap(),
        };
        ServerMetadata {
            profile,
            lists: Vec::new(),
        }
    }

    #[test]
    fn earlier_ticket_does_not_replace_a_later_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = ServerCacheFile::new(folder.path(), "ab");
        let [early, late] = [file.ticket(), file.ticket()];
        file.write(late, &metadata("2"));
        file.write(early, &metadata("1"));
        let kept = fs::read_to_string(&*file.path).unwrap();
        assert_eq!(kept, metadata("2").encode());
    }

    #[test]
    fn invalid_files_are_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = ServerCacheFile::new(folder.path(), "ab");
        assert!(file.read().is_none());
        fs::write(&*file.path, "{\"version\":1").unwrap();
        assert!(file.read().is_none());
        let large = usize::try_from(MAX_BYTES).unwrap() + 1;
        fs::write(&*file.path, vec![b' '; large]).unwrap();
        assert!(file.read().is_none());
        file.write(file.ticket(), &metadata("2"));
        assert!(file.read().is_some());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary file is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&*file.path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn oldest_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::UNIX_EPOCH;
        for number in 0..5_u64 {
            let file = fs::File::create(folder.path().join(number.to_string())).unwrap();
            let age = std::time::Duration::from_secs(number);
            file.set_modified(old + age).unwrap();
        }
        remove_oldest(folder.path(), 2);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["3", "4"]);
    }
}
