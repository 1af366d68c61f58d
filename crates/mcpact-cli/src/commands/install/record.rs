//! Records of installs: what mcpact wrote, and the backup of what was there before.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use mcpact_config::install::InstallClient;
use mcpact_config::{Digest, read_config_text};
use serde::{Deserialize, Serialize};

use crate::commands::{approve, edit};
use crate::error::{CliError, EditError};

/// Records of all clients, one file each.
pub(super) struct Records(PathBuf);

/// What mcpact wrote into the config of a client.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Record {
    /// Path of the config.
    file: String,
    /// Names of the entries.
    entries: BTreeSet<String>,
    /// Digest of the text that mcpact wrote last.
    written: String,
    /// Digest of the backup; `None` if mcpact created the file.
    original: Option<String>,
}

/// Texts of an install that can be undone.
pub(super) struct Undo {
    /// Current text.
    pub(super) now: String,
    /// Text to restore; `None` if mcpact created the file.
    pub(super) original: Option<String>,
}

/// Returns the path of the backup of a file.
pub(super) fn backup_of(file: &Path) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(".mcpact-backup");
    PathBuf::from(path)
}

fn digest(text: &str) -> String {
    Digest::of(text).to_string()
}

impl Records {
    /// Opens the records of the user.
    pub(super) fn open() -> Result<Self, CliError> {
        let state = approve::state_dir().ok_or(CliError::NoStateDir)?;
        Ok(Self(state.join("installs")))
    }

    /// Returns the entries that mcpact wrote into a file.
    pub(super) fn entries(&self, client: &InstallClient, file: &Path) -> BTreeSet<String> {
        let record = self.read(client, file);
        record.map(|record| record.entries).unwrap_or_default()
    }

    /// Replaces the config of a client. The backup is that of the text before the first change by mcpact.
    pub(super) fn replace(
        &self,
        client: &InstallClient,
        file: &Path,
        before: Option<&str>,
        after: &str,
        entries: BTreeSet<String>,
    ) -> Result<(), CliError> {
        let known = self.read(client, file);
        let known = known.filter(|known| before.map(digest).as_ref() == Some(&known.written));
        let backup = backup_of(file);
        let (original, mut all) = match (&known, before) {
            (Some(known), _) => (known.original.clone(), known.entries.clone()),
            (None, None) => (None, BTreeSet::new()),
            (None, Some(before)) => {
                edit::write_private(&backup, before)?;
                (Some(digest(before)), BTreeSet::new())
            }
        };
        all.extend(entries);
        let record = Record {
            file: file.to_string_lossy().into_owned(),
            entries: all,
            written: digest(after),
            original,
        };
        // Saved first: a file without a record could not be restored.
        let written = self
            .save(client, &record)
            .and_then(|()| edit::write(file, after));
        if written.is_err() {
            match &known {
                Some(known) => drop(self.save(client, known)),
                None => {
                    let _ = fs::remove_file(self.path(client));
                    if before.is_some() {
                        let _ = fs::remove_file(&backup);
                    }
                }
            }
        }
        written
    }

    /// Returns the texts of the last install, if the file and the backup have not changed since.
    pub(super) fn undo(&self, client: &InstallClient, file: &Path) -> Result<Undo, EditError> {
        let record = self.read(client, file);
        let record = record.ok_or_else(|| EditError::NothingToUndo(file.to_owned()))?;
        let backup = backup_of(file);
        let now = read_config_text(file).ok();
        let Some(now) = now.filter(|now| digest(now) == record.written) else {
            return Err(EditError::Changed {
                file: file.to_owned(),
                backup: record.original.map(|_| backup),
            });
        };
        let original = match record.original {
            None => None,
            Some(expected) => {
                let text = read_config_text(&backup).ok();
                let text = text.filter(|text| digest(text) == expected);
                Some(text.ok_or(EditError::Backup(backup))?)
            }
        };
        Ok(Undo { now, original })
    }

    /// Restores the original, and removes backup and record.
    pub(super) fn finish_undo(
        &self,
        client: &InstallClient,
        file: &Path,
        undo: &Undo,
    ) -> Result<(), CliError> {
        match &undo.original {
            Some(original) => {
                edit::write(file, original)?;
                let _ = fs::remove_file(backup_of(file));
            }
            None => fs::remove_file(file).map_err(|source| CliError::Write {
                path: file.to_owned(),
                source,
            })?,
        }
        let _ = fs::remove_file(self.path(client));
        Ok(())
    }

    fn path(&self, client: &InstallClient) -> PathBuf {
        self.0.join(client.name).with_extension("json")
    }

    fn read(&self, client: &InstallClient, file: &Path) -> Option<Record> {
        let text = read_config_text(&self.path(client)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        (Path::new(&record.file) == file).then_some(record)
    }

    fn save(&self, client: &InstallClient, record: &Record) -> Result<(), CliError> {
        let path = self.path(client);
        private_folders(&self.0).map_err(|source| CliError::Write {
            path: self.0.clone(),
            source,
        })?;
        edit::write_private(&path, &crate::report::json(record))
    }
}

/// Creates a folder and its parents, for the owner only.
fn private_folders(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}
