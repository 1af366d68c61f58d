//! What a user saw when an item was last approved, to show what has changed since. Approvals do not depend on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcpact_config::ApprovalSubject;
use mcpact_transport::private_file;

/// Maximum size of the file.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of items.
const MAX_ITEMS: usize = 2000;

/// File with the lines of approved items.
#[derive(Debug)]
pub(super) struct LastApprovals(PathBuf);

impl LastApprovals {
    pub(super) const fn in_file(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the lines of an item when it was last approved.
    pub(super) fn lines(&self, item: &str, config: &Path) -> Option<Vec<(String, String)>> {
        self.read().remove(&key(item, config))
    }

    /// Saves the lines of an approved item. A failure only costs the comparison.
    pub(super) fn save(&self, item: &str, config: &Path, subject: &ApprovalSubject) {
        let mut all = self.read();
        if all.len() >= MAX_ITEMS {
            all.clear();
        }
        let lines = subject.lines.iter();
        let lines = lines.map(|(label, text)| ((*label).to_owned(), text.clone()));
        all.insert(key(item, config), lines.collect());
        let text = serde_json::to_vec(&all).unwrap_or_default();
        if let Err(error) = private_file::replace_own(&self.0, &text) {
            tracing::debug!(%error, "failed to save what was approved");
        }
    }

    fn read(&self) -> BTreeMap<String, Vec<(String, String)>> {
        let is_small = |path: &PathBuf| {
            let file = std::fs::metadata(path);
            file.is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES)
        };
        let path = Some(&self.0).filter(|path| is_small(path));
        let text = path.and_then(|path| std::fs::read(path).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }
}

fn key(item: &str, config: &Path) -> String {
    let real = config.canonicalize();
    let config = real.as_deref().unwrap_or(config);
    format!("{item} of {}", config.display())
}
