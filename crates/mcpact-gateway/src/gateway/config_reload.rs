//! Reloads the config when its file changes.

use std::path::Path;
use std::time::Duration;

use mcpact_config::{ConfigDigest, ConfigWatcher};
use tokio::time::Instant;

use super::{Gateway, ReloadCause};

/// Time after which a missing file is reported.
const MISSING: Duration = Duration::from_secs(2);

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

/// Reloads the config whenever its file changes, while this is awaited.
pub(super) async fn watch(gateway: &Gateway) {
    let Some(file) = gateway.file.get() else {
        return;
    };
    let last = gateway.last_digest();
    let mut watcher = ConfigWatcher::new(file.path.clone(), last.as_ref());
    let mut missing: Option<Instant> = None;
    loop {
        watcher.changed(missing.is_some()).await;
        if !gateway.state().catalog.gateway.watch {
            continue;
        }
        let last = gateway.last_digest();
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
                gateway.reload(ReloadCause::File).await;
                missing = None;
            }
        }
        watcher.update(gateway.last_digest().as_ref());
    }
}

async fn current_digest(path: &Path, last: Option<ConfigDigest>) -> Option<ConfigDigest> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || ConfigDigest::now(&path, last.as_ref()));
    read.await.ok()?
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
}
