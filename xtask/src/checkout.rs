use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The working copy that the commands check.
pub(crate) struct Checkout {
    root: PathBuf,
}

/// A source file, named by its path from the root with `/` between the parts.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Returns `true` for a test module in its own file: `foo/tests.rs`, or any file below a `tests`
    /// directory of `src`.
    pub(crate) fn is_test_module(&self) -> bool {
        let inside = self
            .path
            .split_once("/src/")
            .map_or("", |(_, inside)| inside);
        inside
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }
}

impl Checkout {
    /// The checkout that contains the current directory.
    ///
    /// The root is searched at run time, so that the binary holds no path of the machine that
    /// built it and works in every worktree.
    pub(crate) fn find() -> Result<Self, Failure> {
        let here = std::env::current_dir().map_err(Failure::file(Path::new(".")))?;
        here.ancestors()
            .find(|dir| dir.join("xtask/Cargo.toml").is_file())
            .map(|dir| Self::at(dir.to_owned()))
            .ok_or(Failure::NoCheckout)
    }

    /// The checkout with this root.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The root directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path relative to the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The text of a file.
    pub(crate) fn read(&self, relative: &str) -> Result<String, Failure> {
        let path = self.path(relative);
        fs::read_to_string(&path).map_err(Failure::file(&path))
    }

    /// Names of the crates, which are the directories in `crates/`.
    pub(crate) fn crates(&self) -> Result<Vec<String>, Failure> {
        let dirs = sorted_entries(&self.path("crates"))?;
        Ok(dirs
            .iter()
            .filter(|dir| dir.join("Cargo.toml").is_file())
            .filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    /// Every Rust file below the folders, in order of path; folders that do not exist are empty.
    pub(crate) fn rust_files(&self, below: &[&str]) -> Result<Vec<SourceFile>, Failure> {
        let mut found = Vec::new();
        for folder in below {
            let folder = self.path(folder);
            if folder.is_dir() {
                self.collect(&folder, &mut found)?;
            }
        }
        Ok(found)
    }

    fn collect(&self, folder: &Path, found: &mut Vec<SourceFile>) -> Result<(), Failure> {
        for path in sorted_entries(folder)? {
            if path.is_dir() {
                if !path.ends_with("target") {
                    self.collect(&path, found)?;
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
                found.push(SourceFile {
                    path: self.name(&path),
                    text,
                });
            }
        }
        Ok(())
    }

    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    }
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(Failure::file(folder))?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|e| e.path())).collect();
    let mut paths = paths.map_err(Failure::file(folder))?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::SourceFile;

    #[test]
    fn test_modules_are_distinguished_from_sources() {
        let is_test = |path: &str| {
            let (path, text) = (path.to_owned(), String::new());
            SourceFile { path, text }.is_test_module()
        };
        assert!(is_test("crates/a/src/foo/tests.rs"));
        assert!(is_test("crates/a/src/foo/tests/cells.rs"));
        assert!(!is_test("crates/a/src/foo.rs"));
        assert!(!is_test("crates/tests/src/foo.rs"));
    }
}
