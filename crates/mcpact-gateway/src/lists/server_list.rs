//! Complete list of a server.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use mcpact_spec::{Feature, Revision};
use mcpact_translate::shape::result;
use mcpact_translate::tasks::with_task_support;
use sha2::{Digest, Sha256};

use crate::aggregate::list_defects::ListDefects;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::{Page, ServerItems};
use crate::cache::CachedList;
use crate::error::ServeError;
use crate::sync::lock;

/// Complete list of a server, in the revision of the server.
#[derive(Debug)]
pub(crate) struct ServerList {
    kind: ListKind,
    revision: Revision,
    pages: Vec<ByteString>,
    /// Digest of the items, independent of the pages.
    pub(crate) digest: [u8; 32],
    count: usize,
    /// True if the list may name a view.
    pub(crate) has_views: bool,
    defects: ListDefects,
    /// Items in the revisions of clients.
    shaped: Mutex<Vec<(Revision, Arc<ServerItems>)>>,
}

/// Failure of a list request.
#[derive(Debug)]
pub(crate) enum ListError {
    /// The server is unavailable, or the connection was lost.
    Lost(ServeError),
    /// The server did not answer in time.
    Late(ServeError),
    /// The server answered with an error or an invalid list.
    Refused(ServeError),
}

impl ServerList {
    pub(crate) fn new(kind: ListKind, revision: Revision, pages: Vec<ByteString>) -> Self {
        let mut digest = Sha256::new();
        digest.update(revision.as_str());
        let (items, defects) = ListDefects::check(kind, pages.iter().map(|page| &**page));
        for item in &items {
            digest.update(item.len().to_le_bytes());
            digest.update(item);
        }
        Self {
            kind,
            revision,
            digest: digest.finalize().into(),
            count: items.len(),
            has_views: pages.iter().any(|page| page.contains("\"ui:")),
            defects,
            pages,
            shaped: Mutex::default(),
        }
    }

    /// Returns true if both lists have the same items.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Returns a list of the cache file.
    pub(crate) fn restored(stored: &CachedList) -> Self {
        let pages = stored.pages.iter();
        let pages = pages.map(|page| ByteString::from(page.clone()));
        Self::new(stored.kind, stored.revision, pages.collect())
    }

    /// Returns the list in the form of the cache file.
    pub(crate) fn stored(&self, reader: Box<str>) -> CachedList {
        let pages = self.pages.iter().map(ToString::to_string);
        CachedList {
            kind: self.kind,
            reader,
            revision: self.revision,
            pages: pages.collect(),
        }
    }

    /// Returns the number of items.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the names of the items.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.items(self.revision);
        let keys = items.items.iter().filter_map(|item| item.key.as_deref());
        keys.map(String::from).collect()
    }

    /// Describes the parts of the list that are left out; none if it is complete.
    pub(crate) fn left_out(&self) -> Option<String> {
        self.defects.describe(self.kind)
    }

    /// Returns the items in the revision of a client.
    pub(crate) fn items(&self, client: Revision) -> Arc<ServerItems> {
        let mut shaped = lock(&self.shaped);
        if let Some((_, items)) = shaped.iter().find(|(of, _)| *of == client) {
            return Arc::clone(items);
        }
        let items = Arc::new(self.shape(client));
        // There is one for each revision at most.
        shaped.push((client, Arc::clone(&items)));
        items
    }

    fn shape(&self, client: Revision) -> ServerItems {
        let mut all = ServerItems::default();
        // The gateway hosts the calls of a modern server as tasks.
        let has_hosted_tasks = self.kind == ListKind::Tools
            && self.revision.has(Feature::TasksExtension)
            && client.has(Feature::TasksCore);
        for (at, page) in self.pages.iter().enumerate() {
            let valid = self.defects.valid_page(self.kind, page);
            let method = self.kind.method();
            let shaped = result(method, &valid, self.revision, client, None);
            let shaped = shaped.and_then(|page| match has_hosted_tasks {
                true => Ok(Cow::Owned(with_task_support(&page)?.into_owned())),
                false => Ok(page),
            });
            // The items of an unchanged page use its memory.
            let page = match (&shaped, &valid) {
                (Ok(Cow::Borrowed(_)), Cow::Borrowed(_)) => page.clone(),
                (Ok(shaped), _) => ByteString::from(&**shaped),
                (Err(_), _) => ByteString::new(),
            };
            let Some(parsed) = Page::parse(self.kind, &page) else {
                tracing::warn!(%method, "list page dropped: it cannot be translated");
                continue;
            };
            if at == 0 {
                all.ttl_ms = parsed.ttl_ms;
            }
            for item in parsed.items {
                all.push(self.kind, page.slice_ref(item));
            }
        }
        all
    }
}
