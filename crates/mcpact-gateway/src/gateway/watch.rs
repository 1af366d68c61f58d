//! Reading the config anew when its file changes.
//!
//! Editors replace a file by another one, or empty it before they write it; volumes of a cluster point a link
//! elsewhere. So it is the folders that are watched, and what counts is what can be read a moment after the
//! last change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::print::Print;
use super::{Gateway, ReloadCause};

/// Changes that come together are one.
const TOGETHER: Duration = Duration::from_millis(200);

/// For how long changes are waited for that do not stop coming.
const LONGEST: Duration = Duration::from_secs(2);

/// How often the file is looked at although nothing was told: some file systems do not tell.
const ANYWAY: Duration = Duration::from_secs(5);

/// How long a file may be missing before that is worth a word.
const MISSING: Duration = Duration::from_secs(2);

/// How many links lead to a file at most.
const LINKS: usize = 32;

/// What a look at the file asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Nothing has changed.
    Rest,
    /// It may come back in a moment.
    Again,
    /// It is to be read.
    Read,
}

/// What to do when this was read last, this is there now, and the file has been missing for so long.
fn look(last: Option<&Print>, now: Option<&Print>, missing: Duration) -> Look {
    match (last, now) {
        (Some(last), Some(now)) if last == now => Look::Rest,
        (None, None) => Look::Rest,
        (_, Some(_)) => Look::Read,
        (Some(_), None) if missing < MISSING => Look::Again,
        (Some(_), None) => Look::Read,
    }
}

impl Gateway {
    /// Reads the config anew whenever its file changes, for as long as this is awaited.
    pub async fn watch(&self) {
        let Some(file) = self.file.get() else {
            return;
        };
        let last = self.read_last();
        let mut watching = Watching::new(file.path.clone(), last.as_ref());
        let mut missing: Option<Instant> = None;
        loop {
            watching.changed(missing.is_some()).await;
            if !self.state().catalog.gateway.watch {
                continue;
            }
            let last = self.read_last();
            let now = print(&file.path, last.clone()).await;
            match &now {
                Some(_) => missing = None,
                None => {
                    missing.get_or_insert_with(Instant::now);
                }
            }
            let missed = missing.map_or(Duration::ZERO, |since| since.elapsed());
            match look(last.as_ref(), now.as_ref(), missed) {
                Look::Rest => missing = None,
                Look::Again => {}
                Look::Read => {
                    self.reload(ReloadCause::File).await;
                    missing = None;
                }
            }
            watching.renew(self.read_last().as_ref());
        }
    }
}

async fn print(path: &Path, last: Option<Print>) -> Option<Print> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || Print::now(&path, last.as_ref()));
    read.await.ok()?
}

/// The folders in which something may happen to the file, or to one that it takes values from.
struct Watching {
    path: PathBuf,
    changed: Arc<Notify>,
    places: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// None if the system cannot tell; then the file is looked at now and then.
    watcher: Option<RecommendedWatcher>,
}

impl Watching {
    fn new(path: PathBuf, read: Option<&Print>) -> Self {
        let changed = Arc::new(Notify::new());
        let places = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let (told, watched) = (Arc::clone(&changed), Arc::clone(&places));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.map_or(true, |event| concerns(&event, &lock(&watched))) {
                told.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(%error, "file watcher unavailable; polling the config");
            })
            .ok();
        let mut watching = Self {
            path,
            changed,
            places,
            watcher,
        };
        watching.renew(read);
        watching
    }

    /// Links may lead elsewhere by now, and other files may count.
    fn renew(&mut self, read: Option<&Print>) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let mut now = places(&self.path);
        for file in read.into_iter().flat_map(Print::files) {
            now.append(&mut places(file));
        }
        let folders = folders(&now);
        let before = std::mem::replace(&mut *lock(&self.places), now);
        for gone in self::folders(&before).difference(&folders) {
            // A folder that is gone is not watched any more anyway.
            let _ = watcher.unwatch(gone);
        }
        for folder in &folders {
            // Again, too: another folder may have taken its name.
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, folder = %folder.display(), "failed to watch directory");
            }
        }
    }

    /// Until something may have changed, and nothing has for a moment.
    async fn changed(&self, is_missing: bool) {
        let wait = if is_missing { MISSING } else { ANYWAY };
        if timeout(wait, self.changed.notified()).await.is_err() {
            return;
        }
        let late = Instant::now() + LONGEST;
        while Instant::now() < late && timeout(TOGETHER, self.changed.notified()).await.is_ok() {}
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an event may have to do with one of these places; reading a file is an event, too.
fn concerns(event: &Event, places: &BTreeSet<PathBuf>) -> bool {
    let is_here = |path: &PathBuf| places.contains(path);
    !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(is_here))
}

/// The folders that places are in.
fn folders(places: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let folders = places.iter().filter_map(|place| place.parent());
    folders.map(Path::to_owned).collect()
}

/// A file, and every link on the way to it.
fn places(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut ways = vec![path.to_owned()];
    for _ in 0..LINKS {
        let Some(way) = ways.pop() else {
            break;
        };
        found.insert(way.clone());
        let link = way.ancestors().find_map(|part| {
            let to = fs::read_link(part).ok()?;
            Some((part, part.parent()?, to))
        });
        if let Some((part, folder, to)) = link {
            found.insert(part.to_owned());
            let rest = way.strip_prefix(part).unwrap_or(Path::new(""));
            let whole = folder.join(to);
            ways.push(if rest.as_os_str().is_empty() {
                whole
            } else {
                whole.join(rest)
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_config::Source;

    /// What counts is what is in the file; one that is away for a moment is waited for.
    #[test]
    fn a_look_at_the_file() {
        let print = |text: &str| Print::of(&Source::new("x", text));
        let (old, new) = (print("old"), print("new"));
        let short = Duration::from_millis(1);
        for (last, now, missing, expected) in [
            (Some(&old), Some(&old), Duration::ZERO, Look::Rest),
            (Some(&old), Some(&new), Duration::ZERO, Look::Read),
            (Some(&old), None, short, Look::Again),
            (Some(&old), None, MISSING, Look::Read),
            (None, None, MISSING, Look::Rest),
            (None, Some(&old), Duration::ZERO, Look::Read),
        ] {
            assert_eq!(look(last, now, missing), expected, "{last:?} {now:?}");
        }
    }

    /// A file in a volume of a cluster is a link to a file behind another link, which is what changes.
    #[cfg(unix)]
    #[test]
    fn every_link_on_the_way_is_watched() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let data = root.join("..2026_07_28");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("mcpact.toml"), "").unwrap();
        symlink("..2026_07_28", root.join("..data")).unwrap();
        symlink("..data/mcpact.toml", root.join("mcpact.toml")).unwrap();
        let found = places(&root.join("mcpact.toml"));
        let folders = folders(&found);
        assert!(
            folders.contains(&root) && folders.contains(&data),
            "{found:?}"
        );
        let gone = places(&root.join("gone.toml"));
        assert_eq!(self::folders(&gone), BTreeSet::from([root.clone()]));
        let event = |name: &str| {
            let kind = notify::EventKind::Create(notify::event::CreateKind::Any);
            Event::new(kind).add_path(root.join(name))
        };
        for (name, expected) in [
            ("mcpact.toml", true),
            ("..data", true),
            ("notes.txt", false),
        ] {
            assert_eq!(concerns(&event(name), &found), expected, "{name}");
        }
    }
}
