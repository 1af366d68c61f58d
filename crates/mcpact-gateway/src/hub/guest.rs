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

use super::member::Member;
use super::own::Own;
use super::view::PartView;
use super::watched::Watched;
use super::{Hub, lock};
use crate::bridge::{Caller, FarEar, Kept, OwnInstance, Readers, again, parted};

/// How many kinds of modern clients are known at a time; the oldest make room.
const KINDS: usize = 64;

/// What is remembered about a client in its session; modern clients that declare the same share it.
#[derive(Debug)]
pub(crate) struct Guest {
    visitor: ClientIdentity,
    pub(super) fingerprint: Fingerprint,
    pub(super) declared: CapabilityBits,
    pub(super) opening: Kept,
    parts: Mutex<HashMap<u64, Arc<OnceCell<Arc<Caller>>>>>,
    /// A legacy client, which stays.
    ear: OnceLock<FarEar>,
    is_ready: AtomicBool,
    /// Which log messages a legacy client wants, as it said it.
    level: Mutex<Option<BackendRequest>>,
    /// What a legacy client has subscribed to.
    pub(super) watched: Arc<Watched>,
    /// How it subscribes, for servers that come later.
    subscribing: Mutex<Option<BackendRequest>>,
    /// What it is shown that nobody else is.
    pub(super) own: Own,
}

/// The modern clients, by what they declare.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    kinds: VecDeque<Arc<Guest>>,
}

impl Visitors {
    pub(super) fn guest(&mut self, meta: &Meta<'_>, visitor: &ClientIdentity) -> Arc<Guest> {
        let declared = meta.client_capabilities.unwrap_or("{}");
        let known = self.kinds.iter().find(|guest| {
            let Kept::Request { capabilities, .. } = &guest.opening else {
                return false;
            };
            **capabilities == *declared && guest.visitor == *visitor
        });
        if let Some(guest) = known {
            return Arc::clone(guest);
        }
        let opening = Kept::Request {
            capabilities: Box::from(declared),
            info: meta.client_info.map(Box::from),
        };
        let guest = Arc::new(Guest::new(opening, declared, visitor));
        self.kinds.truncate(KINDS - 1);
        self.kinds.push_front(Arc::clone(&guest));
        guest
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Guest>> {
        self.kinds.iter().cloned()
    }

    /// Somebody has gone who had a connection for itself; what was kept for it.
    pub(super) fn without(&mut self, visitor: &ClientIdentity) -> Vec<Arc<Guest>> {
        parted(&mut self.kinds, visitor, |guest| &guest.visitor.key)
    }
}

impl Guest {
    /// Whether both are the same client; a modern one may have been forgotten meanwhile.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.opening, &other.opening) {
            (
                Kept::Request { capabilities, .. },
                Kept::Request {
                    capabilities: others,
                    ..
                },
            ) => capabilities == others && self.visitor == other.visitor,
            _ => std::ptr::eq(self, other),
        }
    }

    /// On whose behalf it comes; empty where nobody is told apart.
    pub(super) fn principal(&self) -> &str {
        &self.visitor.principal
    }

    /// A client that made a handshake with these parameters.
    pub(super) fn of_handshake(params: &str, visitor: &ClientIdentity) -> Self {
        let parsed = InitializeParams::parse(Some(params));
        let declared = parsed.ok().and_then(|params| params.capabilities);
        let opening = Kept::Handshake {
            params: Box::from(params),
        };
        Self::new(opening, declared.unwrap_or("{}"), visitor)
    }

    fn new(opening: Kept, declared: &str, visitor: &ClientIdentity) -> Self {
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
            own: Own::default(),
        }
    }

    /// Who stands for it at a server, which is reached if it has to be.
    pub(super) async fn part(
        self: &Arc<Self>,
        hub: &Arc<Hub>,
        member: &Arc<Member>,
    ) -> Result<Arc<Caller>, ServeError> {
        let received = match &self.opening {
            Kept::Request { .. } => self.receive(member).await,
            Kept::Handshake { .. } => {
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

    /// Who stands for nobody at a server, which is reached if it has to be, where a list is fetched for those who began
    /// like this client.
    pub(super) async fn nobody(
        &self,
        hub: &Arc<Hub>,
        member: &Arc<Member>,
    ) -> Result<Arc<Caller>, ServeError> {
        let (opening, principal) = (&self.opening, self.principal());
        let received = member.bridge.nobody(opening, principal).await;
        self.received(hub, member, &received);
        received
    }

    fn received(
        &self,
        hub: &Arc<Hub>,
        member: &Arc<Member>,
        received: &Result<Arc<Caller>, ServeError>,
    ) {
        member.judge(received.as_ref().err());
        if received.is_ok() && member.is_to_be_verified() {
            hub.look_again(member);
        }
    }

    /// Who stands for nobody at a server, if it is awake for that.
    pub(super) fn awake_nobody(&self, member: &Member) -> Option<Arc<Caller>> {
        let everybody = member.bridge.everybody();
        everybody.or_else(|| {
            let bridge = &member.bridge;
            bridge.nobody_awake(&self.opening, self.principal())
        })
    }

    /// Its instance of a server, if it has ever had one.
    pub(super) fn own_instance(&self, member: &Member) -> Option<OwnInstance> {
        match &self.opening {
            Kept::Request { capabilities, .. } => {
                member.bridge.instance_of(capabilities, &self.visitor)
            }
            Kept::Handshake { .. } => {
                let caller = lock(&self.parts).get(&member.number)?.get().cloned()?;
                Some(caller.own_instance())
            }
        }
    }

    /// Who sees what its own instances list: modern clients that nothing tells apart share them.
    pub(super) const fn readers(&self) -> Readers {
        match (&self.opening, &self.visitor.key) {
            (Kept::Request { .. }, ClientKey::None) => Readers::Many,
            (Kept::Request { .. }, ClientKey::Connection(_) | ClientKey::Key(_))
            | (Kept::Handshake { .. }, _) => Readers::One,
        }
    }

    /// Who stands for it at a server that is awake.
    pub(super) fn awake_part(&self, member: &Member) -> Option<Arc<Caller>> {
        if let Some(everybody) = member.bridge.everybody() {
            return Some(everybody);
        }
        let caller = match &self.opening {
            Kept::Request { capabilities, .. } => {
                member.bridge.standing(capabilities, &self.visitor)?
            }
            Kept::Handshake { .. } => {
                let parts = lock(&self.parts);
                parts.get(&member.number)?.get().cloned()?
            }
        };
        caller.is_awake().then_some(caller)
    }

    /// Reaches a server of which nothing is known, as whoever comes will need it.
    pub(super) async fn meet(&self, member: &Member) {
        let met = self.receive(member).await;
        member.judge(met.as_ref().err());
    }

    /// Who stands for it at a server, as it began here.
    async fn receive(&self, member: &Member) -> Result<Arc<Caller>, ServeError> {
        self.opening.receive(&member.bridge, &self.visitor).await
    }

    /// A legacy client makes a handshake with a server when it first needs it.
    async fn introduce(
        &self,
        hub: &Arc<Hub>,
        member: &Arc<Member>,
    ) -> Result<Arc<Caller>, ServeError> {
        let caller = self.receive(member).await?;
        if let Some(ear) = self.ear.get().and_then(FarEar::near) {
            let view = PartView::new(hub, member, &self.watched);
            member.bridge.settle(&caller, &ear.seeing(Arc::new(view)));
        }
        if self.is_ready.load(Ordering::Acquire) {
            caller.observe(Method::Initialized, None);
        }
        let level = lock(&self.level).as_ref().map(again);
        if let (Some(level), Some(ear)) = (level, self.ear.get().and_then(FarEar::near)) {
            // A server that keeps no log has nothing to leave out.
            let _ = member.bridge.carry(level, Arc::clone(&caller), ear).await;
        }
        Ok(caller)
    }

    /// It is there to stay.
    pub(super) fn settle(&self, ear: FarEar) {
        // A session opens once.
        let _ = self.ear.set(ear);
    }

    /// It tells something; whoever it has met is told.
    pub(super) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_ready.store(true, Ordering::Release);
        }
        for caller in self.callers() {
            caller.observe(method, params);
        }
    }

    /// Those who stand for it already.
    fn callers(&self) -> Vec<Arc<Caller>> {
        let parts = lock(&self.parts);
        parts
            .values()
            .filter_map(|part| part.get().cloned())
            .collect()
    }

    /// At which servers it is known, by number.
    pub(super) fn met(&self) -> Vec<u64> {
        let parts = lock(&self.parts);
        let met = parts.iter().filter(|(_, part)| part.get().is_some());
        met.map(|(number, _)| *number).collect()
    }

    /// It subscribes to something.
    pub(super) fn subscribes(&self, request: &BackendRequest) {
        lock(&self.subscribing).get_or_insert_with(|| again(request));
    }

    /// A request that begins or ends a subscription to this, if it has ever made one.
    pub(super) fn subscription(&self, method: Method, uri: &str) -> Option<BackendRequest> {
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
    pub(super) fn stay_at(&self, is_there: impl Fn(u64) -> bool) {
        lock(&self.parts).retain(|server, _| is_there(*server));
    }

    /// How a legacy client is told what belongs to no request.
    pub(super) fn far_ear(&self) -> Option<&FarEar> {
        self.ear.get()
    }

    /// Which log messages it wants, for servers that it meets later.
    pub(super) fn want_logs(&self, request: BackendRequest) {
        *lock(&self.level) = Some(request);
    }
}
