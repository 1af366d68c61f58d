//! Subscriptions of a legacy client at a modern server.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::listen::{ListenFilter, covers};
use mcpact_engine::time::Moment;
use mcpact_spec::{Capability, ErrorCode, Method, Revision};
use mcpact_wire::id::Id;
use mcpact_wire::raw::ObjectWriter;

use super::{LISTS, untagged, uri_in};
use crate::input::Backoff;
use crate::wire_error::wire_error;

/// Limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// Resources that it may be subscribed to, and subscriptions that may be under way.
    pub uris: usize,
    /// The pauses before a stream that broke is opened again; one that lived longer than the
    /// longest was a good one.
    pub backoff: Backoff,
}

/// Action to perform; actions come in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the server `subscriptions/listen` with this filter, after this pause. The name of the
    /// stream is for the calls of [`LegacySubscriptions`] only.
    Open {
        /// Our name for the stream.
        stream: u64,
        /// Its filter.
        filter: ListenFilter,
        /// Pause before it.
        after: Duration,
    },
    /// End the stream, or do not open it if it still waits. What is on its way on it may still be
    /// [received](LegacySubscriptions::notification).
    Close {
        /// Our name for the stream.
        stream: u64,
    },
    /// Answer the client: with an empty result, or this error.
    Answer {
        /// The client's request.
        request: Id,
        /// Empty result or error.
        outcome: Result<(), WireError>,
    },
    /// Send the client a notification.
    Notify {
        /// Method.
        method: Method,
        /// Raw parameters.
        params: Option<String>,
    },
}

/// The subscriptions of one legacy session, and the streams that fulfil them.
///
/// ```text
/// nothing open --wish--> opening --ack--> open --wish--> open + opening --ack--> open
///       ^                   |               |
///       +----- pause -------+---- ended ----+
/// ```
///
/// A stream is replaced only when its successor is acknowledged, so nothing is missed in between;
/// what is heard twice does no harm. After a gap everything counts as changed.
#[derive(Clone, Debug)]
pub struct LegacySubscriptions {
    client: Revision,
    offered: ListenFilter,
    may_subscribe: bool,
    uris: BTreeSet<Box<str>>,
    /// Resources confirmed to the client; a broken stream does not change them.
    promised: BTreeSet<Box<str>>,
    open: Option<Open>,
    opening: Option<Opening>,
    queued: Vec<(Id, Box<str>)>,
    next_stream: u64,
    failures: u32,
    has_failed: bool,
    has_gap: bool,
    has_channel: bool,
    pending: PendingNotifications,
    limits: SubscriptionLimits,
}

#[derive(Clone, Debug)]
struct Open {
    stream: u64,
    since: Moment,
    /// Requested filter without the resources that the server refused.
    filter: ListenFilter,
    granted: ListenFilter,
}

#[derive(Clone, Debug)]
struct Opening {
    stream: u64,
    filter: ListenFilter,
    waiting: Vec<(Id, Box<str>)>,
}

impl LegacySubscriptions {
    /// The subscriptions of a client of this revision toward a server with these capabilities: at first
    /// the lists with change notifications of the server.
    #[must_use]
    pub fn new(client: Revision, server: &CapabilitySet, limits: SubscriptionLimits) -> Self {
        let declared = server.declared();
        Self {
            client,
            offered: ListenFilter::lists(declared),
            may_subscribe: declared.has(Capability::ResourcesSubscribe),
            uris: BTreeSet::new(),
            promised: BTreeSet::new(),
            open: None,
            opening: None,
            queued: Vec::new(),
            next_stream: 0,
            failures: 0,
            has_failed: false,
            has_gap: false,
            has_channel: false,
            pending: PendingNotifications::default(),
            limits,
        }
    }

    /// Leaves out list changes, for a client that gets them in another way.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.offered = ListenFilter::default();
        self
    }

    /// The handshake is over: the client may receive notifications.
    #[must_use]
    pub fn ready(&mut self) -> Vec<Action> {
        self.adjust()
    }

    /// The client asks for `resources/subscribe`.
    #[must_use]
    pub fn subscribe(&mut self, request: Id, params: Option<&str>) -> Vec<Action> {
        let uri = match self.requested_uri(params) {
            Ok(uri) => uri,
            Err(error) => return Vec::from([answer(request, Err(error))]),
        };
        if self.promised.contains(&uri) {
            return Vec::from([answer(request, Ok(()))]);
        }
        let is_new = !self.uris.contains(&uri);
        if self.queued.len() >= self.limits.uris || (is_new && self.uris.len() >= self.limits.uris)
        {
            let message = "too many subscriptions; unsubscribe from some resources first";
            let error = wire_error(ErrorCode::InternalError, message, self.client);
            return Vec::from([answer(request, Err(error))]);
        }
        self.uris.insert(uri.clone());
        self.queued.push((request, uri));
        self.adjust()
    }

    /// The client asks for `resources/unsubscribe`; what it never had is gone all the same.
    #[must_use]
    pub fn unsubscribe(&mut self, request: Id, params: Option<&str>) -> Vec<Action> {
        let outcome = self.requested_uri(params).map(|uri| {
            self.give_up(&uri);
            self.pending.uris.retain(|pending| !covers(&uri, pending));
        });
        let mut acts = Vec::from([answer(request, outcome)]);
        acts.extend(self.adjust());
        acts
    }

    /// The server acknowledged the stream with these parameters.
    #[must_use]
    pub fn acknowledged(&mut self, stream: u64, params: Option<&str>, now: Moment) -> Vec<Action> {
        let Some(opening) = self.opening.take_if(|opening| opening.stream == stream) else {
            return Vec::new();
        };
        let granted = ListenFilter::parse(params).unwrap_or_default();
        let mut filter = opening.filter;
        let (held, refused): (Vec<_>, Vec<_>) = mem::take(&mut filter.uris)
            .into_iter()
            .partition(|uri| granted.uris.contains(uri));
        for uri in &refused {
            self.give_up(uri);
        }
        let wanted = held.iter().filter(|uri| self.uris.contains(*uri));
        self.promised.extend(wanted.cloned());
        let mut acts = Vec::new();
        let also = self.unqueued(|uri| is_in(&held, uri) || is_in(&refused, uri));
        for (request, uri) in opening.waiting.into_iter().chain(also) {
            let outcome = if held.contains(&uri) {
                Ok(())
            } else {
                Err(not_granted(&uri, self.client))
            };
            acts.push(answer(request, outcome));
        }
        filter.uris = held;
        self.has_failed = false;
        let replaced = self.open.replace(Open {
            stream,
            since: now,
            filter,
            granted,
        });
        acts.extend(replaced.map(|old| Action::Close { stream: old.stream }));
        if mem::take(&mut self.has_gap) {
            self.notify_everything(&mut acts);
        }
        acts.extend(self.adjust());
        acts
    }

    /// A stream is over, or could not be opened, for whatever reason.
    #[must_use]
    pub fn ended(&mut self, stream: u64, now: Moment) -> Vec<Action> {
        let open = self.open.as_ref().filter(|open| open.stream == stream);
        let was_good = open.is_some_and(|open| now.since(open.since) > self.limits.backoff.longest);
        let Some(mut acts) = self.without(stream) else {
            return Vec::new();
        };
        if was_good {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.has_failed = true;
        acts.extend(self.adjust());
        acts
    }

    /// A stream is over because the server sleeps. That is no failure: another one is asked for at once, which can be
    /// opened when the server wakes.
    #[must_use]
    pub fn server_idle(&mut self, stream: u64) -> Vec<Action> {
        let Some(mut acts) = self.without(stream) else {
            return Vec::new();
        };
        acts.extend(self.adjust());
        acts
    }

    /// Removes a stream and answers the requests that wait for it; none if it is unknown.
    fn without(&mut self, stream: u64) -> Option<Vec<Action>> {
        let mut acts = Vec::new();
        if let Some(opening) = self.opening.take_if(|opening| opening.stream == stream) {
            let failed: Vec<_> = opening.waiting.iter().map(|(_, uri)| uri.clone()).collect();
            let also = self.unqueued(|uri| is_in(&failed, uri));
            for (request, uri) in opening.waiting.into_iter().chain(also) {
                self.give_up(&uri);
                let message = "the server did not open a stream for the subscription";
                let error = wire_error(ErrorCode::InternalError, message, self.client);
                acts.push(answer(request, Err(error)));
            }
        } else {
            self.open.take_if(|open| open.stream == stream)?;
            self.has_gap = true;
        }
        Some(acts)
    }

    /// Something may have changed that no stream reported.
    #[must_use]
    pub fn resync(&mut self) -> Vec<Action> {
        let mut acts = Vec::new();
        self.has_gap = self.open.is_none();
        self.notify_everything(&mut acts);
        acts
    }

    /// The server sent a notification on a stream. On one that was replaced something may still be on its
    /// way that its successor was too late for.
    #[must_use]
    pub fn notification(
        &mut self,
        stream: u64,
        method: Method,
        params: Option<&str>,
    ) -> Vec<Action> {
        let mut acts = Vec::new();
        if self.open.as_ref().is_none_or(|open| open.stream < stream) {
            return acts;
        }
        let uri = uri_in(params);
        let is_wanted = match &uri {
            Some(uri) if method == Method::ResourcesUpdated => {
                self.uris.iter().any(|wanted| covers(wanted, uri))
            }
            Some(_) | None => LISTS.contains(&method),
        };
        if !is_wanted {
            return acts;
        }
        if self.has_channel {
            let params = params.and_then(|raw| untagged(raw, self.client).ok());
            let params = params.map(String::from).filter(|raw| raw != "{}");
            acts.push(Action::Notify { method, params });
        } else {
            self.pending
                .remember(method, uri.as_deref(), self.limits.uris);
        }
        acts
    }

    /// The client can receive notifications from now on; the ones it missed come first.
    #[must_use]
    pub fn channel_opened(&mut self) -> Vec<Action> {
        self.has_channel = true;
        let pending = mem::take(&mut self.pending);
        let uris = if pending.is_all {
            &self.uris
        } else {
            &pending.uris
        };
        let lists = pending.lists.iter().map(|method| list_changed(*method));
        lists.chain(uris.iter().map(|uri| updated(uri))).collect()
    }

    /// The client cannot receive notifications for now.
    pub const fn channel_closed(&mut self) {
        self.has_channel = false;
    }

    /// Opens a stream if what is open is not what is wanted, unless one is being opened already;
    /// subscriptions that come in the meantime share the next one.
    fn adjust(&mut self) -> Vec<Action> {
        if self.opening.is_some() {
            return Vec::new();
        }
        let filter = ListenFilter {
            uris: self.uris.iter().cloned().collect(),
            ..self.offered.clone()
        };
        let is_open = self.open.as_ref().is_some_and(|open| open.filter == filter);
        if is_open {
            self.promised.extend(filter.uris.iter().cloned());
        }
        let (here, waiting): (Vec<_>, Vec<_>) = mem::take(&mut self.queued)
            .into_iter()
            .partition(|(_, uri)| self.promised.contains(uri) || !self.uris.contains(uri));
        let here = here.into_iter();
        let mut acts: Vec<_> = here.map(|(request, _)| answer(request, Ok(()))).collect();
        if filter == ListenFilter::default() {
            let open = self.open.take();
            acts.extend(open.map(|open| Action::Close {
                stream: open.stream,
            }));
            self.has_gap = false;
            return acts;
        }
        if is_open {
            return acts;
        }
        let stream = self.next_stream;
        self.next_stream += 1;
        let after = if self.has_failed {
            self.limits.backoff.pause(self.failures.saturating_sub(1))
        } else {
            Duration::ZERO
        };
        acts.push(Action::Open {
            stream,
            filter: filter.clone(),
            after,
        });
        self.opening = Some(Opening {
            stream,
            filter,
            waiting,
        });
        acts
    }

    fn give_up(&mut self, uri: &str) {
        self.uris.remove(uri);
        self.promised.remove(uri);
    }

    /// Takes the queued requests that an opened stream decides, too.
    fn unqueued(&mut self, is_decided: impl Fn(&str) -> bool) -> Vec<(Id, Box<str>)> {
        let (decided, queued) = mem::take(&mut self.queued)
            .into_iter()
            .partition(|(_, uri)| is_decided(uri));
        self.queued = queued;
        decided
    }

    /// Reports everything as changed: notifications of a gap are lost.
    fn notify_everything(&mut self, acts: &mut Vec<Action>) {
        let Some(open) = &self.open else {
            return;
        };
        for method in LISTS.into_iter().filter(|m| open.granted.wants(*m, None)) {
            if self.has_channel {
                acts.push(list_changed(method));
            } else {
                self.pending.remember(method, None, self.limits.uris);
            }
        }
        for uri in &open.filter.uris {
            if self.has_channel {
                acts.push(updated(uri));
            } else {
                let method = Method::ResourcesUpdated;
                self.pending.remember(method, Some(uri), self.limits.uris);
            }
        }
    }

    fn requested_uri(&self, params: Option<&str>) -> Result<Box<str>, WireError> {
        if !self.may_subscribe {
            let message = "the server did not declare `resources.subscribe`";
            return Err(wire_error(ErrorCode::MethodNotFound, message, self.client));
        }
        let uri = uri_in(params).map(|uri| Box::from(uri.as_ref()));
        uri.ok_or_else(|| {
            wire_error(
                ErrorCode::InvalidParams,
                "`uri` must be a string",
                self.client,
            )
        })
    }
}

fn is_in(list: &[Box<str>], uri: &str) -> bool {
    list.iter().any(|listed| **listed == *uri)
}

/// The server has no such resource, or does not report its changes; it does not say which.
fn not_granted(uri: &str, client: Revision) -> WireError {
    let message =
        format!("the server did not agree to tell of the resource `{uri}`; it may not exist");
    let mut error = wire_error(ErrorCode::InvalidParams, &message, client);
    error.data = Some(ObjectWriter::new().text("uri", uri).finish());
    error
}

const fn answer(request: Id, outcome: Result<(), WireError>) -> Action {
    Action::Answer { request, outcome }
}

const fn list_changed(method: Method) -> Action {
    Action::Notify {
        method,
        params: None,
    }
}

fn updated(uri: &str) -> Action {
    Action::Notify {
        method: Method::ResourcesUpdated,
        params: Some(ObjectWriter::new().text("uri", uri).finish()),
    }
}

#[cfg(test)]
mod tests;

/// Notifications that wait until the client has a stream.
#[derive(Clone, Debug, Default)]
struct PendingNotifications {
    lists: BTreeSet<Method>,
    uris: BTreeSet<Box<str>>,
    /// More resources than there is room for: then all of them.
    is_all: bool,
}

impl PendingNotifications {
    /// Remembers a notification; of so many resources at most.
    fn remember(&mut self, method: Method, uri: Option<&str>, most: usize) {
        match uri {
            Some(uri) if method == Method::ResourcesUpdated => {
                if self.uris.len() < most || self.uris.contains(uri) {
                    self.uris.insert(Box::from(uri));
                } else {
                    self.is_all = true;
                }
            }
            Some(_) | None => {
                self.lists.insert(method);
            }
        }
    }
}
