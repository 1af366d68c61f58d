//! On which terms clients are served, and which connection serves them.
//!
//! A modern server is stateless: everybody shares its connections, unless it is a program whose strategy says
//! that it keeps something of its clients all the same. Of such a program and of a legacy server, modern clients
//! that declare the same capabilities are told the same, and share, unless the strategy says otherwise and
//! something tells them apart; legacy clients do as the strategy says.

use crate::handover;
use crate::sync::lock;
use crate::upstream::tool_filter;
use std::sync::{Arc, PoisonError};

use crate::downstream::ClientState;
use crate::error::{ServeError, UpstreamError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcpact::server::backend::{ClientHello, ClientIdentity, ClientKey, ClientSetup};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_engine::server::{Listening, ServerTerms};
use mcpact_spec::{Era, Extension, Revision, Side};
use mcpact_translate::lifecycle::{
    Emulation, Introduction, client_capabilities, server_capabilities, with_tasks,
};
use mcpact_wire::envelope::{Meta, Params};
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::InitializeParams;

use crate::aggregate::instructions;
use crate::connection::UpstreamConnection;
use crate::connection::pool::ConnectionPool;
use crate::connection::slot::ConnectionSlot;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{InstanceSharing, SharingPolicy, StartCause, Starter, max_instances};
use crate::upstream::UpstreamServer;
use crate::upstream::affinity::AffinityGroup;
use crate::upstream::affinity::AffinityKey;
use crate::upstream::affinity::GroupTerms;
use crate::upstream::affinity::KINDS;
use crate::upstream::binding::ClientDeclaration;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::SavedHello;
use crate::upstream::rebind::Rebind;
use mcpact::connection::{Connection, Offer};

/// A legacy client, as its handshake shows it.
#[derive(Debug)]
pub(crate) struct LegacyHello {
    declared: CapabilitySet,
    /// What it asks for, or the newest that has a handshake.
    pub(crate) revision: Revision,
    info: Implementation,
}

impl LegacyHello {
    /// None if it does not introduce itself in a way that can be read.
    pub(crate) fn parse(params: &Params<'_>) -> Option<Self> {
        let hello = InitializeParams::parse(params.raw).ok()?;
        let declared = CapabilitySet::parse(Side::Client, hello.capabilities, Reading::Lenient)
            .unwrap_or_else(|_| CapabilitySet::empty(Side::Client));
        let asked = hello.protocol_version.as_deref().and_then(Revision::parse);
        Some(Self {
            declared,
            revision: asked
                .filter(|revision| revision.era() == Era::Legacy)
                .unwrap_or(Revision::newest(Era::Legacy)),
            info: hello.client_info,
        })
    }

    /// What it declares, in the words of a legacy server.
    pub(crate) fn mapped(&self) -> CapabilitySet {
        client_capabilities(&self.declared, self.revision, Revision::newest(Era::Legacy))
    }
}

/// A connection, and the ways by which its like are got.
pub(crate) struct ReachedServer {
    pub(crate) slot: Arc<ConnectionSlot>,
    pub(crate) pool: Option<Arc<ConnectionPool>>,
    connection: Arc<UpstreamConnection>,
}

impl ReachedServer {
    fn of_all(pool: Arc<ConnectionPool>, connection: Arc<UpstreamConnection>) -> Self {
        Self {
            slot: pool.first(),
            pool: Some(pool),
            connection,
        }
    }
}

impl Starter for UpstreamServer {
    /// For clients that declare nothing; a modern server may serve everybody by it.
    fn start(self: Arc<Self>, cause: StartCause) -> BoxFuture<'static, ()> {
        let common = || Arc::clone(&self.common_kind().pool);
        let pool = self.modern().unwrap_or_else(common);
        let starting = async move {
            if pool.open_another(cause).await.is_ok() {
                // A modern one may become everybody's.
                let _ = self.reach(pool.first(), Some(&pool), cause).await;
            }
        };
        starting.boxed()
    }
}

impl UpstreamServer {
    pub(crate) async fn admit(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, ServeError> {
        let welcome = match hello {
            ClientHello::Handshake(params) => self.welcome_legacy(params, identity).await,
            ClientHello::Request(params) => {
                let cause = StartCause::Request;
                self.welcome_modern(params, identity, cause).await
            }
        };
        welcome.map_err(ServeError::from)
    }

    /// Reaches the server for nobody in particular, so that something is known about it.
    pub(crate) async fn meet(&self) -> Result<(), ServeError> {
        let params = Params {
            raw: Some("{}"),
            meta: Meta {
                client_capabilities: Some("{}"),
                ..Meta::default()
            },
            ..Params::default()
        };
        let identity = ClientIdentity::default();
        let profile = self.welcome_modern(&params, &identity, StartCause::Introduction);
        profile.await.map(|_| ()).map_err(ServeError::from)
    }

    /// As whom the server is approached for a client that declares this.
    pub(crate) fn offer(&self, capabilities: CapabilitySet, info: Implementation) -> Offer {
        Offer {
            capabilities,
            info,
            mode: self.settings.mode,
            require: Vec::new(),
            prior: None,
        }
    }

    /// A connection; a modern one becomes everybody's, unless clients are kept apart.
    pub(crate) async fn reach(
        &self,
        slot: Arc<ConnectionSlot>,
        pool: Option<&Arc<ConnectionPool>>,
        cause: StartCause,
    ) -> Result<ReachedServer, UpstreamError> {
        if let Some(shared) = self.modern() {
            let connection = shared.connection_because(cause).await?;
            if connection.revision().era() == Era::Modern {
                return Ok(ReachedServer::of_all(shared, connection));
            }
            // It has come back as a server that tells its clients apart.
            self.unshare(&shared);
        }
        let connection = match pool.and_then(|pool| pool.open_connection()) {
            Some(connection) => connection,
            None => slot.connection_because(cause).await?,
        };
        if connection.revision().era() == Era::Modern && !self.shared.keeps_apart() {
            let shared = self.share(slot, pool);
            self.shared.info_cache.connected();
            let connection = shared.connection_because(cause).await?;
            return Ok(ReachedServer::of_all(shared, connection));
        }
        let pool = pool.map(Arc::clone);
        Ok(ReachedServer {
            slot,
            pool,
            connection,
        })
    }

    /// The ways that everybody shares from here on.
    fn share(
        &self,
        slot: Arc<ConnectionSlot>,
        pool: Option<&Arc<ConnectionPool>>,
    ) -> Arc<ConnectionPool> {
        let of_many = pool.filter(|pool| pool.is_shared());
        let of_all = || {
            let limit = max_instances(&self.shared.run());
            let shared = Arc::clone(&self.shared);
            let sharing = InstanceSharing::Shared;
            Arc::new(ConnectionPool::with_first(shared, slot, sharing, limit))
        };
        let mut modern = self.modern.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(modern.get_or_insert_with(|| of_many.map_or_else(of_all, Arc::clone)))
    }

    fn unshare(&self, pool: &Arc<ConnectionPool>) {
        let mut modern = self.modern.write().unwrap_or_else(PoisonError::into_inner);
        modern.take_if(|shared| Arc::ptr_eq(shared, pool));
    }

    /// Whether a client would be served by a connection that is there.
    pub(crate) fn is_awake_for(&self, hello: &ClientHello<'_>, identity: &ClientIdentity) -> bool {
        if self
            .modern()
            .is_some_and(|pool| pool.open_connection().is_some())
        {
            return true;
        }
        let pool = match hello {
            ClientHello::Request(params) => {
                let declared = params.meta.client_capabilities.unwrap_or("{}");
                self.known_pool(declared, identity)
            }
            ClientHello::Handshake(_)
                if self.shared.sharing_policy() == SharingPolicy::Exclusive =>
            {
                None
            }
            ClientHello::Handshake(params) => LegacyHello::parse(params)
                .and_then(|newcomer| self.known_pool(newcomer.mapped().raw(), identity)),
        };
        pool.is_some_and(|pool| pool.open_connection().is_some())
    }

    async fn welcome_legacy(
        &self,
        params: &Params<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, UpstreamError> {
        let Some(newcomer) = LegacyHello::parse(params) else {
            // The engine refuses it in the right words.
            return Ok(self.bare());
        };
        let offer = self.offer(newcomer.mapped(), newcomer.info.clone());
        let LegacyHello {
            declared,
            revision,
            info,
        } = newcomer;
        let (slot, pool) = self.place(&identity.principal, offer);
        let reached = self.reach(slot, pool.as_ref(), StartCause::Request);
        let ReachedServer {
            slot,
            pool,
            connection,
        } = reached.await?;
        let upstream = connection.upstream.revision();
        let stamp = (upstream.era() == Era::Modern).then(|| {
            let mapped = client_capabilities(&declared, revision, upstream);
            let default_answers = &self.settings.default_answers;
            let told = [
                default_answers.added_to(&mapped),
                default_answers.missing_from(&mapped),
            ];
            let [capabilities, out_of_reach] = told.each_ref().map(|set| set.raw().to_owned());
            let extended = || told.each_ref().map(|set| with_tasks(set).raw().to_owned());
            ClientDeclaration {
                capabilities,
                out_of_reach,
                with_tasks: has_tasks(&connection).then(extended),
                info: info.encode(upstream),
            }
        });
        let hello = SavedHello::of(&ClientHello::Handshake(params));
        let rebind = Rebind::new(upstream.era(), hello, identity);
        Ok(ClientSetup {
            terms: Arc::new(self.terms_on(&connection, revision, &identity.principal)),
            state: Some(Arc::new(ServerBinding::staying(slot, pool, stamp, rebind)).into()),
        })
    }

    /// The way of a legacy client to a legacy server, and with whom it shares it.
    fn place(
        &self,
        principal: &str,
        offer: Offer,
    ) -> (Arc<ConnectionSlot>, Option<Arc<ConnectionPool>>) {
        let kind = match self.shared.sharing_policy() {
            SharingPolicy::Exclusive => {
                let subscribers = Subscribers::of_one();
                let slot = ConnectionSlot::new(
                    Arc::clone(&self.shared),
                    offer,
                    InstanceSharing::Exclusive,
                    subscribers,
                );
                return (slot, None);
            }
            SharingPolicy::SameAffinity => {
                let capabilities = offer.capabilities.raw().to_owned();
                let apart = AffinityKey {
                    principal,
                    mark: &ClientKey::None,
                    sharing: InstanceSharing::Shared,
                    capabilities: &capabilities,
                };
                self.kind(apart, || self.pool_for(offer))
            }
            SharingPolicy::All => self.common_kind(),
        };
        (kind.pool.first(), Some(Arc::clone(&kind.pool)))
    }

    /// As whom a server is approached for nobody in particular.
    fn nobodys_wish(&self) -> Offer {
        let capabilities = match self.shared.sharing_policy() {
            SharingPolicy::All => self.settings.declare.clone(),
            SharingPolicy::Exclusive | SharingPolicy::SameAffinity => {
                CapabilitySet::empty(Side::Client)
            }
        };
        self.offer(capabilities, self.own_info())
    }

    /// ClientRef the server is.
    pub(crate) fn own_info(&self) -> Implementation {
        let own = self.terms.party.info.as_deref().cloned();
        own.unwrap_or_else(|| Implementation::new("mcpact", "0"))
    }

    /// The connections of those whom the server does not tell apart.
    fn common_kind(&self) -> Arc<AffinityGroup> {
        let offer = self.nobodys_wish();
        let declared = offer.capabilities.raw().to_owned();
        let apart = AffinityKey {
            principal: "",
            mark: &ClientKey::None,
            sharing: InstanceSharing::Shared,
            capabilities: &declared,
        };
        self.kind(apart, || self.pool_for(offer))
    }

    /// Those who have an instance are never too many.
    pub(crate) fn kind(
        &self,
        apart: AffinityKey<'_>,
        make: impl FnOnce() -> ConnectionPool,
    ) -> Arc<AffinityGroup> {
        let limit = max_instances(&self.shared.run()).saturating_add(KINDS);
        self.guests().kind(apart, limit, make)
    }

    fn pool_for(&self, offer: Offer) -> ConnectionPool {
        let limit = max_instances(&self.shared.run());
        let shared = Arc::clone(&self.shared);
        ConnectionPool::new(shared, offer, InstanceSharing::Shared, limit)
    }

    async fn welcome_modern(
        &self,
        params: &Params<'_>,
        identity: &ClientIdentity,
        cause: StartCause,
    ) -> Result<ClientSetup<ClientState>, UpstreamError> {
        let declared = params.meta.client_capabilities.unwrap_or("{}");
        let apart = self.told_apart(identity, declared);
        let kind = self.kind(apart, || match self.shared.sharing_policy() {
            SharingPolicy::All => self.pool_for(self.nobodys_wish()),
            SharingPolicy::Exclusive | SharingPolicy::SameAffinity => self.pool(apart, params),
        });
        let reached = self.reach(kind.pool.first(), Some(&kind.pool), cause);
        let ReachedServer {
            slot,
            pool,
            connection,
        } = reached.await?;
        let mut served = lock(&kind.served);
        let withheld = tool_filter::withheld(self);
        let named = params.meta.revision();
        let revision = named.unwrap_or(Revision::newest(Era::Modern));
        let terms = || Arc::new(self.terms_on(&connection, revision, &kind.principal));
        let same = served
            .as_mut()
            .filter(|served| served.connection.as_ptr() == Arc::as_ptr(&connection));
        if let Some(same) = same {
            if same.withheld != withheld || same.revision != revision {
                same.terms = terms();
                same.withheld = withheld;
                same.revision = revision;
            }
        } else {
            *served = Some(GroupTerms {
                terms: terms(),
                revision,
                withheld,
                binding: Arc::new(ServerBinding::passing(slot, pool)),
                connection: Arc::downgrade(&connection),
            });
        }
        let Some(GroupTerms { terms, binding, .. }) = served.clone() else {
            return Ok(self.bare());
        };
        Ok(ClientSetup {
            terms,
            state: Some(binding.into()),
        })
    }

    /// What tells a modern client from others. Towards a modern server it does not matter who asks and what
    /// they declare: each request says it.
    fn told_apart<'a>(
        &'a self,
        identity: &'a ClientIdentity,
        declared: &'a str,
    ) -> AffinityKey<'a> {
        let (principal, mark, capabilities) = match (self.modern(), self.shared.sharing_policy()) {
            (_, SharingPolicy::All) => ("", &ClientKey::None, self.settings.declare.raw()),
            (Some(_), SharingPolicy::Exclusive | SharingPolicy::SameAffinity) => {
                ("", &ClientKey::None, "{}")
            }
            (None, SharingPolicy::SameAffinity) => {
                (&*identity.principal, &ClientKey::None, declared)
            }
            (None, SharingPolicy::Exclusive) => (&*identity.principal, &identity.key, declared),
        };
        let sharing = match mark {
            ClientKey::None => InstanceSharing::Shared,
            ClientKey::Connection(_) | ClientKey::Key(_) => InstanceSharing::Exclusive,
        };
        AffinityKey {
            principal,
            mark,
            sharing,
            capabilities,
        }
    }

    /// The connections of modern clients that declare this, if there are any.
    pub(crate) fn known_pool(
        &self,
        declared: &str,
        identity: &ClientIdentity,
    ) -> Option<Arc<ConnectionPool>> {
        let kind = self.guests().known(self.told_apart(identity, declared))?;
        Some(Arc::clone(&kind.pool))
    }

    fn pool(&self, apart: AffinityKey<'_>, params: &Params<'_>) -> ConnectionPool {
        let mapped = mapped(apart.capabilities);
        let info = Implementation::parse("clientInfo", params.meta.client_info);
        let info = info.unwrap_or_else(|_| self.own_info());
        let offer = self.offer(mapped, info);
        match apart.mark {
            ClientKey::None => self.pool_for(offer),
            ClientKey::Connection(_) | ClientKey::Key(_) => {
                let run = self.shared.run();
                let limit = if run.spreads { max_instances(&run) } else { 1 };
                drop(run);
                let shared = Arc::clone(&self.shared);
                ConnectionPool::new(shared, offer, InstanceSharing::Exclusive, limit)
            }
        }
    }

    /// Lets go of what was kept for a client that has gone.
    pub(crate) fn leave(&self, identity: &ClientIdentity) {
        self.dismiss(identity);
        let gone = self.guests().without(identity);
        drop(gone);
    }

    /// Gives up what waits for answers of a client that gives none any more.
    pub(crate) fn dismiss(&self, identity: &ClientIdentity) {
        self.questions.dismiss(identity);
        for suspended in handover::suspended_registries(self) {
            suspended.dismiss(identity);
        }
    }

    /// What the engine needs when nobody upstream is needed.
    fn bare(&self) -> ClientSetup<ClientState> {
        ClientSetup {
            terms: Arc::clone(&self.terms),
            state: None,
        }
    }

    /// What is offered on top of what the server has, or instead of it.
    pub(crate) fn emulation(&self, is_named: bool) -> Emulation {
        Emulation {
            tasks: true,
            // Where nobody is told apart, a list would be everybody's.
            task_list: is_named,
            completions: false,
            shares_session: self.shared.sharing_policy() != SharingPolicy::Exclusive,
        }
    }

    /// What a client of this revision is told about the server.
    fn terms_on(
        &self,
        connection: &UpstreamConnection,
        downstream: Revision,
        principal: &str,
    ) -> ServerTerms {
        let Connection { introduction, .. } = &connection.upstream;
        self.terms_of(introduction, connection.revision(), downstream, principal)
    }

    /// The same, by what the server has said of itself in this revision.
    pub(crate) fn terms_of(
        &self,
        introduction: &Introduction,
        upstream: Revision,
        downstream: Revision,
        principal: &str,
    ) -> ServerTerms {
        let Introduction {
            server_info,
            is_named: _,
            instructions,
            capabilities,
        } = introduction;
        let emulation = self.emulation(!principal.is_empty());
        let shown = server_capabilities(capabilities, upstream, downstream, emulation);
        let policy = self.settings.front.policy.clone();
        let mut terms = ServerTerms::new(server_info.clone(), shown, policy);
        terms.listening = Listening::Asked;
        terms.instructions =
            instructions::with_withheld(instructions.as_deref(), tool_filter::withheld(self));
        terms
    }
}

/// What a modern client declares, in the words of a legacy server.
pub(crate) fn mapped(declared: &str) -> CapabilitySet {
    let declared = CapabilitySet::parse(Side::Client, Some(declared), Reading::Lenient)
        .unwrap_or_else(|_| CapabilitySet::empty(Side::Client));
    client_capabilities(
        &declared,
        Revision::newest(Era::Modern),
        Revision::newest(Era::Legacy),
    )
}

/// Whether a modern server makes tasks of calls.
fn has_tasks(connection: &UpstreamConnection) -> bool {
    let mut extensions = connection.upstream.introduction.capabilities.extensions();
    extensions.any(|(id, _)| id == Extension::Tasks.id())
}
