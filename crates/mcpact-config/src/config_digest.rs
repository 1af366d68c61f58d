//! Digest of a config file and the files it refers to; detects changes without keeping secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::load::read_source;
use crate::local_host::read_small;
use crate::source::{Digest, Source};

/// Digest of a config and of the files that it takes values from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDigest {
    config: Digest,
    /// None for an unreadable file.
    files: BTreeMap<PathBuf, Option<Digest>>,
}

impl ConfigDigest {
    /// Returns the digest of a config as it was read.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        Self {
            config: Digest::of(&source.text),
            files: source.files.clone(),
        }
    }

    /// Returns the current digest of a config file; none if it or a file that it took values from is missing. A file that
    /// is being replaced may be missing for a moment.
    #[must_use]
    pub fn now(path: &Path, last: Option<&Self>) -> Option<Self> {
        let source = read_source(path).ok()?;
        let text = |path: &PathBuf| read_small(path).ok().as_deref().map(Digest::of);
        let files = last.into_iter().flat_map(Self::files);
        let now = Self {
            config: Digest::of(&source.text),
            files: files.map(|path| (path.clone(), text(path))).collect(),
        };
        let is_missing = |path: &PathBuf| matches!(now.files.get(path), Some(None));
        let mut before = last.into_iter().flat_map(|last| &last.files);
        let lacks_file = before.any(|(path, text)| text.is_some() && is_missing(path));
        (!lacks_file).then_some(now)
    }

    /// Returns the files that the config takes values from.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A changed file changes the digest; a removed file makes it none, but a file that never existed does not.
    #[test]
    fn digest_covers_referenced_files() {
        let folder = tempfile::tempdir().unwrap();
        let [config, key, never] =
            ["mcpact.toml", "key", "never"].map(|name| folder.path().join(name));
        fs::write(&config, "text").unwrap();
        fs::write(&key, "old").unwrap();
        let read = |text: Option<&str>| {
            let mut source = read_source(&config).unwrap();
            let files = [(key.clone(), text.map(Digest::of)), (never.clone(), None)];
            source.files = files.into();
            ConfigDigest::of(&source)
        };
        let first = read(Some("old"));
        assert_eq!(
            ConfigDigest::now(&config, Some(&first)),
            Some(first.clone())
        );

        fs::write(&key, "new").unwrap();
        let second = ConfigDigest::now(&config, Some(&first)).unwrap();
        assert_ne!(second, first);
        fs::remove_file(&key).unwrap();
        assert_eq!(ConfigDigest::now(&config, Some(&second)), None);
        let without = read(None);
        assert_eq!(ConfigDigest::now(&config, Some(&without)), Some(without));
    }
}
