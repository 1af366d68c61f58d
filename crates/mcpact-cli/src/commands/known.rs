//! What was learned about servers, from one run to the next.

use std::path::PathBuf;

use mcpact::client::Verdicts;
use mcpact_gateway::Cache;

/// What was learned about servers earlier; by default nothing, and nothing is written down.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Which era they are of.
    pub(super) verdicts: Verdicts,
    /// What they said about themselves.
    pub(super) servers: Cache,
}

impl Known {
    /// What is kept in the user's cache; without a place to keep it, it is learned each time.
    pub(super) fn kept() -> Self {
        let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
        let Some(folder) = cache.map(|cache| cache.join("mcpact")) else {
            return Self::default();
        };
        if std::fs::create_dir_all(&folder).is_err() {
            return Self::default();
        }
        Self {
            verdicts: Verdicts::in_file(folder.join("verdicts.json")).unwrap_or_default(),
            servers: Cache::in_folder(folder.join("servers")),
        }
    }
}
