//! Complete lists of a server.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::{Era, ErrorCode, Feature, Revision};
use mcpact_translate::shape::{ShapeError, result};
use mcpact_translate::tasks::with_task_support;
use mcpact_wire::raw::Object;
use sha2::{Digest, Sha256};

use crate::aggregate::list_defects::ListDefects;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::{Page, ServerItems};
use crate::cache::{CachedList, ServerMetadata, ServerProfile};
use crate::exchange::refusal;
use crate::target::{Target, digest};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::info::ChangeListener;

/// A whole list as the server gave it.
#[derive(Debug)]
pub(crate) struct ServerList {
    kind: ListKind,
    revision: Revision,
    pages: Vec<ByteString>,
    /// Tells what is in it from what is in another one, wherever its pages end.
    digest: [u8; 32],
    count: usize,
    defects: ListDefects,
}

/// Why there is no list.
#[derive(Debug)]
pub(crate) enum ListError {
    /// The server is not there, or has gone meanwhile.
    Lost(ServeError),
    /// It is there, and does not answer.
    Late(ServeError),
    /// It is there, and says something else than a list.
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
            defects,
            pages,
        }
    }

    /// A list of which the server has nothing.
    pub(crate) fn empty(kind: ListKind, revision: Revision) -> Self {
        Self::new(kind, revision, Vec::new())
    }

    /// Tells what is in it from what is in another one.
    pub(crate) const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether there is the same in both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// A list of an earlier run.
    pub(crate) fn recalled(kept: &CachedList) -> Self {
        let pages = kept.pages.iter().map(|page| ByteString::from(page.clone()));
        Self::new(kept.kind, kept.revision, pages.collect())
    }

    /// The same for a later run.
    pub(crate) fn kept(&self, reader: Box<str>) -> CachedList {
        let pages = self.pages.iter().map(ToString::to_string);
        CachedList {
            kind: self.kind,
            reader,
            revision: self.revision,
            pages: pages.collect(),
        }
    }

    /// How many items it has.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The names of what it has.
    pub(crate) fn names(&self) -> Vec<String> {
        let part = self.part(0, self.revision);
        let items = part.items.iter();
        let named = items.filter_map(|item| {
            let item = Object::parse(item).ok()?;
            item.get_str("name").map(|name| name.to_string())
        });
        named.collect()
    }

    /// What of it is left out, in words; none if nothing is.
    pub(crate) fn left_out(&self) -> Option<String> {
        self.defects.describe(self.kind)
    }

    /// Its items in the words of a client of this revision.
    pub(crate) fn part(&self, server: usize, client: Revision) -> ServerItems {
        let mut part = ServerItems {
            server,
            items: Vec::new(),
            ttl_ms: 0,
        };
        for (at, page) in self.pages.iter().enumerate() {
            let raw = &self.defects.valid_page(self.kind, page);
            let method = self.kind.method();
            let shaped = result(method, raw, self.revision, client, None)
                .and_then(|page| self.offering_tasks(page, client));
            let Some(page) = shaped
                .as_deref()
                .ok()
                .and_then(|r| Page::parse(self.kind, r))
            else {
                tracing::warn!(%method, "a page of the server cannot be shown");
                continue;
            };
            if at == 0 {
                part.ttl_ms = page.ttl_ms;
            }
            part.items.extend(page.items.into_iter().map(Box::from));
        }
        part
    }

    /// Every tool of a modern server runs as a task that is hosted here.
    fn offering_tasks<'p>(
        &self,
        page: Cow<'p, str>,
        client: Revision,
    ) -> Result<Cow<'p, str>, ShapeError> {
        let hosts = self.kind == ListKind::Tools
            && self.revision.has(Feature::TasksExtension)
            && client.has(Feature::TasksCore);
        if !hosts {
            return Ok(page);
        }
        Ok(Cow::Owned(with_task_support(&page)?.into_owned()))
    }
}

/// Accepts a client of the aggregator at one server.
pub(crate) async fn receive(
    server: &UpstreamServer,
    hello: ClientHello<'_>,
    identity: &ClientIdentity,
) -> Result<Arc<ServerBinding>, ServeError> {
    let ClientSetup { state, .. } = server.admit(hello, identity).await?;
    let binding = state.and_then(|state| state.bound().cloned());
    binding.ok_or_else(|| {
        let why = String::from("the client did not introduce itself in a way that can be read");
        refusal(
            ErrorCode::InvalidParams.code(),
            why,
            None,
            Revision::newest(Era::Modern),
        )
    })
}

/// What the server last said about itself.
pub(crate) fn profile(server: &UpstreamServer) -> Option<Arc<ServerProfile>> {
    server.shared.info_cache.profile()
}

/// From here on this one hears of changes.
pub(crate) fn set_listener(server: &UpstreamServer, listener: std::sync::Weak<dyn ChangeListener>) {
    server.shared.info_cache.tell_to(listener);
}

/// Whether changes of its lists are heard of at the moment.
pub(crate) fn can_tell(server: &UpstreamServer) -> bool {
    server.shared.info_cache.can_tell()
}

/// What the server said in an earlier run.
pub(crate) fn recall(server: &UpstreamServer, record: &ServerMetadata) {
    let has_tasks = record.profile.revision.has(Feature::TasksCore);
    let tools = record.lists.iter().filter(|l| l.kind == ListKind::Tools);
    for page in tools.flat_map(|list| &list.pages) {
        server.shared.book.learn(page);
        // What was kept back is not served from memory.
        server.shared.pins.check(page);
        if has_tasks {
            server.shared.tool_tasks.learn(page);
        }
    }
    server.shared.info_cache.recall(record.profile.clone());
}

/// Returns the error for a server that needs approval and has none.
pub(crate) async fn unapproved(server: &UpstreamServer) -> Option<ServeError> {
    let kind = server.shared.check_approved().await.err()?;
    Some(server.shared.error(kind).into())
}

/// Returns true for an HTTP server, which needs no local process.
pub(crate) fn is_remote(server: &UpstreamServer) -> bool {
    matches!(server.shared.target, Target::Url { .. })
}

/// What tells it from every other server, if it can be kept what it says.
pub(crate) fn fingerprint(server: &UpstreamServer) -> Option<String> {
    let target = server.shared.target.fingerprint()?;
    let mode = format!("{:?}", server.settings.mode);
    Some(digest([target.as_bytes(), mode.as_bytes()]))
}

/// Returns a binding for requests on behalf of all clients, if the server is modern and running.
pub(crate) fn shared_binding(server: &UpstreamServer) -> Option<Arc<ServerBinding>> {
    let pool = server.modern()?;
    let connection = pool.open_connection()?;
    let is_modern = connection.revision().era() == Era::Modern;
    is_modern.then(|| Arc::new(ServerBinding::passing(pool.first(), Some(pool))))
}

/// Returns the binding of modern clients with these capabilities, if their legacy server is running.
pub(crate) fn running_binding(
    server: &UpstreamServer,
    capabilities: &str,
    identity: &ClientIdentity,
) -> Option<Arc<ServerBinding>> {
    let pool = server.known_pool(capabilities, identity)?;
    pool.open_connection()?;
    Some(Arc::new(ServerBinding::passing(pool.first(), Some(pool))))
}
