//! Saves results to files.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::error::CliError;
use crate::report::content::Binary;
use crate::report::{self, count};

/// Accepts Base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Saves text.
pub(crate) fn save_text(path: &Path, text: &str) -> Result<(), CliError> {
    save(path, text.as_bytes())
}

/// Saves binary parts: the first under the path, the others with a number before the extension.
pub(crate) fn save_all(path: &Path, binaries: &[Binary<'_>]) -> Result<(), CliError> {
    for (at, binary) in binaries.iter().enumerate() {
        let path = numbered(path, at + 1);
        let data: String = binary.data.split_ascii_whitespace().collect();
        let bytes = BASE64.decode(data).map_err(|error| CliError::Write {
            path: path.clone(),
            source: io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        })?;
        save(&path, &bytes)?;
    }
    Ok(())
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().map(OsString::from).unwrap_or_default();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Writes a file at once: an existing file is replaced only if everything was written.
fn save(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write(path, bytes).map_err(|source| CliError::Write {
        path: path.to_owned(),
        source,
    })?;
    let size = count(bytes.len(), "byte");
    report::eprint_content(&format!("saved {size} to `{}`\n", path.display()));
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = match fs::metadata(path) {
        // A device or pipe receives the bytes; it is not replaced.
        Ok(found) if !found.is_file() => {
            return OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        // The target of a link is replaced, not the link.
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The mask of the process applies, as for other new files.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_have_numbers() {
        for (path, number, expected) in [
            ("a/x.png", 1, "a/x.png"),
            ("a/x.png", 2, "a/x-2.png"),
            ("x", 3, "x-3"),
        ] {
            assert_eq!(numbered(Path::new(path), number), Path::new(expected));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        save(&file, b"before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        save(&link, b"after").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"after");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn sockets_and_other_nodes_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(save(&path, b"x").is_err());
        assert!(!std::fs::metadata(&path).unwrap().is_file());
    }

    #[test]
    fn failed_write_keeps_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        save(&path, b"before").unwrap();
        let invalid = Binary {
            mime_type: "a/b",
            data: "!",
        };
        assert!(save_all(&path, &[invalid]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
