//! A client of a aggregator, and the callers that stand for it at the servers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mcpact::server::backend::{BackendRequest, ClientIdentity, ClientKey};
use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::policy::Reading;
use mcpact_spec::{Method, Side};
use mcpact_translate::lifecycle::Fingerprint;
use mcpact_wire::envelope::Meta;
use mcpact_wire::model::initialize::InitializeParams;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::OnceCell;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::sink::WeakClientSink;
use crate::error::ServeError;
use crate::lists::own::{OwnInstance, OwnLists};
use crate::lists::scope::Audience;
use crate::lists::{bindings, own, refresh};
use crate::subscriptions::watched_uris::WatchedUris;
use crate::sync::lock;
use crate::upstream::affinity::parted;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::{SavedHello, again};

/// How many kinds of modern clients are known at a time; the oldest make room.
const KINDS: usize = 64;

/// What is remembered about a client in its session; modern clients that declare the same share it.
#[derive(Debug)]
pub(crate) struct DownstreamClient {
    identity: ClientIdentity,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) declared: CapabilityBits,
    pub(crate) hello: SavedHello,
    parts: Mutex<HashMap<u64, Arc<OnceCell<Arc<ServerBinding>>>>>,
    /// A legacy client, which stays.
    sink: OnceLock<WeakClientSink>,
    is_ready: AtomicBool,
    /// Which log messages a legacy client wants, as it said it.
    level: Mutex<Option<BackendRequest>>,
    /// What a legacy client has subscribed to.
    pub(crate) watched: Arc<WatchedUris>,
    /// How it subscribes, for servers that come later.
    subscribing: Mutex<Option<BackendRequest>>,
    /// What it is shown that nobody else is.
    pub(crate) own_lists: OwnLists,
}

/// The modern clients, by what they declare.
#[derive(Debug, Default)]
pub(crate) struct ModernClients {
    kinds: VecDeque<Arc<DownstreamClient>>,
}

impl ModernClients {
    pub(crate) fn guest(
        &mut self,
        meta: &Meta<'_>,
        identity: &ClientIdentity,
    ) -> Arc<DownstreamClient> {
        let declared = meta.client_capabilities.unwrap_or("{}");
        let known = self.kinds.iter().find(|guest| {
            let SavedHello::Request { capabilities, .. } = &guest.hello else {
                return false;
            };
            **capabilities == *declared && guest.identity == *identity
        });
        if let Some(guest) = known {
            return Arc::clone(guest);
        }
        let hello = SavedHello::Request {
            capabilities: Box::from(declared),
            info: meta.client_info.map(Box::from),
        };
        let guest = Arc::new(DownstreamClient::new(hello, declared, identity));
        self.kinds.truncate(KINDS - 1);
        self.kinds.push_front(Arc::clone(&guest));
        guest
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<DownstreamClient>> {
        self.kinds.iter().cloned()
    }

    /// Somebody has gone who had a connection for itself; what was kept for it.
    pub(crate) fn without(&mut self, identity: &ClientIdentity) -> Vec<Arc<DownstreamClient>> {
        parted(&mut self.kinds, identity, |guest| &guest.identity.key)
    }
}

impl DownstreamClient {
    /// Whether both are the same client; a modern one may have been forgotten meanwhile.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.hello, &other.hello) {
            (
                SavedHello::Request { capabilities, .. },
                SavedHello::Request {
                    capabilities: others,
                    ..
                },
            ) => capabilities == others && self.identity == other.identity,
            _ => std::ptr::eq(self, other),
        }
    }

    /// On whose behalf it comes; empty where nobody is told apart.
    pub(crate) fn principal(&self) -> &str {
        &self.identity.principal
    }

    /// A client that made a handshake with these parameters.
    pub(crate) fn of_handshake(params: &str, identity: &ClientIdentity) -> Self {
        let parsed = InitializeParams::parse(Some(params));
        let declared = parsed.ok().and_then(|params| params.capabilities);
        let hello = SavedHello::Handshake {
            params: Box::from(params),
        };
        Self::new(hello, declared.unwrap_or("{}"), identity)
    }

    fn new(hello: SavedHello, declared: &str, identity: &ClientIdentity) -> Self {
        let declared = CapabilitySet::parse(Side::Client, Some(declared), Reading::Lenient)
            .unwrap_or_else(|_| CapabilitySet::empty(Side::Client));
        Self {
            identity: identity.clone(),
            fingerprint: Fingerprint::of(&declared),
            declared: declared.declared(),
            hello,
            parts: Mutex::default(),
            sink: OnceLock::new(),
            is_ready: AtomicBool::new(false),
            level: Mutex::default(),
            watched: Arc::default(),
            subscribing: Mutex::default(),
            own_lists: OwnLists::default(),
        }
    }

    /// ClientRef stands for it at a server, which is reached if it has to be.
    pub(crate) async fn part(
        self: &Arc<Self>,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let received = match &self.hello {
            SavedHello::Request { .. } => self.receive(entry).await,
            SavedHello::Handshake { .. } => {
                let cell = Arc::clone(lock(&self.parts).entry(entry.number).or_default());
                let made = cell.get_or_try_init(|| self.introduce(aggregator, entry));
                made.await.cloned()
            }
        };
        self.received(aggregator, entry, &received);
        if received.is_ok() {
            own::refresh_on_new_instance(aggregator, entry, self);
        }
        received
    }

    /// ClientRef stands for nobody at a server, which is reached if it has to be, where a list is fetched for those who began
    /// like this client.
    pub(crate) async fn internal_binding(
        &self,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let (hello, principal) = (&self.hello, self.principal());
        let received = bindings::internal_binding(&entry.server, hello, principal).await;
        self.received(aggregator, entry, &received);
        received
    }

    fn received(
        &self,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
        received: &Result<Arc<ServerBinding>, ServeError>,
    ) {
        entry.note_outcome(received.as_ref().err());
        if received.is_ok() && entry.is_to_be_verified() {
            refresh::refresh_stale(aggregator, entry);
        }
    }

    /// ClientRef stands for nobody at a server, if it is awake for that.
    pub(crate) fn running_internal_binding(
        &self,
        entry: &ServerEntry,
    ) -> Option<Arc<ServerBinding>> {
        let shared = bindings::shared_binding(&entry.server);
        shared.or_else(|| {
            let server = &entry.server;
            bindings::running_internal_binding(server, &self.hello, self.principal())
        })
    }

    /// Its instance of a server, if it has ever had one.
    pub(crate) fn own_instance(&self, entry: &ServerEntry) -> Option<OwnInstance> {
        match &self.hello {
            SavedHello::Request { capabilities, .. } => {
                own::instance_of(&entry.server, capabilities, &self.identity)
            }
            SavedHello::Handshake { .. } => {
                let binding = lock(&self.parts).get(&entry.number)?.get().cloned()?;
                Some(binding.own_instance())
            }
        }
    }

    /// ClientRef sees what its own instances list: modern clients that nothing tells apart share them.
    pub(crate) const fn audience(&self) -> Audience {
        match (&self.hello, &self.identity.key) {
            (SavedHello::Request { .. }, ClientKey::None) => Audience::All,
            (SavedHello::Request { .. }, ClientKey::Connection(_) | ClientKey::Key(_))
            | (SavedHello::Handshake { .. }, _) => Audience::Owner,
        }
    }

    /// ClientRef stands for it at a server that is awake.
    pub(crate) fn awake_part(&self, entry: &ServerEntry) -> Option<Arc<ServerBinding>> {
        if let Some(shared) = bindings::shared_binding(&entry.server) {
            return Some(shared);
        }
        let binding = match &self.hello {
            SavedHello::Request { capabilities, .. } => {
                bindings::running_binding(&entry.server, capabilities, &self.identity)?
            }
            SavedHello::Handshake { .. } => {
                let parts = lock(&self.parts);
                parts.get(&entry.number)?.get().cloned()?
            }
        };
        binding.is_awake().then_some(binding)
    }

    /// Reaches a server of which nothing is known, as whoever comes will need it.
    pub(crate) async fn meet(&self, entry: &ServerEntry) {
        let profile = self.receive(entry).await;
        entry.note_outcome(profile.as_ref().err());
    }

    /// ClientRef stands for it at a server, as it began here.
    async fn receive(&self, entry: &ServerEntry) -> Result<Arc<ServerBinding>, ServeError> {
        self.hello.receive(&entry.server, &self.identity).await
    }

    /// A legacy client makes a handshake with a server when it first needs it.
    async fn introduce(
        &self,
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.receive(entry).await?;
        if let Some(sink) = self.sink.get().and_then(WeakClientSink::near) {
            let view = Rewriter::new(aggregator, entry, &self.watched);
            entry.server.settle(&binding, &sink.seeing(Arc::new(view)));
        }
        if self.is_ready.load(Ordering::Acquire) {
            binding.observe(Method::Initialized, None);
        }
        let level = lock(&self.level).as_ref().map(again);
        if let (Some(level), Some(sink)) = (level, self.sink.get().and_then(WeakClientSink::near)) {
            // A server that keeps no log has nothing to leave out.
            let _ = entry.server.carry(level, Arc::clone(&binding), sink).await;
        }
        Ok(binding)
    }

    /// It is there to stay.
    pub(crate) fn settle(&self, sink: WeakClientSink) {
        // A session opens once.
        let _ = self.sink.set(sink);
    }

    /// It tells something; whoever it has profile is told.
    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_ready.store(true, Ordering::Release);
        }
        for binding in self.callers() {
            binding.observe(method, params);
        }
    }

    /// Those who stand for it already.
    fn callers(&self) -> Vec<Arc<ServerBinding>> {
        let parts = lock(&self.parts);
        parts
            .values()
            .filter_map(|part| part.get().cloned())
            .collect()
    }

    /// At which servers it is known, by number.
    pub(crate) fn profile(&self) -> Vec<u64> {
        let parts = lock(&self.parts);
        let profile = parts.iter().filter(|(_, part)| part.get().is_some());
        profile.map(|(number, _)| *number).collect()
    }

    /// It subscribes to something.
    pub(crate) fn subscribes(&self, request: &BackendRequest) {
        lock(&self.subscribing).get_or_insert_with(|| again(request));
    }

    /// A request that begins or ends a subscription to this, if it has ever made one.
    pub(crate) fn subscription(&self, method: Method, uri: &str) -> Option<BackendRequest> {
        let request = lock(&self.subscribing).as_ref().map(again)?;
        let params = ObjectWriter::new().text("uri", uri).finish();
        Some(BackendRequest {
            method: Some(method),
            name: method.as_str().to_owned(),
            params: params.into(),
            ..request
        })
    }

    /// Nobody stands for it any more at servers that are not there; their calls that run go on.
    pub(crate) fn stay_at(&self, is_there: impl Fn(u64) -> bool) {
        lock(&self.parts).retain(|server, _| is_there(*server));
    }

    /// How a legacy client is told what belongs to no request.
    pub(crate) fn weak_sink(&self) -> Option<&WeakClientSink> {
        self.sink.get()
    }

    /// Which log messages it wants, for servers that it meets later.
    pub(crate) fn want_logs(&self, request: BackendRequest) {
        *lock(&self.level) = Some(request);
    }
}
