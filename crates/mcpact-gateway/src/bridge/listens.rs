//! Streams of changes for modern clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpact_bridge::listen::Registry;
use mcpact_bridge::listen::registry::{Act, ListenKey, Push, RegistryLimits};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::oneshot;

use super::Bridge;
use super::crossing::Crossing;
use super::ear::Ear;
use super::lane::Lane;
use crate::upstream::{Event, Note, Ordered, Reply, Upstream, text};

/// How much one session of a legacy server may carry.
const LIMITS: RegistryLimits = RegistryLimits {
    listens: 1024,
    uris: 4096,
    held: 64,
};

/// Who listens on a connection to a legacy server.
#[derive(Debug)]
pub(super) struct Listens {
    registry: Mutex<Registry>,
    seats: Mutex<HashMap<ListenKey, Seat>>,
    last: AtomicU64,
}

/// A stream of a client.
#[derive(Debug)]
struct Seat {
    ear: Ear,
    end: oneshot::Sender<String>,
}

/// A stream is over when whoever serves it stops.
struct Open {
    lane: Arc<Lane>,
    key: ListenKey,
}

impl Drop for Open {
    fn drop(&mut self) {
        let listens = &self.lane.listens;
        listens.seats().remove(&self.key);
        let acts = listens.registry().close(&self.key);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !acts.is_empty()
        {
            let lane = Arc::clone(&self.lane);
            runtime.spawn(async move { lane.perform(acts).await });
        }
    }
}

impl Listens {
    pub(super) fn new(upstream: &Upstream) -> Self {
        let push = if upstream.can_push() {
            Push::Works
        } else {
            Push::Missing
        };
        let server = &upstream.introduction.capabilities;
        Self {
            registry: Mutex::new(Registry::new(server, push, LIMITS)),
            seats: Mutex::default(),
            last: AtomicU64::new(0),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<ListenKey, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bridge {
    pub(super) async fn stream_changes(&self, crossing: Crossing) -> Result<String, WireError> {
        match crossing.upstream().era() {
            Era::Modern => self.listen_along(crossing).await,
            Era::Legacy => self.listen_for(crossing).await,
        }
    }

    /// A modern server is listened to on the client's behalf, under its name for the stream.
    async fn listen_along(&self, crossing: Crossing) -> Result<String, WireError> {
        let params = crossing.params()?;
        let mut call = crossing.send(&params).await?;
        let waiter = &crossing.waiter;
        loop {
            match call.next().await {
                Event::Note(note) => {
                    let scope = Scope::Request(waiter.job.id.clone());
                    let params = text(&note.params);
                    waiter.ear.tell(scope, note.method, params).await;
                }
                Event::Done(Reply::Result(_)) => return Ok(farewell(waiter.job.id.raw())),
                Event::Done(reply) => return crossing.finished(&reply),
                Event::Lost(loss) => return Err(crossing.lost(&loss)),
                Event::Ask(_) => {}
            }
        }
    }

    /// A legacy server is subscribed to, once for all who listen.
    async fn listen_for(&self, crossing: Crossing) -> Result<String, WireError> {
        let Crossing { waiter, lane, .. } = crossing;
        let filter = ListenFilter::parse(Some(text(&waiter.job.params))).unwrap_or_default();
        let key = ListenKey {
            caller: lane.listens.last.fetch_add(1, Ordering::Relaxed),
            id: waiter.job.id.clone(),
        };
        let acts = lane
            .listens
            .registry()
            .open(key.clone(), filter, |_| false)?;
        let (end, ended) = oneshot::channel();
        let seat = Seat {
            ear: waiter.ear,
            end,
        };
        lane.listens.seats().insert(key.clone(), seat);
        let open = Open { lane, key };
        open.lane.perform(acts).await;
        let result = ended.await;
        Ok(result.unwrap_or_else(|_| farewell(waiter.job.id.raw())))
    }
}

impl Lane {
    /// A change that belongs to no call.
    pub(super) async fn changed(&self, note: &Note) {
        let params = text(&note.params);
        let acts = self.listens.registry().heard(note.method, Some(params));
        self.perform(acts).await;
    }

    /// Ends every stream, in order.
    pub(super) async fn end_streams(&self) {
        let acts = self.listens.registry().end();
        self.perform(acts).await;
    }

    async fn perform(&self, acts: Vec<Act>) {
        let mut acts = std::collections::VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Subscribe { uri } => {
                    let is_taken = self.ask_for(Method::ResourcesSubscribe, &uri).await;
                    let mut registry = self.listens.registry();
                    acts.extend(if is_taken {
                        registry.subscribed(&uri)
                    } else {
                        registry.refused(&uri)
                    });
                }
                Act::Unsubscribe { uri } => {
                    let _ = self.ask_for(Method::ResourcesUnsubscribe, &uri).await;
                }
                Act::Notify {
                    listen,
                    method,
                    params,
                } => self.say(&listen, method, &params),
                Act::End { listen, result } => {
                    if let Some(seat) = self.listens.seats().remove(&listen) {
                        // Whoever listened may have gone.
                        let _ = seat.end.send(result);
                    }
                }
            }
        }
    }

    fn say(&self, listen: &ListenKey, method: Method, params: &str) {
        let seats = self.listens.seats();
        let Some(seat) = seats.get(listen) else {
            return;
        };
        let scope = Scope::Request(listen.id.clone());
        seat.ear.hint(scope, method, params);
    }

    /// Whether the server agreed.
    async fn ask_for(&self, method: Method, uri: &str) -> bool {
        let params = ObjectWriter::new().text("uri", uri).finish();
        let order = Ordered {
            method: Some(method),
            name: method.as_str(),
            params: &params,
        };
        let number = self.upstream.next_id();
        let mut call = self.upstream.call(number, order, &self.book).await;
        loop {
            match call.next().await {
                Event::Done(reply) => return matches!(reply, Reply::Result(_)),
                Event::Lost(_) => return false,
                Event::Note(_) | Event::Ask(_) => {}
            }
        }
    }
}

/// The result that ends a stream.
fn farewell(id: &str) -> String {
    let tag = ObjectWriter::new().raw(meta::SUBSCRIPTION_ID, id).finish();
    ObjectWriter::new()
        .text("resultType", "complete")
        .raw("_meta", &tag)
        .finish()
}
