//! Files and folders that only their owner can read, whatever the umask is.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Mode of a folder.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder with its parents. An existing folder of the same user is made private.
///
/// # Errors
/// The system refuses.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder.create(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let facts = fs::metadata(path)?;
        let is_own = facts.uid() == rustix::process::geteuid().as_raw();
        if is_own && facts.mode() & 0o777 != FOLDER_MODE {
            fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE))?;
        }
    }
    Ok(())
}

/// Replaces a file atomically. Its folder must exist. A symbolic link is replaced, not followed.
///
/// # Errors
/// The system refuses.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    // Created with mode 0600, and only if the name is free.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.persist(path)?;
    Ok(())
}

/// Replaces a file as [`replace`] does, in a folder in which other users may create files: refuses everything but a
/// missing file and a regular file of the same user.
///
/// # Errors
/// The path is a symbolic link, no regular file, or a file of another user; or the system refuses.
pub fn replace_own(path: &Path, text: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        facts => check_own(&facts?)?,
    }
    replace(path, text)
}

fn check_own(facts: &fs::Metadata) -> io::Result<()> {
    let refuse = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if facts.is_symlink() {
        return refuse("it is a symbolic link");
    }
    if !facts.is_file() {
        return refuse("it is not a regular file");
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(facts) != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user");
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn files_and_folders_are_private() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        create_folder(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        create_folder(&folder).unwrap();
        let file = folder.join("file");
        for text in ["one", "two"] {
            replace(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        let paths = [&home.path().join("a"), &folder, &file];
        let modes = paths.map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
        assert_eq!(modes, [0o700, 0o700, 0o600]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn links_and_other_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling] =
            ["file", "link", "dangling"].map(|name| folder.path().join(name));
        replace_own(&file, b"mine").unwrap();
        replace_own(&file, b"still mine").unwrap();
        symlink(&file, &link).unwrap();
        symlink(folder.path().join("none"), &dangling).unwrap();
        for path in [&link, &dangling, folder.path()] {
            let error = replace_own(path, b"other").unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::PermissionDenied,
                "{}",
                path.display()
            );
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "still mine");
        assert!(!folder.path().join("none").exists());
        let foreign = fs::metadata("/proc/1/stat").or_else(|_| fs::metadata("/etc/passwd"));
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(check_own(&foreign.unwrap()).is_ok(), is_root);
    }
}
