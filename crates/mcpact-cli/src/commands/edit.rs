//! Reading and writing of config files that a command edits.

use std::io;
use std::path::Path;

use mcpact_config::{CatalogError, Problem, Source, read_config_text};

use super::{import, pin};
use crate::error::CliError;

/// Reads a file; `None` if there is none.
pub(super) fn read(file: &Path) -> Result<Option<String>, CliError> {
    match read_config_text(file) {
        Ok(text) => Ok(Some(text)),
        Err(CatalogError::Unreadable { source, .. })
            if source.kind() == io::ErrorKind::NotFound && !file.is_symlink() =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a file atomically. Mode and owner of an existing file stay, and a symbolic link to it as well; a new one is
/// readable only by its owner.
pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    write_atomically(file, text).map_err(failed(file))
}

fn write_atomically(file: &Path, text: &str) -> io::Result<()> {
    match file.metadata() {
        // Renaming another file over it would work.
        Ok(found) if found.permissions().readonly() => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file is read-only",
        )),
        Ok(_) => pin::rewrite(file, text),
        Err(_) => {
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            import::write(file, text)
        }
    }
}

/// Creates or replaces a file that only its owner can read.
pub(super) fn write_private(file: &Path, text: &str) -> Result<(), CliError> {
    import::write(file, text).map_err(failed(file))
}

fn failed(file: &Path) -> impl FnOnce(io::Error) -> CliError {
    move |source| CliError::Write {
        path: file.to_owned(),
        source,
    }
}

/// Error for a text that cannot be edited.
pub(super) fn refused(file: &Path, text: &str, problem: Problem) -> CliError {
    CliError::Catalog(CatalogError::Refused {
        source_text: Box::new(Source::new(file.display().to_string(), text)),
        problems: vec![problem],
    })
}
