//! What servers said about themselves, from one run to the next.
//!
//! Each server has a file of its own, under a name in which nothing of its configuration can be read. In
//! it is what the server tells every client: who it is, what it declares, and its lists. A file that is
//! missing, damaged or of another version costs one start of the server and nothing else.

mod record;
mod shelf;

use std::path::Path;
use std::sync::Arc;

pub(crate) use self::record::{KeptList, Record};
pub(crate) use self::shelf::Shelf;

/// Where it is kept what servers said about themselves.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    folder: Option<Arc<Path>>,
}

impl Cache {
    /// Nothing is kept.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self { folder: None }
    }

    /// In this folder, which is made when there is something to keep.
    #[must_use]
    pub fn in_folder(folder: impl AsRef<Path>) -> Self {
        Self {
            folder: Some(Arc::from(folder.as_ref())),
        }
    }

    /// The place of one server.
    pub(crate) fn shelf(&self, fingerprint: &str) -> Option<Shelf> {
        let folder = self.folder.as_ref()?;
        Some(Shelf::new(folder, fingerprint))
    }
}
