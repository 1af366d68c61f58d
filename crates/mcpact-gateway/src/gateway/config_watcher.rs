//! Reloads the config when its file changes.
//!
//! Editors replace or truncate files before writing them, and Kubernetes volumes switch symbolic links. The watcher
//! therefore observes directories, and compares the content shortly after the last change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::config_digest::ConfigDigest;
use super::{Gateway, ReloadCause};
use crate::sync::lock;

/// Debounce time.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Maximum debounce time during continuous changes.
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);

/// Poll interval, for file systems without notifications.
const POLL: Duration = Duration::from_secs(5);

/// Time after which a missing file is reported.
const MISSING: Duration = Duration::from_secs(2);

/// Maximum number of symbolic links to follow.
const MAX_LINKS: usize = 32;

/// Reaction to a check of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileChange {
    /// Nothing changed.
    None,
    /// The file is missing and may reappear.
    Missing,
    /// The config must be reloaded.
    Reload,
}

/// Compares the digest of the last read with the current one; `missing` is how long the file has been missing.
fn file_change(
    last: Option<&ConfigDigest>,
    now: Option<&ConfigDigest>,
    missing: Duration,
) -> FileChange {
    match (last, now) {
        (Some(last), Some(now)) if last == now => FileChange::None,
        (None, None) => FileChange::None,
        (_, Some(_)) => FileChange::Reload,
        (Some(_), None) if missing < MISSING => FileChange::Missing,
        (Some(_), None) => FileChange::Reload,
    }
}

impl Gateway {
    /// Reloads the config whenever its file changes, while this is awaited.
    pub async fn watch(&self) {
        let Some(file) = self.file.get() else {
            return;
        };
        let last = self.last_digest();
        let mut watcher = FileWatcher::new(file.path.clone(), last.as_ref());
        let mut missing: Option<Instant> = None;
        loop {
            watcher.changed(missing.is_some()).await;
            if !self.state().catalog.gateway.watch {
                continue;
            }
            let last = self.last_digest();
            let now = current_digest(&file.path, last.clone()).await;
            match &now {
                Some(_) => missing = None,
                None => {
                    missing.get_or_insert_with(Instant::now);
                }
            }
            let missing_for = missing.map_or(Duration::ZERO, |since| since.elapsed());
            match file_change(last.as_ref(), now.as_ref(), missing_for) {
                FileChange::None => missing = None,
                FileChange::Missing => {}
                FileChange::Reload => {
                    self.reload(ReloadCause::File).await;
                    missing = None;
                }
            }
            watcher.update(self.last_digest().as_ref());
        }
    }
}

async fn current_digest(path: &Path, last: Option<ConfigDigest>) -> Option<ConfigDigest> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || ConfigDigest::now(&path, last.as_ref()));
    read.await.ok()?
}

/// Watcher of the directories of the config file and of the files that it takes values from.
struct FileWatcher {
    path: PathBuf,
    changed: Arc<Notify>,
    /// Files, and the links to them.
    paths: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// None if the system has no notifications; the file is polled then.
    watcher: Option<RecommendedWatcher>,
}

impl FileWatcher {
    fn new(path: PathBuf, read: Option<&ConfigDigest>) -> Self {
        let changed = Arc::new(Notify::new());
        let paths = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let (notify, watched) = (Arc::clone(&changed), Arc::clone(&paths));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| is_relevant(&event, &lock(&watched))) {
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
    fn update(&mut self, read: Option<&ConfigDigest>) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let mut now = with_links(&self.path);
        for file in read.into_iter().flat_map(ConfigDigest::files) {
            now.append(&mut with_links(file));
        }
        let directories = directories(&now);
        let before = std::mem::replace(&mut *lock(&self.paths), now);
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
    async fn changed(&self, is_missing: bool) {
        let wait = if is_missing { MISSING } else { POLL };
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

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_config::Source;

    /// A changed file is reloaded at once, a missing file after a while.
    #[test]
    fn changes_of_the_file() {
        let digest = |text: &str| ConfigDigest::of(&Source::new("x", text));
        let (old, new) = (digest("old"), digest("new"));
        let short = Duration::from_millis(1);
        for (last, now, missing, expected) in [
            (Some(&old), Some(&old), Duration::ZERO, FileChange::None),
            (Some(&old), Some(&new), Duration::ZERO, FileChange::Reload),
            (Some(&old), None, short, FileChange::Missing),
            (Some(&old), None, MISSING, FileChange::Reload),
            (None, None, MISSING, FileChange::None),
            (None, Some(&old), Duration::ZERO, FileChange::Reload),
        ] {
            assert_eq!(
                file_change(last, now, missing),
                expected,
                "{last:?} {now:?}"
            );
        }
    }

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
}
