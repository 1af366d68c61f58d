//! Cache of server metadata between runs.

use std::path::PathBuf;

use mcpact::client::EraCache;
use mcpact_gateway::Cache;

/// Cached facts about servers. The default is empty and not saved.
#[derive(Debug, Default)]
pub(crate) struct ServerCache {
    /// The era of each server.
    pub(crate) verdicts: EraCache,
    /// Server info and lists.
    pub(super) servers: Cache,
}

impl ServerCache {
    /// Opens the user's cache; with `--no-cache` or without a cache directory it is empty and not saved.
    pub(crate) fn open(no_cache: bool) -> Self {
        let cache = (!no_cache).then(Self::in_cache_dir).flatten();
        cache.unwrap_or_default()
    }

    fn in_cache_dir() -> Option<Self> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")))?;
        let dir = cache.join("mcpact");
        mcpact_transport::private_file::create_folder(&dir).ok()?;
        Some(Self {
            verdicts: EraCache::in_file(dir.join("verdicts.json")).unwrap_or_default(),
            servers: Cache::in_dir(dir.join("servers")),
        })
    }
}
