//! Clients that receive the messages of a server that belong to no call, and their subscriptions at legacy servers.
//!
//! The subscribers outlive the connection: a new one gets their subscriptions and log level.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};

use mcpact::connection::{ServerRequest, ServerResponse};
use mcpact_engine::server::Scope;
use mcpact_spec::{Era, Method};
use mcpact_translate::listen::SessionSettings;
use mcpact_translate::listen::registry::Action;

use crate::connection::UpstreamConnection;
use crate::connection::ownership::ClientRef;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::subscriptions::listen;
use crate::subscriptions::listen::ListenStreams;
use crate::sync::lock;

/// Maximum number of subscriptions of a legacy client that a new session gets.
const MAX_SUBSCRIPTIONS: usize = 4096;

/// Maximum number of questions that wait for the handshake of a client; further ones are refused.
const MAX_EARLY_QUESTIONS: usize = 8;

/// Clients that use the connections of one slot.
#[derive(Debug)]
pub(crate) struct Subscribers {
    /// Change streams of modern clients.
    pub(crate) listens: ListenStreams,
    /// Legacy clients of the session: one, or all that share it.
    owners: Mutex<Vec<LegacySubscriber>>,
    /// Questions of the server during the handshake of a legacy client; none after it.
    early: Mutex<Option<Vec<ServerRequest>>>,
    /// Current or last connection.
    connection: Mutex<Option<Weak<UpstreamConnection>>>,
}

/// Legacy client with its subscriptions and log level.
#[derive(Debug)]
struct LegacySubscriber {
    sink: WeakClientSink,
    settings: SessionSettings,
}

impl LegacySubscriber {
    fn is_connected(&self) -> bool {
        self.sink.upgrade().is_some()
    }
}

impl Subscribers {
    /// Creates the subscribers for modern clients, which are asked only during their calls.
    pub(crate) fn of_many() -> Self {
        Self {
            listens: ListenStreams::new(),
            owners: Mutex::default(),
            early: Mutex::default(),
            connection: Mutex::default(),
        }
    }

    /// Creates the subscribers for a legacy client during its handshake.
    pub(crate) fn of_one() -> Self {
        Self {
            early: Mutex::new(Some(Vec::new())),
            ..Self::of_many()
        }
    }

    /// Adds a legacy client to the owners of the session.
    pub(crate) fn add_owner(&self, sink: &ClientSink) {
        let mut owners = lock(&self.owners);
        owners.retain(|owner| owner.is_connected() && !sink.is(&owner.sink));
        owners.push(LegacySubscriber {
            sink: sink.downgrade(),
            settings: SessionSettings::new(MAX_SUBSCRIPTIONS),
        });
    }

    /// Returns the owner of the session if it has exactly one. `holder` is the client with exclusive ownership, if any;
    /// the other owners do not count then.
    pub(crate) fn owner(&self, holder: Option<&ClientRef>) -> Option<ClientSink> {
        let owners = lock(&self.owners);
        let mut connected = owners
            .iter()
            .filter(|owner| holder.is_none_or(|holder| owner.sink.client_ref() == *holder))
            .filter_map(|owner| owner.sink.upgrade());
        let first = connected.next()?;
        connected.next().is_none().then_some(first)
    }

    /// Returns true if a legacy client is connected.
    pub(crate) fn has_owner(&self) -> bool {
        self.any_owner(|_| true)
    }

    fn any_owner(&self, is_it: impl Fn(&LegacySubscriber) -> bool) -> bool {
        let owners = lock(&self.owners);
        let mut owners = owners.iter();
        owners.any(|owner| is_it(owner) && owner.is_connected())
    }

    /// Keeps a question until the client has finished its handshake; returns it if there is no handshake.
    pub(crate) fn defer_question(&self, ask: ServerRequest) -> Option<ServerRequest> {
        match &mut *lock(&self.early) {
            Some(early) if early.len() < MAX_EARLY_QUESTIONS => {
                early.push(ask);
                None
            }
            Some(_) | None => Some(ask),
        }
    }

    /// Ends the handshake; returns the questions that waited for it.
    pub(crate) fn take_deferred_questions(&self) -> Vec<ServerRequest> {
        lock(&self.early).take().unwrap_or_default()
    }

    /// Notifies the legacy clients. In a shared session, resource updates go only to the clients that subscribed to the
    /// resource.
    pub(crate) fn notify(&self, method: Method, params: &str) {
        let is_update = method == Method::ResourcesUpdated;
        let has_streams = is_update && self.listens.registry().has_subscriptions();
        let owners = lock(&self.owners);
        let is_shared = owners.len() > 1 || has_streams;
        let sinks: Vec<ClientSink> = owners
            .iter()
            .filter(|owner| !is_update || !is_shared || owner.settings.covers_update(params))
            .filter_map(|owner| owner.sink.upgrade())
            .collect();
        drop(owners);
        for sink in sinks {
            sink.try_notify(&Scope::Connection, method, params);
        }
    }

    /// Records a request of a legacy client that the server accepted.
    pub(crate) fn record(&self, sink: &ClientSink, method: Method, params: &str) {
        let mut owners = lock(&self.owners);
        if let Some(owner) = owners.iter_mut().find(|owner| sink.is(&owner.sink)) {
            owner.settings.record(method, params);
        }
    }

    /// Returns true if this legacy client is subscribed to the resource.
    pub(crate) fn has_subscribed(&self, sink: &ClientSink, uri: &str) -> bool {
        self.any_owner(|owner| sink.is(&owner.sink) && owner.settings.wants(uri))
    }

    /// Returns true if any client is subscribed to the resource, so that the server must stay subscribed.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        self.any_owner(|owner| owner.settings.wants(uri)) || self.listens.registry().wants(uri)
    }

    /// Removes disconnected legacy clients, and ends subscriptions at the server that no client needs.
    pub(crate) async fn remove_disconnected(&self) {
        let is_gone = |owner: &mut LegacySubscriber| !owner.is_connected();
        let gone: Vec<LegacySubscriber> = lock(&self.owners).extract_if(.., is_gone).collect();
        let uris: BTreeSet<&str> = gone.iter().flat_map(|one| one.settings.uris()).collect();
        let uris = uris.into_iter().map(Box::from);
        let acts = uris.map(|uri| Action::Unsubscribe { uri }).collect();
        if let Some(connection) = self.connection()
            && connection.revision().era() == Era::Legacy
        {
            listen::perform(&connection, acts).await;
        }
    }

    /// Returns the current connection.
    pub(crate) fn connection(&self) -> Option<Arc<UpstreamConnection>> {
        lock(&self.connection).as_ref()?.upgrade()
    }

    fn is_subscribed(&self) -> bool {
        self.any_owner(|owner| owner.settings.has_subscriptions())
    }

    /// Returns true if any client listens to changes, so that a lost connection is replaced at once.
    pub(crate) fn are_listening(&self) -> bool {
        self.listens.is_active() || self.is_subscribed()
    }

    /// Returns true if any client listens to resources, which only a running server can report.
    pub(crate) fn are_listening_to_resources(&self) -> bool {
        self.is_subscribed() || self.listens.registry().has_subscriptions()
    }

    /// Moves the subscribers to a new connection: replays their settings, and notifies them of everything that may have
    /// changed.
    pub(crate) async fn move_to(&self, connection: &Arc<UpstreamConnection>) {
        let before = lock(&self.connection).replace(Arc::downgrade(connection));
        let acts = self.listens.restored(&connection.upstream);
        if before.is_some() {
            self.replay(connection).await;
        }
        listen::perform(connection, acts).await;
    }

    async fn replay(&self, connection: &UpstreamConnection) {
        let requests: Vec<(Method, String)> = {
            let owners = lock(&self.owners);
            let connected = owners.iter().filter(|owner| owner.is_connected());
            // A setting of several clients is sent once.
            let mut known = BTreeSet::new();
            connected
                .flat_map(|owner| owner.settings.replay())
                .filter(|request| known.insert(request.clone()))
                .collect()
        };
        for (method, params) in requests {
            let response = connection.request(method, &params).await;
            if !matches!(response, Ok(ServerResponse::Result(_))) {
                tracing::warn!(%method, "failed to restore a subscription on the new session");
            }
        }
        let server = &connection.upstream.introduction.capabilities;
        let changes: Vec<(ClientSink, Vec<(Method, String)>)> = {
            let owners = lock(&self.owners);
            let possible = owners.iter().filter_map(|owner| {
                let changes = owner.settings.possible_changes(server);
                Some((owner.sink.upgrade()?, changes))
            });
            possible.collect()
        };
        for (sink, changes) in changes {
            for (method, params) in changes {
                sink.try_notify(&Scope::Connection, method, &params);
            }
        }
    }
}
