//! Clients of an aggregator, and their bindings to the servers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use mcpact::server::backend::{BackendRequest, ClientIdentity, ClientKey};
use mcpact_engine::capability::CapabilityBits;
use mcpact_spec::Method;
use mcpact_translate::lifecycle::Fingerprint;
use mcpact_wire::envelope::Meta;
use mcpact_wire::model::initialize::InitializeParams;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::OnceCell;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::error::ServeError;
use crate::lists::own::{OwnInstance, OwnLists};
use crate::lists::scope::Audience;
use crate::lists::{bindings, own, refresh};
use crate::subscriptions::watched_uris::WatchedUris;
use crate::sync::lock;
use crate::upstream::accept::lenient;
use crate::upstream::affinity::{Evidence, affinity, remove_disconnected};
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::{SavedClient, SavedHello, without_progress};

/// Maximum number of modern clients to remember.
const MODERN_CLIENTS: usize = 64;

/// Client of several servers: a legacy session, or all modern requests with the same declaration and identity.
#[derive(Debug)]
pub(crate) struct DownstreamClient {
    pub(crate) saved: SavedClient,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) declared: CapabilityBits,
    /// Bindings of a legacy client, by server number.
    bindings: Mutex<HashMap<u64, Arc<OnceCell<Arc<ServerBinding>>>>>,
    /// Resource subscriptions of a legacy client.
    pub(crate) watched: Arc<WatchedUris>,
    /// First subscribe request of a legacy client, the template for later ones.
    subscribe_request: Mutex<Option<BackendRequest>>,
    /// Lists that only this client is shown.
    pub(crate) own_lists: OwnLists,
}

/// Modern clients, the latest first.
#[derive(Debug, Default)]
pub(crate) struct ModernClients {
    clients: VecDeque<Arc<DownstreamClient>>,
}

impl ModernClients {
    /// Returns the client of a request; adds it if it is new.
    pub(crate) fn client(
        &mut self,
        meta: &Meta<'_>,
        identity: &ClientIdentity,
    ) -> Arc<DownstreamClient> {
        let declared = meta.client_capabilities.unwrap_or("{}");
        let is_same = |client: &&Arc<DownstreamClient>| client.is_modern_with(declared, identity);
        if let Some(known) = self.clients.iter().find(is_same) {
            return Arc::clone(known);
        }
        let hello = SavedHello::of_request(meta);
        let client = Arc::new(DownstreamClient::new(hello, declared, identity));
        self.clients.truncate(MODERN_CLIENTS - 1);
        self.clients.push_front(Arc::clone(&client));
        client
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<DownstreamClient>> {
        self.clients.iter().cloned()
    }

    /// Removes and returns the clients of a closed connection.
    pub(crate) fn remove(&mut self, identity: &ClientIdentity) -> Vec<Arc<DownstreamClient>> {
        remove_disconnected(&mut self.clients, identity, |client| {
            &client.saved.identity.key
        })
    }
}

impl DownstreamClient {
    /// Returns true if both are the same client. A modern client may exist twice after it was forgotten.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match &other.saved.hello {
            SavedHello::Request { capabilities, .. } => {
                self.is_modern_with(capabilities, &other.saved.identity)
            }
            SavedHello::Handshake { .. } => std::ptr::eq(self, other),
        }
    }

    fn is_modern_with(&self, declared: &str, identity: &ClientIdentity) -> bool {
        let SavedHello::Request { capabilities, .. } = &self.saved.hello else {
            return false;
        };
        **capabilities == *declared && self.saved.identity == *identity
    }

    /// Returns the principal; empty for anonymous clients.
    pub(crate) fn principal(&self) -> &str {
        self.saved.identity.principal.text()
    }

    /// Returns the part of the principal that decides which instances and lists the client shares.
    pub(crate) fn affinity(&self) -> &str {
        affinity(&self.saved.identity.principal)
    }

    /// Returns what distinguishes the client from others.
    pub(crate) fn evidence(&self) -> Evidence {
        Evidence::of(&self.saved.identity)
    }

    /// Returns a legacy client with these `initialize` parameters.
    pub(crate) fn of_handshake(params: &str, identity: &ClientIdentity) -> Self {
        let parsed = InitializeParams::parse(Some(params));
        let declared = parsed.ok().and_then(|params| params.capabilities);
        let params = params.into();
        let hello = SavedHello::Handshake { params };
        Self::new(hello, declared.unwrap_or("{}"), identity)
    }

    fn new(hello: SavedHello, declared: &str, identity: &ClientIdentity) -> Self {
        let declared = lenient(Some(declared));
        Self {
            saved: SavedClient::new(hello, identity),
            fingerprint: Fingerprint::of(&declared),
            declared: declared.declared(),
            bindings: Mutex::default(),
            watched: Arc::default(),
            subscribe_request: Mutex::default(),
            own_lists: OwnLists::default(),
        }
    }

    /// Returns the client's binding to a server, which is started if needed.
    pub(crate) async fn binding_for(
        self: &Arc<Self>,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let result = match &self.saved.hello {
            SavedHello::Request { .. } => self.saved.bind(&entry.server, None).await,
            SavedHello::Handshake { .. } => {
                let cell = Arc::clone(lock(&self.bindings).entry(entry.number).or_default());
                let bind = || {
                    let rewriter = Rewriter::new(aggregator, entry, &self.watched);
                    self.saved
                        .bind_with_level(&entry.server, Some(Arc::new(rewriter)))
                };
                match cell.get() {
                    Some(binding) => Ok(Arc::clone(binding)),
                    None => Box::pin(cell.get_or_try_init(bind)).await.cloned(),
                }
            }
        };
        record_result(aggregator, entry, &result);
        if result.is_ok() {
            own::refresh_on_new_instance(aggregator, entry, self);
        }
        result
    }

    /// Returns a binding of the gateway itself for list requests with this client's declaration. The server is started
    /// if needed.
    pub(crate) async fn internal_binding(
        &self,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let (hello, affinity) = (&self.saved.hello, self.affinity());
        let result = bindings::internal_binding(&entry.server, hello, affinity).await;
        record_result(aggregator, entry, &result);
        result
    }

    /// Like [`internal_binding`](Self::internal_binding), if the server is running.
    pub(crate) fn running_internal_binding(
        &self,
        entry: &ServerEntry,
    ) -> Option<Arc<ServerBinding>> {
        let server = &entry.server;
        bindings::shared_binding(server).or_else(|| {
            bindings::running_internal_binding(server, &self.saved.hello, self.affinity())
        })
    }

    /// Returns the client's own instance of a server, if it has ever had one.
    pub(crate) fn own_instance(&self, entry: &ServerEntry) -> Option<OwnInstance> {
        match &self.saved.hello {
            SavedHello::Request { capabilities, .. } => {
                own::instance_of(&entry.server, capabilities, &self.saved.identity)
            }
            SavedHello::Handshake { .. } => Some(self.bound(entry.number)?.own_instance()),
        }
    }

    /// Returns the audience of the lists of this client's own instances. Modern clients without a key share instances.
    pub(crate) const fn audience(&self) -> Audience {
        match (&self.saved.hello, &self.saved.identity.key) {
            (SavedHello::Request { .. }, ClientKey::None) => Audience::All,
            _ => Audience::Owner,
        }
    }

    /// Returns the client's binding to a server, if that is running.
    pub(crate) fn running_binding_for(&self, entry: &ServerEntry) -> Option<Arc<ServerBinding>> {
        if let Some(shared) = bindings::shared_binding(&entry.server) {
            return Some(shared);
        }
        let binding = match &self.saved.hello {
            SavedHello::Request { capabilities, .. } => {
                bindings::running_binding(&entry.server, capabilities, &self.saved.identity)
            }
            SavedHello::Handshake { .. } => self.bound(entry.number),
        };
        binding.filter(|binding| binding.open_connection().is_some())
    }

    /// Introduces the client to a server without a known profile.
    pub(crate) async fn introduce(&self, entry: &ServerEntry) {
        let saved = &self.saved;
        let result = saved.hello.bind(&entry.server, &saved.identity).await;
        entry.note_outcome(result.as_ref().err());
    }

    /// Forwards a notification of the client to its servers.
    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        self.saved.observe(method, params);
        let cells: Vec<_> = lock(&self.bindings).values().cloned().collect();
        for binding in cells.iter().filter_map(|cell| cell.get()) {
            binding.observe(method, params);
        }
    }

    fn bound(&self, server: u64) -> Option<Arc<ServerBinding>> {
        lock(&self.bindings).get(&server)?.get().cloned()
    }

    /// Returns true if a legacy client is bound to the server with this number.
    pub(crate) fn is_bound_to(&self, server: u64) -> bool {
        self.bound(server).is_some()
    }

    pub(crate) fn save_subscribe_request(&self, request: &BackendRequest) {
        lock(&self.subscribe_request).get_or_insert_with(|| without_progress(request));
    }

    /// Returns a request that starts or ends a subscription, if the client has ever subscribed.
    pub(crate) fn subscription_request(&self, method: Method, uri: &str) -> Option<BackendRequest> {
        let request = lock(&self.subscribe_request).clone()?;
        let params = ObjectWriter::new().text("uri", uri).finish();
        Some(BackendRequest {
            method: Some(method),
            name: method.as_str().to_owned(),
            params: params.into(),
            ..request
        })
    }

    /// Drops the bindings to removed servers. Their calls in flight continue.
    pub(crate) fn retain_servers(&self, is_present: impl Fn(u64) -> bool) {
        lock(&self.bindings).retain(|server, _| is_present(*server));
    }
}

/// Records the result of an introduction to a server, and refreshes its lists if they may be outdated.
fn record_result(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    result: &Result<Arc<ServerBinding>, ServeError>,
) {
    entry.note_outcome(result.as_ref().err());
    if result.is_ok() && entry.is_to_be_verified() {
        refresh::refresh_stale(aggregator, entry);
    }
}
