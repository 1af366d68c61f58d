//! Acceptance of clients: their terms, and the connections that serve them.
//!
//! All clients share the connections to a modern server, except for a local one whose strategy is stateful. At such a
//! server and at a legacy server, modern clients share the connections of their affinity group. Legacy clients follow
//! the strategy.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcpact::connection::Offer;
use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_engine::server::{Listening, ServerTerms};
use mcpact_spec::{Capability, Era, Extension, Revision, Side};
use mcpact_translate::lifecycle::{
    Emulation, Introduction, client_capabilities, server_capabilities, with_tasks,
};
use mcpact_wire::envelope::Params;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::InitializeParams;
use mcpact_wire::raw::Object;

use crate::aggregate::instructions;
use crate::connection::UpstreamConnection;
use crate::connection::ownership::ConnectionUser;
use crate::connection::pool::ConnectionPool;
use crate::connection::slot::ConnectionSlot;
use crate::downstream::ClientState;
use crate::error::{ServeError, UpstreamError};
use crate::handover;
use crate::lists::bindings;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{InstanceSharing, SharingPolicy, StartCause, Starter, max_instances};
use crate::sync::lock;
use crate::target::Target;
use crate::upstream::affinity::{
    AffinityGroup, AffinityKey, Evidence, GROUPS, GroupTerms, affinity,
};
use crate::upstream::binding::{ClientDeclaration, ServerBinding};
use crate::upstream::rebind::Rebind;
use crate::upstream::saved_client::{SavedClient, SavedHello};
use crate::upstream::{UpstreamServer, tool_filter};

/// Parsed `initialize` parameters of a legacy client.
#[derive(Debug)]
pub(crate) struct LegacyHello {
    declared: CapabilitySet,
    /// Requested revision; the newest legacy one if the request is for another.
    pub(crate) revision: Revision,
    info: Implementation,
}

impl LegacyHello {
    /// Parses the parameters; `None` if they are invalid.
    pub(crate) fn parse(params: &Params<'_>) -> Option<Self> {
        let hello = InitializeParams::parse(params.raw).ok()?;
        let requested = hello.protocol_version.as_deref().and_then(Revision::parse);
        Some(Self {
            declared: lenient(hello.capabilities),
            revision: requested
                .filter(|revision| revision.era() == Era::Legacy)
                .unwrap_or(Revision::newest(Era::Legacy)),
            info: hello.client_info,
        })
    }

    /// Returns the capabilities as declared to a legacy server.
    pub(crate) fn mapped(&self) -> CapabilitySet {
        client_capabilities(&self.declared, self.revision, Revision::newest(Era::Legacy))
    }
}

/// Open connection, with its slot and its pool.
pub(crate) struct ReachedServer {
    pub(crate) slot: Arc<ConnectionSlot>,
    pub(crate) pool: Option<Arc<ConnectionPool>>,
    connection: Arc<UpstreamConnection>,
}

impl ReachedServer {
    fn in_pool(pool: Arc<ConnectionPool>, connection: Arc<UpstreamConnection>) -> Self {
        Self {
            slot: pool.first(),
            pool: Some(pool),
            connection,
        }
    }
}

impl Starter for UpstreamServer {
    /// Starts an instance for clients without capabilities; all clients share it if the server is modern.
    fn start(self: Arc<Self>, cause: StartCause) -> BoxFuture<'static, ()> {
        let common = || Arc::clone(&self.common_group().pool);
        let pool = self.modern().unwrap_or_else(common);
        Box::pin(async move {
            if pool.open_another(cause).await.is_ok() {
                // Shares the pool if the server is modern.
                let _ = self.reach(pool.first(), Some(&pool), cause).await;
            }
        })
    }

    fn can_start(&self) -> bool {
        match &self.shared.target {
            Target::Command(command) => command.launch_problem().is_none(),
            Target::Url { .. } | Target::Local(_) => true,
        }
    }
}

impl UpstreamServer {
    /// Accepts a client and connects to the server.
    pub(crate) async fn admit(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, ServeError> {
        let setup = match hello {
            ClientHello::Handshake(params) => self.accept_legacy(params, identity).await?,
            ClientHello::Request(params) => {
                self.accept_modern(params, identity, StartCause::Request)
                    .await?
            }
        };
        Ok(setup)
    }

    /// Connects on behalf of the gateway, so that the profile of the server becomes known.
    pub(crate) async fn introduce(&self) -> Result<(), ServeError> {
        let (params, identity) = (Params::default(), ClientIdentity::default());
        self.accept_modern(&params, &identity, StartCause::Introduction)
            .await?;
        Ok(())
    }

    /// Returns the offer for the negotiation on behalf of a client with these capabilities.
    pub(crate) fn offer(&self, capabilities: CapabilitySet, info: Implementation) -> Offer {
        Offer {
            capabilities,
            info,
            mode: self.settings.mode,
            require: Vec::new(),
            prior: None,
        }
    }

    /// Returns an open connection. The pool of a modern server becomes common to all clients if they may share it.
    pub(crate) async fn reach(
        &self,
        slot: Arc<ConnectionSlot>,
        pool: Option<&Arc<ConnectionPool>>,
        cause: StartCause,
    ) -> Result<ReachedServer, UpstreamError> {
        if let Some(shared) = self.modern() {
            let connection = shared.any_connection(cause).await?;
            if connection.revision().era() == Era::Modern {
                return Ok(ReachedServer::in_pool(shared, connection));
            }
            // The server has changed its era: legacy sessions are not common to all clients.
            lock(&self.modern).take_if(|pool| Arc::ptr_eq(pool, &shared));
        }
        let connection = match pool.and_then(|pool| pool.open_connection()) {
            Some(connection) => connection,
            None => slot.connection_for(&ConnectionUser::Gateway, cause).await?,
        };
        if connection.revision().era() == Era::Modern && !self.shared.keeps_apart() {
            let shared = self.share(slot, pool);
            self.shared.info_cache.connected();
            let connection = shared.any_connection(cause).await?;
            return Ok(ReachedServer::in_pool(shared, connection));
        }
        Ok(ReachedServer {
            slot,
            pool: pool.cloned(),
            connection,
        })
    }

    /// Returns the pool common to all clients. Uses this pool if there is none yet and clients can share it, or else
    /// a new one with this slot.
    fn share(
        &self,
        slot: Arc<ConnectionSlot>,
        pool: Option<&Arc<ConnectionPool>>,
    ) -> Arc<ConnectionPool> {
        let mut modern = lock(&self.modern);
        let common = modern.get_or_insert_with(|| match pool.filter(|pool| pool.is_shared()) {
            Some(pool) => Arc::clone(pool),
            None => {
                let limit = max_instances(&self.shared.run());
                Arc::new(ConnectionPool::with_first(
                    Arc::clone(&self.shared),
                    slot,
                    InstanceSharing::Shared,
                    limit,
                ))
            }
        });
        Arc::clone(common)
    }

    /// Returns true if an open connection exists for the client.
    pub(crate) fn is_running_for(
        &self,
        hello: &ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> bool {
        let is_open = |pool: Arc<ConnectionPool>| pool.open_connection().is_some();
        if self.modern().is_some_and(is_open) {
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
                .and_then(|hello| self.known_pool(hello.mapped().raw(), identity)),
        };
        pool.is_some_and(is_open)
    }

    async fn accept_legacy(
        &self,
        params: &Params<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<ClientState>, UpstreamError> {
        let Some(hello) = LegacyHello::parse(params) else {
            // The engine refuses the handshake with the right error.
            return Ok(ClientSetup {
                terms: Arc::clone(&self.terms),
                state: None,
            });
        };
        let offer = self.offer(hello.mapped(), hello.info.clone());
        let (slot, pool) = self.select_slot(affinity(&identity.principal), offer);
        let reached = self.reach(slot, pool.as_ref(), StartCause::Request).await?;
        let connection = reached.connection;
        let upstream = connection.revision();
        let stamp = (upstream.era() == Era::Modern).then(|| self.declaration(&hello, &connection));
        let saved = SavedHello::of(&ClientHello::Handshake(params));
        let rebind = Rebind {
            era: upstream.era(),
            client: SavedClient::new(saved, identity),
        };
        let binding = ServerBinding::new(reached.slot, reached.pool, stamp, Some(rebind));
        let introduction = &connection.upstream.introduction;
        let terms = self.terms_of(introduction, upstream, hello.revision, identity);
        Ok(ClientSetup {
            terms: Arc::new(terms),
            state: Some(binding.into()),
        })
    }

    /// Returns the declaration of a legacy client for requests to a modern server.
    fn declaration(
        &self,
        hello: &LegacyHello,
        connection: &UpstreamConnection,
    ) -> ClientDeclaration {
        let upstream = connection.revision();
        let mapped = client_capabilities(&hello.declared, hello.revision, upstream);
        let default_answers = &self.settings.default_answers;
        let declared = [
            default_answers.added_to(&mapped),
            default_answers.missing_from(&mapped),
        ];
        let mut extensions = connection.upstream.introduction.capabilities.extensions();
        let has_tasks = extensions.any(|(id, _)| id == Extension::Tasks.id());
        let raw = |sets: [CapabilitySet; 2]| sets.map(|set| set.raw().to_owned());
        ClientDeclaration {
            with_tasks: has_tasks.then(|| raw(declared.each_ref().map(with_tasks))),
            capabilities: raw(declared),
            info: hello.info.encode(upstream),
        }
    }

    /// Returns the slot for a legacy client of a legacy server, and the pool if it shares one.
    fn select_slot(
        &self,
        principal: &str,
        offer: Offer,
    ) -> (Arc<ConnectionSlot>, Option<Arc<ConnectionPool>>) {
        let group = match self.shared.sharing_policy() {
            SharingPolicy::Exclusive => {
                let (shared, sharing) = (Arc::clone(&self.shared), InstanceSharing::Exclusive);
                let slot = ConnectionSlot::new(shared, offer, sharing, Subscribers::of_one());
                return (Arc::new(slot), None);
            }
            SharingPolicy::SameAffinity => self.shared_group(principal, offer),
            SharingPolicy::All => self.common_group(),
        };
        (group.pool.first(), Some(Arc::clone(&group.pool)))
    }

    /// Returns the gateway's own offer, for connections without a particular client.
    fn gateway_offer(&self) -> Offer {
        let capabilities = match self.shared.sharing_policy() {
            SharingPolicy::All => self.settings.declare.clone(),
            _ => CapabilitySet::empty(Side::Client),
        };
        self.offer(capabilities, self.gateway_info())
    }

    /// Returns the name and version of the gateway.
    pub(crate) fn gateway_info(&self) -> Implementation {
        let info = self.terms.party.info.as_deref().cloned();
        info.unwrap_or_else(|| Implementation::new("mcpact", "0"))
    }

    /// Returns the group of connections with the gateway's own offer.
    fn common_group(&self) -> Arc<AffinityGroup> {
        self.shared_group("", self.gateway_offer())
    }

    /// Returns the group of all clients with this principal and the declaration of the offer.
    fn shared_group(&self, principal: &str, offer: Offer) -> Arc<AffinityGroup> {
        let declared = offer.capabilities.raw().to_owned();
        let key = AffinityKey::shared(principal, &declared);
        self.group(key, || self.pool_for(offer, InstanceSharing::Shared))
    }

    /// Returns the group with this key; adds it if necessary. Every instance can have a group.
    pub(crate) fn group(
        &self,
        key: AffinityKey<'_>,
        pool: impl FnOnce() -> ConnectionPool,
    ) -> Arc<AffinityGroup> {
        let limit = max_instances(&self.shared.run()).saturating_add(GROUPS);
        lock(&self.groups).find_or_add(key, limit, pool)
    }

    fn pool_for(&self, offer: Offer, sharing: InstanceSharing) -> ConnectionPool {
        let run = self.shared.run();
        let limit = match sharing {
            InstanceSharing::Exclusive if !run.spreads => 1,
            _ => max_instances(&run),
        };
        drop(run);
        ConnectionPool::new(Arc::clone(&self.shared), offer, sharing, limit)
    }

    async fn accept_modern(
        &self,
        params: &Params<'_>,
        identity: &ClientIdentity,
        cause: StartCause,
    ) -> Result<ClientSetup<ClientState>, UpstreamError> {
        let declared = params.meta.client_capabilities.unwrap_or("{}");
        let key = self.affinity_key(identity, declared);
        let group = self.group(key, || {
            let offer = match self.shared.sharing_policy() {
                SharingPolicy::All => self.gateway_offer(),
                _ => self.modern_offer(key, params),
            };
            self.pool_for(offer, key.sharing)
        });
        let reached = self
            .reach(group.pool.first(), Some(&group.pool), cause)
            .await?;
        let connection = reached.connection;
        let revision = modern_revision(params);
        let withheld = tool_filter::withheld(self);
        let mut cached = lock(&group.terms);
        let evidence = Evidence::of(identity);
        let current = cached.as_ref().filter(|known| {
            known.connection.as_ptr() == Arc::as_ptr(&connection)
                && known.evidence == evidence
                && known.withheld == withheld
                && known.revision == revision
        });
        let terms = match current {
            Some(known) => Arc::clone(&known.terms),
            None => {
                let introduction = &connection.upstream.introduction;
                let upstream = connection.revision();
                let terms = self.terms_of(introduction, upstream, revision, identity);
                let terms = Arc::new(terms);
                *cached = Some(GroupTerms {
                    connection: Arc::downgrade(&connection),
                    terms: Arc::clone(&terms),
                    revision,
                    evidence,
                    withheld,
                });
                terms
            }
        };
        let binding = ServerBinding::new(reached.slot, reached.pool, None, None);
        Ok(ClientSetup {
            terms,
            state: Some(binding.into()),
        })
    }

    /// Returns the affinity key of a modern client. A modern server gets identity and declaration with each request, so
    /// they are no part of its key.
    fn affinity_key<'a>(
        &'a self,
        identity: &'a ClientIdentity,
        declared: &'a str,
    ) -> AffinityKey<'a> {
        let principal = affinity(&identity.principal);
        match self.shared.sharing_policy() {
            SharingPolicy::All => AffinityKey::shared("", self.settings.declare.raw()),
            _ if self.modern().is_some() => AffinityKey::shared("", "{}"),
            SharingPolicy::SameAffinity => AffinityKey::shared(principal, declared),
            SharingPolicy::Exclusive => AffinityKey::new(principal, &identity.key, declared),
        }
    }

    /// Returns the pool of modern clients with this declaration, if there is one.
    pub(crate) fn known_pool(
        &self,
        declared: &str,
        identity: &ClientIdentity,
    ) -> Option<Arc<ConnectionPool>> {
        let group = lock(&self.groups).find(self.affinity_key(identity, declared))?;
        Some(Arc::clone(&group.pool))
    }

    fn modern_offer(&self, key: AffinityKey<'_>, params: &Params<'_>) -> Offer {
        let info = Implementation::parse("clientInfo", params.meta.client_info);
        let info = info.unwrap_or_else(|_| self.gateway_info());
        self.offer(mapped(key.capabilities), info)
    }

    /// Drops the state of a disconnected client.
    pub(crate) fn on_disconnect(&self, identity: &ClientIdentity) {
        self.on_input_closed(identity);
        let removed = lock(&self.groups).remove(identity);
        // Dropped without the lock.
        drop(removed);
    }

    /// Gives up the questions that only this client could answer.
    pub(crate) fn on_input_closed(&self, identity: &ClientIdentity) {
        self.questions.on_input_closed(identity);
        for suspended in handover::suspended_registries(self) {
            suspended.on_input_closed(identity);
        }
    }

    /// Returns the features that the gateway adds to those of the server.
    pub(crate) fn emulation(&self, client: Evidence) -> Emulation {
        let is_exclusive = self.shared.sharing_policy() == SharingPolicy::Exclusive;
        // A remote server may list the tasks of all its sessions, which have the credentials of the gateway.
        let lists_others = client == Evidence::Principal && bindings::is_remote(self);
        Emulation {
            tasks: true,
            // Without evidence, a list would contain the tasks of all clients.
            task_list: client != Evidence::None,
            completions: false,
            shares_session: !is_exclusive || lists_others,
        }
    }

    /// Returns the terms for a client, derived from the introduction of the server.
    pub(crate) fn terms_of(
        &self,
        introduction: &Introduction,
        upstream: Revision,
        downstream: Revision,
        identity: &ClientIdentity,
    ) -> ServerTerms {
        let emulation = self.emulation(Evidence::of(identity));
        let declared = &introduction.capabilities;
        let mut shown = server_capabilities(declared, upstream, downstream, emulation);
        if self.shared.run().max_result_bytes > 0 && !shown.declared().has(Capability::Resources) {
            // The texts of cut results are resources.
            let members = Object::parse(shown.raw()).unwrap_or_default();
            let members = members.keep(|_| true).raw("resources", "{}").finish();
            shown = CapabilitySet::lenient(Side::Server, Some(&members));
        }
        let policy = self.settings.front.policy.clone();
        let mut terms = ServerTerms::new(introduction.server_info.clone(), shown, policy);
        terms.listening = Listening::Asked;
        let instructions = introduction.instructions.as_deref();
        terms.instructions = instructions::with_withheld(instructions, tool_filter::withheld(self));
        terms
    }
}

/// Returns the revision of a modern client; the newest if its request names none.
pub(crate) fn modern_revision(params: &Params<'_>) -> Revision {
    let named = params.meta.revision();
    named.unwrap_or(Revision::newest(Era::Modern))
}

/// Returns the capabilities of a modern client as declared to a legacy server.
pub(crate) fn mapped(declared: &str) -> CapabilitySet {
    client_capabilities(
        &lenient(Some(declared)),
        Revision::newest(Era::Modern),
        Revision::newest(Era::Legacy),
    )
}

/// Parses the capabilities of a client; invalid ones are dropped.
pub(crate) fn lenient(declared: Option<&str>) -> CapabilitySet {
    CapabilitySet::parse(Side::Client, declared, Reading::Lenient)
        .unwrap_or_else(|_| CapabilitySet::empty(Side::Client))
}
