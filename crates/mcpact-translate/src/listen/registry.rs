//! Listen streams of modern clients over the session of a legacy server.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::tables::meta;
use mcpact_spec::{Capability, ErrorCode, Method};
use mcpact_wire::id::Id;
use mcpact_wire::raw::ObjectWriter;

use super::{LISTS, tagged, uri_in};
use crate::wire_error::modern_error;

/// Limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// Streams at a time.
    pub listens: usize,
    /// Resources that the session may be subscribed to.
    pub uris: usize,
    /// Notifications that wait for one stream to be acknowledged.
    pub held: usize,
}

/// A listen request: ids are unique for one caller only, and keep their JSON type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenKey {
    /// Caller.
    pub caller: u64,
    /// The id of its request, and so of its stream.
    pub id: Id,
}

/// Ability of the server to send messages outside of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPush {
    /// On its pipe, or on a GET stream.
    Works,
    /// It answered GET with 405: there is no way for changes to arrive.
    Missing,
}

/// Action to perform; actions come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the server `resources/subscribe`, and report whether it
    /// [took it](ListenRegistry::subscribed) or [not](ListenRegistry::refused).
    Subscribe {
        /// The resource.
        uri: Box<str>,
    },
    /// Send the server `resources/unsubscribe`; the answer does not matter.
    Unsubscribe {
        /// The resource.
        uri: Box<str>,
    },
    /// Send a client a notification on its stream.
    Notify {
        /// The stream.
        listen: ListenKey,
        /// Method.
        method: Method,
        /// Raw parameters with the tag of the stream.
        params: String,
    },
    /// Answer the listen request and close the stream; on lines, `notifications/cancelled` follows.
    End {
        /// The stream.
        listen: ListenKey,
        /// The result.
        result: String,
    },
}

/// Listen streams over one legacy session.
///
/// A resource has one subscription for all streams that want it. A stream is acknowledged when
/// the server has answered for every resource in it, and nothing goes out on it before.
#[derive(Clone, Debug)]
pub struct ListenRegistry {
    offered: ListenFilter,
    may_subscribe: bool,
    listens: BTreeMap<ListenKey, Listen>,
    subscriptions: BTreeMap<Box<str>, Subscription>,
    is_lost: bool,
    limits: ListenLimits,
}

#[derive(Clone, Debug)]
struct Listen {
    granted: ListenFilter,
    /// Resources that the server has not answered for; empty once acknowledged.
    waiting: BTreeSet<Box<str>>,
    is_acknowledged: bool,
    held: Vec<(Method, Option<String>)>,
}

/// State of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    /// The server was asked.
    Asked,
    /// The server was asked again, after a session was lost; what happened meanwhile is unknown.
    AskedAgain,
    /// The server reports its changes.
    Held,
}

impl ListenRegistry {
    /// A session with a server of these capabilities.
    #[must_use]
    pub fn new(server: &CapabilitySet, push: ServerPush, limits: ListenLimits) -> Self {
        let (offered, may_subscribe) = offers(server, push);
        Self {
            offered,
            may_subscribe,
            listens: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            is_lost: false,
            limits,
        }
    }

    /// A client opens a stream with this filter; `knows_task` returns true for its own tasks.
    ///
    /// # Errors
    /// It has a stream of that id, or there is no room for more.
    pub fn open(
        &mut self,
        listen: ListenKey,
        filter: ListenFilter,
        knows_task: impl Fn(&str) -> bool,
    ) -> Result<Vec<Action>, WireError> {
        if self.listens.contains_key(&listen) {
            let message = "the id is in use by an open stream";
            return Err(modern_error(ErrorCode::InvalidRequest, message));
        }
        if self.listens.len() >= self.limits.listens {
            let message = "too many streams; close one first";
            return Err(modern_error(ErrorCode::InternalError, message));
        }
        let mut granted = self.grant(filter);
        granted.tasks.retain(|task| knows_task(task));
        let mut acts = Vec::new();
        let mut waiting = BTreeSet::new();
        for uri in &granted.uris {
            match self.subscriptions.get(uri) {
                Some(Subscription::Held) => {}
                Some(Subscription::Asked | Subscription::AskedAgain) => {
                    waiting.insert(uri.clone());
                }
                None => {
                    waiting.insert(uri.clone());
                    self.subscriptions.insert(uri.clone(), Subscription::Asked);
                    if !self.is_lost {
                        acts.push(Action::Subscribe { uri: uri.clone() });
                    }
                }
            }
        }
        let entry = Listen {
            granted,
            waiting,
            is_acknowledged: false,
            held: Vec::new(),
        };
        self.listens.insert(listen, entry);
        self.acknowledge(&mut acts);
        Ok(acts)
    }

    /// The server took a subscription.
    #[must_use]
    pub fn subscribed(&mut self, uri: &str) -> Vec<Action> {
        let mut acts = Vec::new();
        let Some(subscription) = self.subscriptions.get_mut(uri) else {
            return acts;
        };
        let was = mem::replace(subscription, Subscription::Held);
        if was == Subscription::AskedAgain {
            self.notify_updated(uri, &mut acts);
        }
        self.answered(uri, &mut acts);
        self.release(&mut acts);
        acts
    }

    /// The server refused a subscription: it is removed from the streams.
    #[must_use]
    pub fn refused(&mut self, uri: &str) -> Vec<Action> {
        let mut acts = Vec::new();
        if self.subscriptions.remove(uri) == Some(Subscription::AskedAgain) {
            self.notify_updated(uri, &mut acts);
        }
        for listen in self.listens.values_mut() {
            listen.granted.uris.retain(|granted| **granted != *uri);
        }
        self.answered(uri, &mut acts);
        acts
    }

    /// The server sent a notification.
    #[must_use]
    pub fn notification(&mut self, method: Method, params: Option<&str>) -> Vec<Action> {
        let mut acts = Vec::new();
        for (key, listen) in &mut self.listens {
            if listen.granted.wants(method, params) {
                listen.notify(key, method, params, self.limits.held, &mut acts);
            }
        }
        acts
    }

    /// A stream is over: the client closed or cancelled it.
    #[must_use]
    pub fn close(&mut self, listen: &ListenKey) -> Vec<Action> {
        let mut acts = Vec::new();
        if self.listens.remove(listen).is_some() {
            self.release(&mut acts);
        }
        acts
    }

    /// The session is lost; the streams stay open until there is another.
    pub fn session_lost(&mut self) {
        self.is_lost = true;
        for subscription in self.subscriptions.values_mut() {
            if *subscription == Subscription::Held {
                *subscription = Subscription::AskedAgain;
            }
        }
    }

    /// There is another session: everything is asked for again, and may have changed.
    #[must_use]
    pub fn session_restored(&mut self, server: &CapabilitySet, push: ServerPush) -> Vec<Action> {
        (self.offered, self.may_subscribe) = offers(server, push);
        self.is_lost = false;
        let uris = self.subscriptions.keys().cloned();
        let mut acts: Vec<_> = uris.map(|uri| Action::Subscribe { uri }).collect();
        for method in LISTS {
            acts.extend(self.notification(method, None));
        }
        acts
    }

    /// Every stream ends, in order, as when the gateway stops or the server is gone for good.
    #[must_use]
    pub fn end(&mut self) -> Vec<Action> {
        self.subscriptions.clear();
        let ended = mem::take(&mut self.listens).into_keys();
        ended
            .map(|listen| Action::End {
                result: final_result(&listen.id),
                listen,
            })
            .collect()
    }

    /// Returns whether a stream wants any resource.
    #[must_use]
    pub fn has_subscriptions(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// Returns whether a stream wants this resource, or its subscription is under way.
    #[must_use]
    pub fn wants(&self, uri: &str) -> bool {
        self.subscriptions.contains_key(uri)
    }

    /// Returns whether there is no stream: then the session need not be kept open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.listens.is_empty() && self.subscriptions.is_empty()
    }

    /// The part of a filter that this session can serve.
    fn grant(&self, asked: ListenFilter) -> ListenFilter {
        let mut uris = BTreeSet::new();
        let mut room = self.limits.uris.saturating_sub(self.subscriptions.len());
        for uri in asked.uris.into_iter().filter(|_| self.may_subscribe) {
            if self.subscriptions.contains_key(&uri) || uris.contains(&uri) {
                uris.insert(uri);
            } else if room > 0 {
                room -= 1;
                uris.insert(uri);
            }
        }
        ListenFilter {
            tools: asked.tools && self.offered.tools,
            prompts: asked.prompts && self.offered.prompts,
            resources: asked.resources && self.offered.resources,
            uris: uris.into_iter().collect(),
            tasks: asked.tasks,
        }
    }

    fn answered(&mut self, uri: &str, acts: &mut Vec<Action>) {
        for listen in self.listens.values_mut() {
            listen.waiting.remove(uri);
        }
        self.acknowledge(acts);
    }

    /// Acknowledges every stream that waits for no resource, then sends the notifications held for it.
    fn acknowledge(&mut self, acts: &mut Vec<Action>) {
        for (key, listen) in &mut self.listens {
            if listen.is_acknowledged || !listen.waiting.is_empty() {
                continue;
            }
            listen.is_acknowledged = true;
            let accepted = ObjectWriter::new().raw("notifications", &listen.granted.encode());
            let method = Method::SubscriptionsAcknowledged;
            push_notify(key, method, Some(&accepted.finish()), acts);
            for (method, params) in mem::take(&mut listen.held) {
                push_notify(key, method, params.as_deref(), acts);
            }
        }
    }

    /// Gives up the subscriptions that no stream needs; one that is under way is given up when the
    /// server has answered.
    fn release(&mut self, acts: &mut Vec<Action>) {
        let is_needed = |uri: &str| {
            let mut listens = self.listens.values();
            listens.any(|listen| listen.granted.uris.iter().any(|of| **of == *uri))
        };
        let is_lost = self.is_lost;
        self.subscriptions.retain(|uri, subscription| {
            if is_needed(uri) || (*subscription != Subscription::Held && !is_lost) {
                return true;
            }
            if !is_lost {
                acts.push(Action::Unsubscribe { uri: uri.clone() });
            }
            false
        });
    }

    fn notify_updated(&mut self, uri: &str, acts: &mut Vec<Action>) {
        let params = ObjectWriter::new().text("uri", uri).finish();
        for (key, listen) in &mut self.listens {
            if listen.granted.uris.iter().any(|of| **of == *uri) {
                let method = Method::ResourcesUpdated;
                listen.notify(key, method, Some(&params), self.limits.held, acts);
            }
        }
    }
}

impl Listen {
    fn notify(
        &mut self,
        key: &ListenKey,
        method: Method,
        params: Option<&str>,
        most: usize,
        acts: &mut Vec<Action>,
    ) {
        if self.is_acknowledged {
            return push_notify(key, method, params, acts);
        }
        // One notification of a change is enough: the client then reads the current state.
        let is_same = |held: &(Method, Option<String>)| {
            held.0 == method && uri_in(held.1.as_deref()) == uri_in(params)
        };
        if self.held.len() < most && !self.held.iter().any(is_same) {
            self.held.push((method, params.map(String::from)));
        }
    }
}

fn offers(server: &CapabilitySet, push: ServerPush) -> (ListenFilter, bool) {
    let declared = match push {
        ServerPush::Works => server.declared(),
        ServerPush::Missing => CapabilityBits::NONE,
    };
    (
        ListenFilter::lists(declared),
        declared.has(Capability::ResourcesSubscribe),
    )
}

/// Parameters that are not an object say nothing that could be tagged.
fn push_notify(listen: &ListenKey, method: Method, params: Option<&str>, acts: &mut Vec<Action>) {
    if let Ok(params) = tagged(params, &listen.id) {
        acts.push(Action::Notify {
            listen: listen.clone(),
            method,
            params,
        });
    }
}

fn final_result(id: &Id) -> String {
    let tag = ObjectWriter::new().raw(meta::SUBSCRIPTION_ID, id.raw());
    ObjectWriter::new()
        .text("resultType", "complete")
        .raw("_meta", &tag.finish())
        .finish()
}

#[cfg(test)]
mod tests;
