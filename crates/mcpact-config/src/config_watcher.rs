//! Watches a config file and the files it takes values from.
//!
//! Editors replace or truncate files before writing them, and Kubernetes volumes switch symbolic links. The watcher
//! therefore observes directories; the caller compares the content with [`ConfigDigest`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::load::read_source;
use crate::local_host::read_small;
use crate::source::{Digest, Source};

/// Debounce time.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Maximum debounce time during continuous changes.
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);

/// Poll interval, for file systems without notifications.
const POLL: Duration = Duration::from_secs(5);

/// Poll interval while the file is missing.
const POLL_MISSING: Duration = Duration::from_secs(2);

/// Maximum number of symbolic links to follow.
const MAX_LINKS: usize = 32;

/// Watcher of the directories of the config file and of the files that it takes values from.
#[derive(Debug)]
pub struct ConfigWatcher {
    path: PathBuf,
    changed: Arc<Notify>,
    /// Files, and the links to them.
    paths: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// None if the system has no notifications; the file is polled then.
    watcher: Option<RecommendedWatcher>,
}

impl ConfigWatcher {
    /// Starts watching; `read` is the digest of the config as it was read.
    #[must_use]
    pub fn new(path: PathBuf, read: Option<&ConfigDigest>) -> Self {
        let changed = Arc::new(Notify::new());
        let paths = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let (notify, watched) = (Arc::clone(&changed), Arc::clone(&paths));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| {
                is_relevant(
                    &event,
                    &watched.lock().unwrap_or_else(PoisonError::into_inner),
                )
            }) {
                notify.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(%error, "file watcher unavailable; polling the config");
            })
            .ok();
        let mut this = Self {
            path,
            changed,
            paths,
            watcher,
        };
        this.update(read);
        this
    }

    /// Updates the watched directories: links and referenced files may have changed.
    pub fn update(&mut self, read: Option<&ConfigDigest>) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let mut now = with_links(&self.path);
        for file in read.into_iter().flat_map(ConfigDigest::files) {
            now.append(&mut with_links(file));
        }
        let directories = directories(&now);
        let before = std::mem::replace(
            &mut *self.paths.lock().unwrap_or_else(PoisonError::into_inner),
            now,
        );
        for old in self::directories(&before).difference(&directories) {
            // Fails for a removed directory, which is not watched anyway.
            let _ = watcher.unwatch(old);
        }
        for directory in &directories {
            // Watched again, since the directory may have been replaced.
            if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, directory = %directory.display(), "failed to watch directory");
            }
        }
    }

    /// Waits until something may have changed, and for the debounce time.
    pub async fn changed(&self, is_missing: bool) {
        let wait = if is_missing { POLL_MISSING } else { POLL };
        if timeout(wait, self.changed.notified()).await.is_err() {
            return;
        }
        let deadline = Instant::now() + MAX_DEBOUNCE;
        while Instant::now() < deadline && timeout(DEBOUNCE, self.changed.notified()).await.is_ok()
        {
        }
    }
}

/// Returns true if an event may concern one of these paths; read accesses do not count.
fn is_relevant(event: &Event, paths: &BTreeSet<PathBuf>) -> bool {
    let is_watched = |path: &PathBuf| paths.contains(path);
    !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(is_watched))
}

/// Returns the parent directories of these paths.
fn directories(paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let directories = paths.iter().filter_map(|path| path.parent());
    directories.map(Path::to_owned).collect()
}

/// Returns a path and every symbolic link on the way to its target.
fn with_links(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![path.to_owned()];
    for _ in 0..MAX_LINKS {
        let Some(current) = pending.pop() else {
            break;
        };
        found.insert(current.clone());
        let link = current.ancestors().find_map(|part| {
            let to = fs::read_link(part).ok()?;
            Some((part, part.parent()?, to))
        });
        if let Some((part, folder, to)) = link {
            found.insert(part.to_owned());
            let rest = current.strip_prefix(part).unwrap_or(Path::new(""));
            let target = folder.join(to);
            pending.push(if rest.as_os_str().is_empty() {
                target
            } else {
                target.join(rest)
            });
        }
    }
    found
}

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
    use super::*;

    /// A Kubernetes volume switches a link in the middle of the path.
    #[cfg(unix)]
    #[test]
    fn links_on_the_way_to_the_file_are_watched() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let data = root.join("..2026_07_28");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("mcpact.toml"), "").unwrap();
        symlink("..2026_07_28", root.join("..data")).unwrap();
        symlink("..data/mcpact.toml", root.join("mcpact.toml")).unwrap();
        let found = with_links(&root.join("mcpact.toml"));
        let watched = directories(&found);
        assert!(
            watched.contains(&root) && watched.contains(&data),
            "{found:?}"
        );
        let gone = with_links(&root.join("gone.toml"));
        assert_eq!(directories(&gone), BTreeSet::from([root.clone()]));
        let event = |name: &str| {
            let kind = notify::EventKind::Create(notify::event::CreateKind::Any);
            Event::new(kind).add_path(root.join(name))
        };
        for (name, expected) in [
            ("mcpact.toml", true),
            ("..data", true),
            ("notes.txt", false),
        ] {
            assert_eq!(is_relevant(&event(name), &found), expected, "{name}");
        }
    }

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
