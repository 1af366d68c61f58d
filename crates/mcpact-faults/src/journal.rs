//! Journal of a scripted server, in a file that outlives it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It was started; the number is that of its process.
    Start,
    /// It was called; the number is that of the call.
    Call,
    /// A cancellation of this call arrived.
    Cancelled,
}

impl Entry {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Call => "call",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct JournalWriter(File);

impl JournalWriter {
    /// Opens the file; what is there stays.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// Writes an entry down, in one go, so that servers that write at the same time do not mix.
    pub(crate) fn note(&self, entry: Entry, number: u64) -> std::io::Result<()> {
        let line = format!("{} {number}\n", entry.as_str());
        (&self.0).write_all(line.as_bytes())
    }
}

/// The driver's end.
#[derive(Clone, Debug)]
pub(crate) struct Journal(PathBuf);

impl Journal {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The numbers of all entries of a kind, in order.
    pub(crate) fn all(&self, entry: Entry) -> Vec<u64> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let prefix = format!("{} ", entry.as_str());
        let lines = text.lines();
        lines
            .filter_map(|line| line.strip_prefix(&prefix)?.parse().ok())
            .collect()
    }

    /// The process that was started last.
    pub(crate) fn process(&self) -> Option<u32> {
        let last = self.all(Entry::Start).last().copied()?;
        u32::try_from(last).ok()
    }

    /// Returns whether there is such an entry.
    pub(crate) fn has(&self, entry: Entry, number: u64) -> bool {
        self.all(entry).contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let pen = JournalWriter::open(&path).unwrap();
        pen.note(Entry::Start, 7).unwrap();
        pen.note(Entry::Call, 1).unwrap();
        JournalWriter::open(&path)
            .unwrap()
            .note(Entry::Start, 8)
            .unwrap();
        let journal = Journal::at(path);
        assert_eq!(journal.all(Entry::Start), [7, 8]);
        assert_eq!(journal.process(), Some(8));
        assert!(journal.has(Entry::Call, 1) && !journal.has(Entry::Cancelled, 1));
    }
}
