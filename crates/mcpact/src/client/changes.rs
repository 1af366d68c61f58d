//! Change notifications, with the same interface in both eras.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::{Object, ObjectWriter};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::client_error::ClientError;
use super::{Client, Outgoing};
use crate::lock;

/// Maximum number of unread changes; duplicates are merged.
const LIMIT: usize = 1024;

/// Initial delay before a lost subscription is renewed.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of successive attempts to renew it.
const ATTEMPTS: u32 = 8;

/// Change of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A resource.
    Updated {
        /// URI; it may be a part of the subscribed resource.
        uri: String,
    },
}

impl Change {
    pub(super) fn of(method: Method, params: Option<&str>) -> Option<Self> {
        match method {
            Method::ToolsListChanged => Some(Self::Tools),
            Method::PromptsListChanged => Some(Self::Prompts),
            Method::ResourcesListChanged => Some(Self::Resources),
            Method::ResourcesUpdated => {
                let uri = Object::parse(params?).ok()?.get_str("uri")?;
                let uri = uri.into_owned();
                Some(Self::Updated { uri })
            }
            _ => None,
        }
    }
}

/// Filter of changes.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    filter: ListenFilter,
}

impl Watch {
    /// Creates an empty filter.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Every list.
    #[must_use]
    pub fn lists(self) -> Self {
        self.tools().prompts().resources()
    }

    /// The list of tools.
    #[must_use]
    pub const fn tools(mut self) -> Self {
        self.filter.tools = true;
        self
    }

    /// The list of prompts.
    #[must_use]
    pub const fn prompts(mut self) -> Self {
        self.filter.prompts = true;
        self
    }

    /// The list of resources.
    #[must_use]
    pub const fn resources(mut self) -> Self {
        self.filter.resources = true;
        self
    }

    /// One resource.
    #[must_use]
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.filter.uris.push(uri.into().into());
        self
    }
}

/// Unread changes.
#[derive(Debug)]
pub(super) struct ChangeQueue {
    wanted: ListenFilter,
    waiting: Mutex<VecDeque<Change>>,
    arrived: Notify,
    has_ended: AtomicBool,
    granted: watch::Sender<Option<ListenFilter>>,
}

impl ChangeQueue {
    fn new(wanted: ListenFilter) -> Self {
        Self {
            wanted,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            has_ended: AtomicBool::new(false),
            granted: watch::Sender::new(None),
        }
    }

    pub(super) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.wanted.tools,
            Change::Prompts => self.wanted.prompts,
            Change::Resources => self.wanted.resources,
            // Part of a subscribed resource may be reported under its own URI.
            Change::Updated { uri } => self
                .wanted
                .uris
                .iter()
                .any(|wanted| uri.starts_with(&**wanted)),
        }
    }

    pub(super) fn push(&self, change: &Change) {
        let mut waiting = lock(&self.waiting);
        if !waiting.contains(change) && waiting.len() < LIMIT {
            waiting.push_back(change.clone());
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.arrived.notify_one();
    }

    pub(super) fn acknowledge(&self, params: Option<&str>) {
        let granted = ListenFilter::parse(params).unwrap_or_default();
        let is_second = self.granted.send_replace(Some(granted)).is_some();
        if is_second {
            self.push_all_granted();
        }
    }

    /// After a gap, everything granted is reported as changed.
    fn push_all_granted(&self) {
        let granted = self.granted.borrow().clone().unwrap_or_default();
        let lists = [
            (granted.tools, Change::Tools),
            (granted.prompts, Change::Prompts),
            (granted.resources, Change::Resources),
        ];
        for (_, change) in lists.into_iter().filter(|(is_granted, _)| *is_granted) {
            self.push(&change);
        }
        for uri in granted.uris {
            self.push(&Change::Updated { uri: uri.into() });
        }
    }
}

/// Stream of changes. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Changes {
    queue: Arc<ChangeQueue>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Legacy { client: Client, uris: Vec<String> },
    Modern { renewal: AbortHandle },
}

impl Changes {
    /// Returns the next change; none after the connection has ended.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            let arrived = self.queue.arrived.notified();
            if let Some(change) = lock(&self.queue.waiting).pop_front() {
                return Some(change);
            }
            if self.queue.has_ended.load(Ordering::Acquire) {
                return None;
            }
            arrived.await;
        }
    }

    /// Returns the filter that the server has granted.
    #[must_use]
    pub fn granted(&self) -> ListenFilter {
        self.queue.granted.borrow().clone().unwrap_or_default()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        match &self.kind {
            Kind::Modern { renewal } => renewal.abort(),
            Kind::Legacy { client, uris } => {
                for uri in uris {
                    if client.shared.unsubscribe(uri) {
                        client.send_detached(Method::ResourcesUnsubscribe, uri_params(uri));
                    }
                }
            }
        }
    }
}

pub(super) fn uri_params(uri: &str) -> String {
    ObjectWriter::new().text("uri", uri).finish()
}

impl Client {
    /// Subscribes to one resource until the stream is dropped.
    ///
    /// # Errors
    /// The server does not declare subscriptions, or refuses.
    pub async fn subscribe(&self, uri: &str) -> Result<Changes, ClientError> {
        self.watch(Watch::new().resource(uri)).await
    }

    /// Ends a subscription; the same as dropping it.
    pub fn unsubscribe(&self, changes: Changes) {
        drop(changes);
    }

    /// Subscribes to changes until the stream is dropped. A legacy server gets a subscription for each resource and
    /// reports list changes unasked. A modern server opens a stream, which is renewed when it is lost.
    ///
    /// # Errors
    /// The server does not declare the changes, refuses, or does not acknowledge in time.
    pub async fn watch(&self, watch: Watch) -> Result<Changes, ClientError> {
        let pact = self.pact();
        let queue = Arc::new(ChangeQueue::new(watch.filter.clone()));
        match pact.era() {
            Era::Legacy => {
                let granted = watch.filter.clone().granted(&pact);
                queue.granted.send_replace(Some(granted));
                self.shared.add_listener(&queue);
                let mut changes = Changes {
                    queue,
                    kind: Kind::Legacy {
                        client: self.clone(),
                        uris: Vec::new(),
                    },
                };
                for uri in &watch.filter.uris {
                    if self.shared.subscribe(uri) {
                        let params = Some(uri_params(uri));
                        let asked = self.ask_plainly(Method::ResourcesSubscribe, params).await;
                        if let Err(error) = asked {
                            self.shared.unsubscribe(uri);
                            return Err(error);
                        }
                    }
                    if let Kind::Legacy { uris, .. } = &mut changes.kind {
                        uris.push(uri.to_string());
                    }
                }
                Ok(changes)
            }
            Era::Modern => {
                let mut granted = queue.granted.subscribe();
                let (failed, failure) = tokio::sync::oneshot::channel();
                let renewal = renew_subscription(self.clone(), Arc::clone(&queue), failed);
                let changes = Changes {
                    queue: Arc::clone(&queue),
                    kind: Kind::Modern {
                        renewal: tokio::spawn(renewal).abort_handle(),
                    },
                };
                self.shared.add_listener(&queue);
                tokio::select! {
                    // An acknowledged stream that is lost is renewed.
                    biased;
                    // The queue holds the sender, so this ends only with an acknowledgement.
                    _ = granted.wait_for(Option::is_some) => Ok(changes),
                    error = failure => Err(error.unwrap_or(ClientError::Closed)),
                    () = tokio::time::sleep(self.shared.limits.timeout) => Err(ClientError::Timeout {
                        method: Method::SubscriptionsListen.as_str().to_owned(),
                    }),
                }
            }
        }
    }
}

/// Keeps the stream of a modern subscription open.
async fn renew_subscription(
    client: Client,
    queue: Arc<ChangeQueue>,
    failed: tokio::sync::oneshot::Sender<ClientError>,
) {
    let mut failed = Some(failed);
    let params = ObjectWriter::new()
        .raw("notifications", &queue.wanted.encode())
        .finish();
    let mut attempt = 0;
    while attempt < ATTEMPTS && !client.is_closed() {
        let acknowledged = queue.granted.subscribe();
        let outcome = client.listen(&params, &queue).await;
        let was_acknowledged = acknowledged.has_changed().unwrap_or_default();
        if let Some(first) = failed.take()
            && !was_acknowledged
        {
            let _ = first.send(outcome.err().unwrap_or(ClientError::ProtocolViolation(
                "a subscription ended before it was acknowledged",
            )));
            break;
        }
        attempt = if was_acknowledged { 0 } else { attempt + 1 };
        tokio::time::sleep(PAUSE * 2u32.pow(attempt)).await;
    }
    queue.end();
}

impl Client {
    /// Sends a request without timeout.
    async fn listen(&self, params: &str, queue: &Arc<ChangeQueue>) -> Result<String, ClientError> {
        let endless = RequestTimeout {
            timeout: Duration::MAX,
            maximum: Duration::MAX,
            on_progress: OnProgress::Ignore,
        };
        let outgoing = Outgoing {
            changes: Some(Arc::clone(queue)),
            ..Outgoing::new(Method::SubscriptionsListen.as_str(), Some(params), endless)
        };
        self.send(outgoing).await
    }
}
