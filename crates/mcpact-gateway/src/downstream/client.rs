//! A client of a hub, and the callers that stand for it at the servers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::ServeError;
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
use crate::aggregate::aggregator::lock;
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::sink::WeakClientSink;
use crate::lists::own::OwnLists;
use crate::lists::own_instance::OwnInstance;
use crate::lists::server_list::ListAudience;
use crate::subscriptions::watched_uris::WatchedUris;
use crate::upstream::affinity::parted;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::SavedHello;
use crate::upstream::pending::again;

/// How many kinds of modern clients are known at a time; the oldest make room.
const KINDS: usize = 64;

/// What is remembered about a client in its session; modern clients that declare the same share it.
#[derive(Debug)]
pub(crate) struct DownstreamClient {
    visitor: ClientIdentity,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) declared: CapabilityBits,
    pub(crate) opening: SavedHello,
    parts: Mutex<HashMap<u64, Arc<OnceCell<Arc<ServerBinding>>>>>,
    /// A legacy client, which stays.
    ear: OnceLock<WeakClientSink>,
    is_ready: AtomicBool,
    /// Which log messages a legacy client wants, as it said it.
    level: Mutex<Option<BackendRequest>>,
    /// What a legacy client has subscribed to.
    pub(crate) watched: Arc<WatchedUris>,
    /// How it subscribes, for servers that come later.
    subscribing: Mutex<Option<BackendRequest>>,
    /// What it is shown that nobody else is.
    pub(crate) own: OwnLists,
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
        visitor: &ClientIdentity,
    ) -> Arc<DownstreamClient> {
        let declared = meta.client_capabilities.unwrap_or("{}");
        let known = self.kinds.iter().find(|guest| {
            let SavedHello::Request { capabilities, .. } = &guest.opening else {
                return false;
            };
            **capabilities == *declared && guest.visitor == *visitor
        });
        if let Some(guest) = known {
            return Arc::clone(guest);
        }
        let opening = SavedHello::Request {
            capabilities: Box::from(declared),
            info: meta.client_info.map(Box::from),
        };
        let guest = Arc::new(DownstreamClient::new(opening, declared, visitor));
        self.kinds.truncate(KINDS - 1);
        self.kinds.push_front(Arc::clone(&guest));
        guest
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<DownstreamClient>> {
        self.kinds.iter().cloned()
    }

    /// Somebody has gone who had a connection for itself; what was kept for it.
    pub(crate) fn without(&mut self, visitor: &ClientIdentity) -> Vec<Arc<DownstreamClient>> {
        parted(&mut self.kinds, visitor, |guest| &guest.visitor.key)
    }
}

impl DownstreamClient {
    /// Whether both are the same client; a modern one may have been forgotten meanwhile.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.opening, &other.opening) {
            (
                SavedHello::Request { capabilities, .. },
                SavedHello::Request {
                    capabilities: others,
                    ..
                },
            ) => capabilities == others && self.visitor == other.visitor,
            _ => std::ptr::eq(self, other),
        }
    }

    /// On whose behalf it comes; empty where nobody is told apart.
    pub(crate) fn principal(&self) -> &str {
        &self.visitor.principal
    }

    /// A client that made a handshake with these parameters.
    pub(crate) fn of_handshake(params: &str, visitor: &ClientIdentity) -> Self {
        let parsed = InitializeParams::parse(Some(params));
        let declared = parsed.ok().and_then(|params| params.capabilities);
        let opening = SavedHello::Handshake {
            params: Box::from(params),
        };
        Self::new(opening, declared.unwrap_or("{}"), visitor)
    }

    fn new(opening: SavedHello, declared: &str, visitor: &ClientIdentity) -> Self {
        let declared = CapabilitySet::parse(Side::Client, Some(declared), Reading::Lenient)
            .unwrap_or_else(|_| CapabilitySet::empty(Side::Client));
        Self {
            visitor: visitor.clone(),
            fingerprint: Fingerprint::of(&declared),
            declared: declared.declared(),
            opening,
            parts: Mutex::default(),
            ear: OnceLock::new(),
            is_ready: AtomicBool::new(false),
            level: Mutex::default(),
            watched: Arc::default(),
            subscribing: Mutex::default(),
            own: OwnLists::default(),
        }
    }

    /// ClientRef stands for it at a server, which is reached if it has to be.
    pub(crate) async fn part(
        self: &Arc<Self>,
        hub: &Arc<Aggregator>,
        member: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let received = match &self.opening {
            SavedHello::Request { .. } => self.receive(member).await,
            SavedHello::Handshake { .. } => {
                let cell = Arc::clone(lock(&self.parts).entry(member.number).or_default());
                let made = cell.get_or_try_init(|| self.introduce(hub, member));
                made.await.cloned()
            }
        };
        self.received(hub, member, &received);
        if received.is_ok() {
            hub.look_at_own(member, self);
        }
        received
    }

    /// ClientRef stands for nobody at a server, which is reached if it has to be, where a list is fetched for those who began
    /// like this client.
    pub(crate) async fn nobody(
        &self,
        hub: &Arc<Aggregator>,
        member: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let (opening, principal) = (&self.opening, self.principal());
        let received = member.bridge.nobody(opening, principal).await;
        self.received(hub, member, &received);
        received
    }

    fn received(
        &self,
        hub: &Arc<Aggregator>,
        member: &Arc<ServerEntry>,
        received: &Result<Arc<ServerBinding>, ServeError>,
    ) {
        member.judge(received.as_ref().err());
        if received.is_ok() && member.is_to_be_verified() {
            hub.look_again(member);
        }
    }

    /// ClientRef stands for nobody at a server, if it is awake for that.
    pub(crate) fn awake_nobody(&self, member: &ServerEntry) -> Option<Arc<ServerBinding>> {
        let everybody = member.bridge.everybody();
        everybody.or_else(|| {
            let bridge = &member.bridge;
            bridge.nobody_awake(&self.opening, self.principal())
        })
    }

    /// Its instance of a server, if it has ever had one.
    pub(crate) fn own_instance(&self, member: &ServerEntry) -> Option<OwnInstance> {
        match &self.opening {
            SavedHello::Request { capabilities, .. } => {
                member.bridge.instance_of(capabilities, &self.visitor)
            }
            SavedHello::Handshake { .. } => {
                let caller = lock(&self.parts).get(&member.number)?.get().cloned()?;
                Some(caller.own_instance())
            }
        }
    }

    /// ClientRef sees what its own instances list: modern clients that nothing tells apart share them.
    pub(crate) const fn readers(&self) -> ListAudience {
        match (&self.opening, &self.visitor.key) {
            (SavedHello::Request { .. }, ClientKey::None) => ListAudience::Many,
            (SavedHello::Request { .. }, ClientKey::Connection(_) | ClientKey::Key(_))
            | (SavedHello::Handshake { .. }, _) => ListAudience::One,
        }
    }

    /// ClientRef stands for it at a server that is awake.
    pub(crate) fn awake_part(&self, member: &ServerEntry) -> Option<Arc<ServerBinding>> {
        if let Some(everybody) = member.bridge.everybody() {
            return Some(everybody);
        }
        let caller = match &self.opening {
            SavedHello::Request { capabilities, .. } => {
                member.bridge.standing(capabilities, &self.visitor)?
            }
            SavedHello::Handshake { .. } => {
                let parts = lock(&self.parts);
                parts.get(&member.number)?.get().cloned()?
            }
        };
        caller.is_awake().then_some(caller)
    }

    /// Reaches a server of which nothing is known, as whoever comes will need it.
    pub(crate) async fn meet(&self, member: &ServerEntry) {
        let met = self.receive(member).await;
        member.judge(met.as_ref().err());
    }

    /// ClientRef stands for it at a server, as it began here.
    async fn receive(&self, member: &ServerEntry) -> Result<Arc<ServerBinding>, ServeError> {
        self.opening.receive(&member.bridge, &self.visitor).await
    }

    /// A legacy client makes a handshake with a server when it first needs it.
    async fn introduce(
        &self,
        hub: &Arc<Aggregator>,
        member: &Arc<ServerEntry>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let caller = self.receive(member).await?;
        if let Some(ear) = self.ear.get().and_then(WeakClientSink::near) {
            let view = Rewriter::new(hub, member, &self.watched);
            member.bridge.settle(&caller, &ear.seeing(Arc::new(view)));
        }
        if self.is_ready.load(Ordering::Acquire) {
            caller.observe(Method::Initialized, None);
        }
        let level = lock(&self.level).as_ref().map(again);
        if let (Some(level), Some(ear)) = (level, self.ear.get().and_then(WeakClientSink::near)) {
            // A server that keeps no log has nothing to leave out.
            let _ = member.bridge.carry(level, Arc::clone(&caller), ear).await;
        }
        Ok(caller)
    }

    /// It is there to stay.
    pub(crate) fn settle(&self, ear: WeakClientSink) {
        // A session opens once.
        let _ = self.ear.set(ear);
    }

    /// It tells something; whoever it has met is told.
    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_ready.store(true, Ordering::Release);
        }
        for caller in self.callers() {
            caller.observe(method, params);
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
    pub(crate) fn met(&self) -> Vec<u64> {
        let parts = lock(&self.parts);
        let met = parts.iter().filter(|(_, part)| part.get().is_some());
        met.map(|(number, _)| *number).collect()
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
    pub(crate) fn far_ear(&self) -> Option<&WeakClientSink> {
        self.ear.get()
    }

    /// Which log messages it wants, for servers that it meets later.
    pub(crate) fn want_logs(&self, request: BackendRequest) {
        *lock(&self.level) = Some(request);
    }
}
