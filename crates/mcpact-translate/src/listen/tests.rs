//! Properties of every history of subscribing and listening, whatever the peers do.

use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::vec::Vec;
use std::{format, string::String};

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_engine::time::Moment;
use mcpact_spec::{Capability, Method, Revision, Side};
use mcpact_wire::id::Id;
use proptest::prelude::*;

use super::legacy_subscriptions::{self, LegacySubscriptions, SubscriptionLimits};
use super::registry::{self, ListenKey, ListenLimits, ListenRegistry, ServerPush};
use crate::input::Backoff;

const URIS: [&str; 4] = ["a:0", "a:1", "a:2", "a:3"];

fn server() -> CapabilitySet {
    CapabilitySet::declaring(Side::Server, [Capability::ResourcesSubscribe])
}

fn params(uri: usize) -> String {
    format!(r#"{{"uri":"{}"}}"#, URIS[uri])
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Subscribe(usize),
    Unsubscribe(usize),
    /// The server acknowledges what is being opened, but for the resources in the mask.
    Acknowledge(u8),
    EndOpening,
    EndOpen,
    Hear(usize),
    Channel(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..URIS.len()).prop_map(Event::Subscribe),
        3 => (0..URIS.len()).prop_map(Event::Unsubscribe),
        5 => prop_oneof![Just(0_u8), any::<u8>()].prop_map(Event::Acknowledge),
        1 => Just(Event::EndOpening),
        1 => Just(Event::EndOpen),
        2 => (0..URIS.len()).prop_map(Event::Hear),
        1 => any::<bool>().prop_map(Event::Channel),
    ]
}

/// Client and server around the subscriptions of one session.
struct Session {
    subscriptions: LegacySubscriptions,
    requests: i64,
    /// Requests that wait for their answer, and what they subscribe to.
    waiting: BTreeMap<i64, Option<usize>>,
    /// Subscriptions that the client holds.
    promised: BTreeSet<usize>,
    opening: Option<(u64, ListenFilter)>,
    open: Option<(u64, ListenFilter)>,
    streams: u64,
    has_channel: bool,
}

impl Session {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let backoff = Backoff {
            first: second,
            longest: second,
        };
        let limits = SubscriptionLimits { uris: 3, backoff };
        Self {
            subscriptions: LegacySubscriptions::new(Revision::V2025_06_18, &server(), limits),
            requests: 0,
            waiting: BTreeMap::new(),
            promised: BTreeSet::new(),
            opening: None,
            open: None,
            streams: 0,
            has_channel: false,
        }
    }

    fn step(&mut self, event: Event) {
        let now = Moment::ZERO;
        let acts = match event {
            Event::Subscribe(uri) => {
                let id = self.request(Some(uri));
                self.subscriptions.subscribe(id, Some(&params(uri)))
            }
            Event::Unsubscribe(uri) => {
                let id = self.request(None);
                self.promised.remove(&uri);
                self.forget(uri);
                self.subscriptions.unsubscribe(id, Some(&params(uri)))
            }
            Event::Acknowledge(refused) => {
                let Some((stream, mut filter)) = self.opening.take() else {
                    return;
                };
                let is_refused = |uri: &str| {
                    let at = URIS.iter().position(|known| *known == uri);
                    at.is_some_and(|at| refused >> at & 1 == 1)
                };
                filter.uris.retain(|uri| !is_refused(uri));
                let body = format!(r#"{{"notifications":{}}}"#, filter.encode());
                self.promised
                    .retain(|uri| filter.uris.iter().any(|u| **u == *URIS[*uri]));
                let acts = self.subscriptions.acknowledged(stream, Some(&body), now);
                let replaced = self.open.replace((stream, filter));
                let closed = |act: &legacy_subscriptions::Action| matches!((act, &replaced), (legacy_subscriptions::Action::Close { stream }, Some((old, _))) if stream == old);
                assert!(replaced.is_none() || acts.iter().any(closed), "two streams");
                acts
            }
            Event::EndOpening => match self.opening.take() {
                Some((stream, _)) => self.subscriptions.ended(stream, now),
                None => return,
            },
            Event::EndOpen => match self.open.take() {
                Some((stream, _)) => self.subscriptions.ended(stream, now),
                None => return,
            },
            Event::Hear(uri) => {
                let Some((stream, _)) = self.open else {
                    return;
                };
                let body = params(uri);
                self.subscriptions
                    .notification(stream, Method::ResourcesUpdated, Some(&body))
            }
            Event::Channel(true) => {
                self.has_channel = true;
                self.subscriptions.channel_opened()
            }
            Event::Channel(false) => {
                self.has_channel = false;
                self.subscriptions.channel_closed();
                return;
            }
        };
        self.perform(acts);
    }

    fn request(&mut self, uri: Option<usize>) -> Id {
        self.requests += 1;
        self.waiting.insert(self.requests, uri);
        Id::number(self.requests)
    }

    /// A subscription that is given up before it is answered promises nothing.
    fn forget(&mut self, uri: usize) {
        for waited in self.waiting.values_mut() {
            if *waited == Some(uri) {
                *waited = None;
            }
        }
    }

    fn perform(&mut self, acts: Vec<legacy_subscriptions::Action>) {
        for act in acts {
            match act {
                legacy_subscriptions::Action::Open { stream, filter, .. } => {
                    assert_eq!(stream, self.streams, "names are used once");
                    assert!(self.opening.is_none(), "one at a time");
                    self.streams += 1;
                    self.opening = Some((stream, filter));
                }
                legacy_subscriptions::Action::Close { stream } => {
                    if self.open.as_ref().is_some_and(|(open, _)| *open == stream) {
                        self.open = None;
                    }
                }
                legacy_subscriptions::Action::Answer { request, outcome } => {
                    let request: i64 = request.raw().parse().unwrap();
                    let uri = self.waiting.remove(&request).expect("answered once");
                    if let (Some(uri), Ok(())) = (uri, outcome) {
                        self.promised.insert(uri);
                    }
                }
                legacy_subscriptions::Action::Notify { params, .. } => {
                    assert!(self.has_channel, "the client has no stream");
                    assert!(params.is_some_and(|raw| !raw.contains("_meta")));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Open(u64, u8),
    Close(u64),
    Answer(bool),
    Hear(usize),
    Lose,
    Restore,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (0..4_u64, any::<u8>()).prop_map(|(key, uris)| Call::Open(key, uris)),
        3 => (0..4_u64).prop_map(Call::Close),
        6 => prop_oneof![4 => Just(true), 1 => Just(false)].prop_map(Call::Answer),
        3 => (0..URIS.len()).prop_map(Call::Hear),
        1 => Just(Call::Lose),
        1 => Just(Call::Restore),
    ]
}

/// Clients and a legacy server around one registry.
struct Aggregator {
    registry: ListenRegistry,
    /// Streams, and whether they were acknowledged.
    streams: BTreeMap<ListenKey, bool>,
    /// Requests that the server has not answered.
    asked: Vec<Box<str>>,
    /// Subscriptions at the server.
    held: BTreeSet<Box<str>>,
    is_lost: bool,
}

impl Aggregator {
    fn new() -> Self {
        let limits = ListenLimits {
            listens: 3,
            uris: 3,
            held: 2,
        };
        Self {
            registry: ListenRegistry::new(&server(), ServerPush::Works, limits),
            streams: BTreeMap::new(),
            asked: Vec::new(),
            held: BTreeSet::new(),
            is_lost: false,
        }
    }

    fn step(&mut self, call: Call) {
        let key = |id: u64| ListenKey {
            caller: id % 2,
            id: Id::number(i64::try_from(id).unwrap()),
        };
        let acts = match call {
            Call::Open(id, mask) => {
                let uris = (0..URIS.len()).filter(|at| mask >> at & 1 == 1);
                let filter = ListenFilter {
                    uris: uris.map(|at| URIS[at].into()).collect(),
                    ..ListenFilter::default()
                };
                let Ok(acts) = self.registry.open(key(id), filter, |_| false) else {
                    return;
                };
                self.streams.insert(key(id), false);
                acts
            }
            Call::Close(id) => {
                self.streams.remove(&key(id));
                self.registry.close(&key(id))
            }
            Call::Answer(takes) => {
                if self.is_lost || self.asked.is_empty() {
                    return;
                }
                let uri = self.asked.remove(0);
                if takes {
                    self.held.insert(uri.clone());
                    self.registry.subscribed(&uri)
                } else {
                    self.registry.refused(&uri)
                }
            }
            Call::Hear(uri) => {
                let body = params(uri);
                self.registry
                    .notification(Method::ResourcesUpdated, Some(&body))
            }
            Call::Lose => {
                self.is_lost = true;
                self.asked.clear();
                self.held.clear();
                self.registry.session_lost();
                return;
            }
            Call::Restore if self.is_lost => {
                self.is_lost = false;
                self.registry.session_restored(&server(), ServerPush::Works)
            }
            Call::Restore => return,
        };
        self.perform(acts);
    }

    fn perform(&mut self, acts: Vec<registry::Action>) {
        for act in acts {
            match act {
                registry::Action::Subscribe { uri } => {
                    assert!(!self.is_lost, "the session is lost");
                    assert!(!self.held.contains(&uri), "{uri} is held");
                    assert!(!self.asked.contains(&uri), "{uri} was asked for");
                    self.asked.push(uri);
                }
                registry::Action::Unsubscribe { uri } => {
                    assert!(self.held.remove(&uri), "{uri} was not held");
                }
                registry::Action::Notify { listen, method, .. } => {
                    let acknowledged = self.streams.get_mut(&listen).expect("an open stream");
                    let is_first = method == Method::SubscriptionsAcknowledged;
                    assert_eq!(*acknowledged, !is_first, "the first, and only once");
                    *acknowledged = true;
                }
                registry::Action::End { .. } => unreachable!("no stream is ended here"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_subscription_is_answered_once_and_kept(events in prop::collection::vec(event(), 0..60)) {
        let mut session = Session::new();
        for event in events {
            session.step(event);
        }
        for _ in 0..200 {
            if session.opening.is_none() {
                break;
            }
            session.step(Event::Acknowledge(0));
        }
        prop_assert!(session.opening.is_none(), "it never settles");
        prop_assert!(session.waiting.is_empty(), "{:?}", session.waiting);
        let told: BTreeSet<_> = session
            .open
            .iter()
            .flat_map(|(_, filter)| filter.uris.iter().map(|uri| &**uri))
            .collect();
        let promised: BTreeSet<_> = session.promised.iter().map(|uri| URIS[*uri]).collect();
        prop_assert_eq!(told, promised);
    }

    #[test]
    fn every_stream_is_acknowledged_first_and_nothing_stays_behind(
        calls in prop::collection::vec(call(), 0..60),
    ) {
        let mut hub = Aggregator::new();
        for call in calls {
            hub.step(call);
        }
        hub.step(Call::Restore);
        for _ in 0..URIS.len() {
            hub.step(Call::Answer(true));
        }
        prop_assert!(hub.streams.values().all(|acknowledged| *acknowledged));
        for id in 0..4 {
            hub.step(Call::Close(id));
        }
        prop_assert!(hub.held.is_empty(), "{:?}", hub.held);
        prop_assert!(hub.registry.is_idle());
    }
}
