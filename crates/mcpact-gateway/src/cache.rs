//! Cache of server metadata on disk.
//!
//! Each server has its own file, named by a digest of its configuration. It holds what the server sends to every client:
//! name, capabilities and lists. If a file is missing, damaged or of another version, the server is started once to
//! fetch the metadata.

mod metadata;
mod server_file;

use std::path::Path;
use std::sync::Arc;

pub(crate) use self::metadata::{CachedList, ServerMetadata, ServerProfile};
pub(crate) use self::server_file::ServerCacheFile;

/// Directory of the server metadata cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    folder: Option<Arc<Path>>,
}

impl Cache {
    /// Disables the cache.
    #[must_use]
    pub const fn disabled() -> Self {
        Self { folder: None }
    }

    /// Uses this directory, which is created on the first write.
    #[must_use]
    pub fn in_dir(folder: impl AsRef<Path>) -> Self {
        Self {
            folder: Some(Arc::from(folder.as_ref())),
        }
    }

    /// Returns the cache file of a server.
    pub(crate) fn file(&self, fingerprint: &str) -> Option<ServerCacheFile> {
        let folder = self.folder.as_ref()?;
        Some(ServerCacheFile::new(folder, fingerprint))
    }
}
