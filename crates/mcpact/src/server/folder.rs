//! Access to files below a directory.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Directory of servable files. Paths that leave it, by `..`, links or a common prefix, are not found.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens this directory.
    ///
    /// # Errors
    /// The directory does not exist.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = root.as_ref().canonicalize()?;
        Ok(Self { root })
    }

    /// Returns the file at a relative path, such as the value of a template variable. Percent-encoding is not
    /// decoded.
    ///
    /// # Errors
    /// The directory has no such file.
    pub fn find(&self, path: &str) -> io::Result<PathBuf> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let is_plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || path.contains(['\0', '\\', ':']) || !is_plain {
            return Err(not_found());
        }
        let found = self.root.join(path).canonicalize()?;
        // Whole components are compared, so that `/a` does not open `/ab`.
        if found.starts_with(&self.root) {
            Ok(found)
        } else {
            Err(not_found())
        }
    }
}

/// Returns `true` if a part of a URI could escape a directory when used as a path, in any encoding.
pub(super) fn is_path_traversal(value: &str) -> bool {
    let mut value = value.to_owned();
    for _ in 0..4 {
        let lower = value.to_ascii_lowercase();
        let is_bad = lower.contains(['\0', '\\'])
            || lower.contains("//")
            || lower.starts_with('/')
            || lower.split('/').any(|part| matches!(part, "." | ".."));
        if is_bad {
            return true;
        }
        let decoded = [
            ("%2e", "."),
            ("%2f", "/"),
            ("%5c", "\\"),
            ("%00", "\0"),
            ("%25", "%"),
        ]
        .iter()
        .fold(lower.clone(), |text, (code, letter)| {
            text.replace(code, letter)
        });
        if decoded == lower {
            return false;
        }
        value = decoded;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// P19: dots, links, siblings with the same prefix and absolute paths do not leave the directory.
    #[test]
    fn paths_outside_of_the_directory_are_not_found() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("a");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(parent.path().join("ab")).unwrap();
        fs::write(root.join("sub/file"), "in").unwrap();
        fs::write(root.join("%2e%2e"), "a name").unwrap();
        fs::write(parent.path().join("secret"), "out").unwrap();
        fs::write(parent.path().join("ab/file"), "out").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(parent.path().join("secret"), root.join("link")).unwrap();
            std::os::unix::fs::symlink(parent.path(), root.join("up")).unwrap();
        }
        let folder = Folder::new(&root).unwrap();
        assert!(folder.find("sub/file").is_ok());
        assert!(folder.find("%2e%2e").is_ok(), "a strange name, but a name");
        let absolute = parent.path().join("secret");
        for bad in [
            "..",
            "../secret",
            "sub/../../secret",
            "./sub/file",
            "../ab/file",
            "b/file",
            "link",
            "up/secret",
            "sub\\..\\..\\secret",
            "..\\secret",
            "/etc/passwd",
            "//etc/passwd",
            "C:/windows",
            "sub/file\0",
            "",
            absolute.to_str().unwrap(),
        ] {
            assert!(folder.find(bad).is_err(), "{bad}");
        }
    }

    /// P19: path traversal is detected in every encoding.
    #[test]
    fn path_traversal_is_detected() {
        for bad in [
            "..",
            ".",
            "a/../b",
            "%2e%2e",
            "%2E%2e/x",
            ".%2e",
            "%252e%252e",
            "%25252e%25252e",
            "a%2f..%2fb",
            "a%5c..",
            "a\\b",
            "a//b",
            "/a",
            "%2fa",
            "a\0",
            "a%00",
        ] {
            assert!(is_path_traversal(bad), "{bad}");
        }
        for good in ["a", "a.b", "...", "a..b", "100%", "a%20b", "a/b.c"] {
            assert!(!is_path_traversal(good), "{good}");
        }
    }
}
