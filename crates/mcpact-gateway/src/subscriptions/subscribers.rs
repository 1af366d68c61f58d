//! ClientRef hears what belongs to no call. Connections come and go; the subscribers stays.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};

use mcpact_engine::server::Scope;
use mcpact_spec::{Era, Method};
use mcpact_translate::listen::SessionSettings;
use mcpact_translate::listen::registry::Action;

use mcpact::connection::{ServerRequest, ServerResponse};

use crate::connection::UpstreamConnection;
use crate::connection::ownership::ClientRef;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::subscriptions::listen;
use crate::subscriptions::listen::ListenStreams;
use crate::sync::lock;

/// How many subscriptions of a legacy client are carried over to another session.
const SUBSCRIPTIONS: usize = 4096;

/// How many questions wait for a client that has not finished its handshake; the rest is refused.
const EARLY: usize = 8;

/// Everybody who is told what the server says unasked, on whichever connection it says it.
#[derive(Debug)]
pub(crate) struct Subscribers {
    /// The modern clients that listen.
    pub(crate) listens: ListenStreams,
    /// The legacy clients whose session this is: one, or all that share it.
    owners: Mutex<Vec<LegacySubscriber>>,
    /// What the server could not wait to ask, while a legacy client is in its handshake.
    early: Mutex<Option<Vec<ServerRequest>>>,
    /// The connection of the moment, or the last one.
    connection: Mutex<Option<Weak<UpstreamConnection>>>,
}

/// A legacy client, and what it has set at a legacy server.
#[derive(Debug)]
struct LegacySubscriber {
    sink: WeakClientSink,
    standing: SessionSettings,
}

impl Subscribers {
    /// For a legacy client that is in its handshake.
    pub(crate) fn of_one() -> Self {
        Self::new(Some(Vec::new()))
    }

    /// For modern clients, none of which can be asked anything out of the blue.
    pub(crate) fn of_many() -> Self {
        Self::new(None)
    }

    fn new(early: Option<Vec<ServerRequest>>) -> Self {
        Self {
            listens: ListenStreams::new(),
            owners: Mutex::default(),
            early: Mutex::new(early),
            connection: Mutex::default(),
        }
    }

    /// The session belongs to this client, alone or with others; it hears everything.
    pub(crate) fn belong_to(&self, sink: &ClientSink) {
        let mut owners = lock(&self.owners);
        owners.retain(|owner| owner.sink.upgrade().is_some() && !sink.is(&owner.sink));
        owners.push(LegacySubscriber {
            sink: sink.downgrade(),
            standing: SessionSettings::new(SUBSCRIPTIONS),
        });
    }

    /// The client whose session this is, if it is one's and that one is there. A session that is `claimed` by one
    /// is that one's, whoever else there is.
    pub(crate) fn owner(&self, claimed: Option<&ClientRef>) -> Option<ClientSink> {
        let owners = lock(&self.owners);
        let mut near = owners
            .iter()
            .filter(|owner| claimed.is_none_or(|holder| owner.sink.client_ref() == *holder))
            .filter_map(|owner| owner.sink.upgrade());
        let first = near.next()?;
        near.next().is_none().then_some(first)
    }

    /// Whether a legacy client is there.
    pub(crate) fn is_any(&self) -> bool {
        lock(&self.owners)
            .iter()
            .any(|owner| owner.sink.upgrade().is_some())
    }

    /// Keeps a question for a client that is in its handshake; gives it back if none is.
    pub(crate) fn keep(&self, ask: ServerRequest) -> Option<ServerRequest> {
        match &mut *lock(&self.early) {
            Some(early) if early.len() < EARLY => {
                early.push(ask);
                None
            }
            Some(_) | None => Some(ask),
        }
    }

    /// The client can be asked from now on; what it is to be asked at once.
    pub(crate) fn confirmed(&self) -> Vec<ServerRequest> {
        lock(&self.early).take().unwrap_or_default()
    }

    /// Tells the legacy clients; of resources, only those that asked for them where others may have.
    pub(crate) fn tell(&self, method: Method, params: &str) {
        let is_of_others = method == Method::ResourcesUpdated && self.listens.covers_resources();
        let owners = lock(&self.owners);
        let is_shared = owners.len() > 1 || is_of_others;
        let hears = |owner: &&LegacySubscriber| {
            method != Method::ResourcesUpdated || !is_shared || owner.standing.covers_update(params)
        };
        let sinks: Vec<ClientSink> = owners
            .iter()
            .filter(hears)
            .filter_map(|owner| owner.sink.upgrade())
            .collect();
        drop(owners);
        for sink in sinks {
            sink.try_notify(&Scope::Connection, method, params);
        }
    }

    /// The server granted a request of a legacy client.
    pub(crate) fn granted(&self, sink: &ClientSink, method: Method, params: &str) {
        let mut owners = lock(&self.owners);
        if let Some(owner) = owners.iter_mut().find(|owner| sink.is(&owner.sink)) {
            owner.standing.record(method, params);
        }
    }

    /// Whether a legacy client has set this at the server, and is there.
    pub(crate) fn has_subscribed(&self, sink: &ClientSink, uri: &str) -> bool {
        let owners = lock(&self.owners);
        let mut own = owners.iter().filter(|owner| sink.is(&owner.sink));
        own.any(|owner| owner.standing.wants(uri))
    }

    /// Whether anybody of either era wants to hear of a resource: as long as somebody does, the server is not
    /// told otherwise on behalf of somebody else.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        let is_subscribed = lock(&self.owners)
            .iter()
            .any(|owner| owner.sink.upgrade().is_some() && owner.standing.wants(uri));
        is_subscribed || self.listens.wants(uri)
    }

    /// Forgets the legacy clients that have gone, and tells the server what nobody wants to hear of any more.
    pub(crate) async fn dismiss_gone(&self) {
        let is_gone = |owner: &mut LegacySubscriber| owner.sink.upgrade().is_none();
        let gone: Vec<LegacySubscriber> = lock(&self.owners).extract_if(.., is_gone).collect();
        let left: BTreeSet<&str> = gone.iter().flat_map(|one| one.standing.uris()).collect();
        let acts = left
            .into_iter()
            .map(|uri| Action::Unsubscribe { uri: uri.into() });
        let acts = acts.collect();
        if let Some(connection) = self.connection()
            && connection.revision().era() == Era::Legacy
        {
            listen::perform(&connection, acts).await;
        }
    }

    /// The connection of the moment, if there is one.
    pub(crate) fn connection(&self) -> Option<Arc<UpstreamConnection>> {
        lock(&self.connection).as_ref()?.upgrade()
    }

    fn is_subscribed(&self) -> bool {
        let owners = lock(&self.owners);
        owners
            .iter()
            .any(|owner| owner.standing.has_subscriptions() && owner.sink.upgrade().is_some())
    }

    /// Whether somebody waits to be told something, so that a lost connection is to be replaced at
    /// once.
    pub(crate) fn is_waiting(&self) -> bool {
        self.listens.is_active() || self.is_subscribed()
    }

    /// Whether somebody waits to hear of resources, which a server that sleeps cannot tell.
    pub(crate) fn is_waiting_for_resources(&self) -> bool {
        self.listens.covers_resources() || self.is_subscribed()
    }

    /// Moves to another connection. A legacy server is told again what it was told before, and
    /// everybody hears of everything that may have changed meanwhile.
    pub(crate) async fn move_to(&self, connection: &Arc<UpstreamConnection>) {
        let before = lock(&self.connection).replace(Arc::downgrade(connection));
        let acts = self.listens.restored(&connection.upstream);
        if before.is_some() {
            self.set_again(connection).await;
        }
        listen::perform(connection, acts).await;
    }

    async fn set_again(&self, connection: &UpstreamConnection) {
        let again: Vec<(Method, String)> = {
            let owners = lock(&self.owners);
            let near = owners.iter().filter(|owner| owner.sink.upgrade().is_some());
            // What several clients have set is set once.
            let mut known = BTreeSet::new();
            near.flat_map(|owner| owner.standing.replay())
                .filter(|one| known.insert(one.clone()))
                .collect()
        };
        for (method, params) in again {
            match connection.request(method, &params).await {
                Ok(ServerResponse::Result(_)) => {}
                Ok(ServerResponse::Error(_)) | Err(_) => {
                    tracing::warn!(%method, "the new session does not take what the lost one took");
                }
            }
        }
        let server = &connection.upstream.introduction.capabilities;
        let missed: Vec<(ClientSink, Method, String)> = {
            let owners = lock(&self.owners);
            let near = owners.iter().filter_map(|owner| {
                Some((
                    owner.sink.upgrade()?,
                    owner.standing.possible_changes(server),
                ))
            });
            near.flat_map(|(sink, missed)| {
                missed
                    .into_iter()
                    .map(move |(method, params)| (sink.clone(), method, params))
            })
            .collect()
        };
        for (sink, method, params) in missed {
            sink.try_notify(&Scope::Connection, method, &params);
        }
    }
}
