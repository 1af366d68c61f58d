//! The file of one server.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::record::Record;

/// How many bytes a file may have; a server that says more is asked each time.
const LARGEST: u64 = 8 * 1024 * 1024;

/// How many servers are kept; the ones written longest ago make room.
const FILES: usize = 512;

/// The place of one server.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    path: Arc<Path>,
    /// What is in the file as far as we know; whoever holds it writes.
    written: Arc<Mutex<Written>>,
    /// Counts those who want to write.
    turns: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Written {
    text: Option<String>,
    turn: u64,
}

impl Shelf {
    pub(super) fn new(folder: &Path, fingerprint: &str) -> Self {
        Self {
            path: Arc::from(folder.join(format!("{fingerprint}.json"))),
            written: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// What is there; whatever cannot be used is left alone and asked for anew.
    pub(crate) fn read(&self) -> Option<Record> {
        let text = match read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "failed to read cached server metadata");
                return None;
            }
        };
        let record = Record::parse(&text);
        match record {
            Some(_) => self.written().text = Some(text),
            None => {
                let path = self.path.display();
                tracing::warn!(%path, "cached server metadata ignored: damaged or from another version");
            }
        }
        record
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn to write, taken before it is looked at what is to be written.
    pub(crate) fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Writes it down, unless that is what is there or somebody with a later turn was quicker: threads do not
    /// keep the order in which they are given their work.
    pub(crate) fn write(&self, turn: u64, record: &Record) {
        let text = record.encode();
        let mut written = self.written();
        if turn < written.turn {
            return;
        }
        written.turn = turn;
        if written.text.as_deref() == Some(&*text) {
            return;
        }
        match replace(&self.path, &text) {
            Ok(()) => written.text = Some(text),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "failed to write cached server metadata");
            }
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > LARGEST {
        return Err(io::Error::from(ErrorKind::FileTooLarge));
    }
    fs::read_to_string(path)
}

/// The whole text or what was there before, whatever happens meanwhile.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if text.len() as u64 > LARGEST {
        return Err(io::Error::from(ErrorKind::FileTooLarge));
    }
    let Some(folder) = path.parent() else {
        return Err(io::Error::from(ErrorKind::InvalidInput));
    };
    fs::create_dir_all(folder)?;
    // Others may write at the same time; each has a file of its own until it is whole.
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = private(&temporary)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&temporary, path)?;
    make_room(folder, FILES);
    Ok(())
}

/// A file that only its owner reads.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Removes the oldest files beyond so many.
fn make_room(folder: &Path, most: usize) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let dated = |entry: io::Result<fs::DirEntry>| -> Option<(SystemTime, PathBuf)> {
        let entry = entry.ok()?;
        Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    };
    let mut files: Vec<(SystemTime, PathBuf)> = entries.filter_map(dated).collect();
    if files.len() <= most {
        return;
    }
    files.sort_unstable();
    for (_, path) in &files[..files.len() - most] {
        // Another gateway may have removed it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: &str) -> Record {
        let result = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"{version}"}}}}"#
        );
        let introduction = mcpact_translate::lifecycle::Introduction::of_initialize(
            &result,
            mcpact_engine::policy::Reading::Lenient,
        );
        let met = crate::bridge::Met {
            revision: mcpact_spec::Revision::V2025_11_25,
            introduction: introduction.unwrap(),
        };
        Record {
            met,
            lists: Vec::new(),
        }
    }

    /// What was known earlier does not replace what is known now, whichever thread is quicker.
    #[test]
    fn the_last_to_look_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path(), "ab");
        let [early, late] = [shelf.turn(), shelf.turn()];
        shelf.write(late, &record("2"));
        shelf.write(early, &record("1"));
        let kept = fs::read_to_string(&*shelf.path).unwrap();
        assert_eq!(kept, record("2").encode());
    }

    /// A file that cannot be used is no file, and is replaced by the next that can.
    #[test]
    fn damaged_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path(), "ab");
        assert!(shelf.read().is_none());
        fs::write(&*shelf.path, "{\"version\":1").unwrap();
        assert!(shelf.read().is_none());
        let large = usize::try_from(LARGEST).unwrap() + 1;
        fs::write(&*shelf.path, vec![b' '; large]).unwrap();
        assert!(shelf.read().is_none());
        shelf.write(shelf.turn(), &record("2"));
        assert!(shelf.read().is_some());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside it");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&*shelf.path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    /// There are never more files than there may be.
    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::UNIX_EPOCH;
        for number in 0..5_u64 {
            let file = fs::File::create(folder.path().join(number.to_string())).unwrap();
            let age = std::time::Duration::from_secs(number);
            file.set_modified(old + age).unwrap();
        }
        make_room(folder.path(), 2);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["3", "4"]);
    }
}
