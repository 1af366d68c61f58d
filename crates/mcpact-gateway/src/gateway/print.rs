//! Telling what a config says from what it said before, without keeping its secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcpact_config::{Digest, Source, read_small, read_source};

/// The text of a config, and those of the files that it takes values from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Print {
    config: Digest,
    /// None for a file that cannot be read.
    files: BTreeMap<PathBuf, Option<Digest>>,
}

impl Print {
    /// Of a config and its files as they were read.
    pub(super) fn of(source: &Source) -> Self {
        Self {
            config: Digest::of(&source.text),
            files: source.files.clone(),
        }
    }

    /// Of the config in this file as it is now, if it is there. It is not while a file is gone that it took values
    /// from: what is replaced may be away for a moment.
    pub(super) fn now(path: &Path, last: Option<&Self>) -> Option<Self> {
        let source = read_source(path).ok()?;
        let text = |path: &PathBuf| read_small(path).ok().as_deref().map(Digest::of);
        let files = last.into_iter().flat_map(Self::files);
        let now = Self {
            config: Digest::of(&source.text),
            files: files.map(|path| (path.clone(), text(path))).collect(),
        };
        let is_gone = |path: &PathBuf| matches!(now.files.get(path), Some(None));
        let mut had = last.into_iter().flat_map(|last| &last.files);
        let misses = had.any(|(path, text)| text.is_some() && is_gone(path));
        (!misses).then_some(now)
    }

    /// The files that the config takes values from.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Another text of a file that a config takes values from is another config; one that is gone is waited
    /// for, and what never was there is not.
    #[test]
    fn the_files_of_a_config_count() {
        let folder = tempfile::tempdir().unwrap();
        let [config, key, never] =
            ["mcpact.toml", "key", "never"].map(|name| folder.path().join(name));
        fs::write(&config, "text").unwrap();
        fs::write(&key, "old").unwrap();
        let read = |text: Option<&str>| {
            let mut source = read_source(&config).unwrap();
            let files = [(key.clone(), text.map(Digest::of)), (never.clone(), None)];
            source.files = files.into();
            Print::of(&source)
        };
        let first = read(Some("old"));
        assert_eq!(Print::now(&config, Some(&first)), Some(first.clone()));

        fs::write(&key, "new").unwrap();
        let second = Print::now(&config, Some(&first)).unwrap();
        assert_ne!(second, first);
        fs::remove_file(&key).unwrap();
        assert_eq!(Print::now(&config, Some(&second)), None);
        let without = read(None);
        assert_eq!(Print::now(&config, Some(&without)), Some(without));
    }
}
