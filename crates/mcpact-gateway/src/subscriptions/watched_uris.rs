//! Under which addresses a client wants to hear of resources.
//!
//! Which server an address means may change while a client is subscribed to it: the client still hears of
//! the resource that it has subscribed to, under the address that it has used. What is meant is the server of a
//! name: it may go, come back, and be another one then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;

use mcpact_engine::server::listen::covers;
use mcpact_spec::Method;

use crate::aggregate::rewrite::{Subject, subject};
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::sync::lock;

/// How many addresses of one client are remembered; more are shown as in lists.
const LIMIT: usize = 4096;

/// One address or task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscribedUri {
    /// As the client knows it.
    pub(crate) outer: Box<str>,
    /// As the server knows it.
    pub(crate) inner: Box<str>,
}

/// What a legacy client has subscribed to.
#[derive(Debug, Default)]
pub(crate) struct WatchedUris(Mutex<BTreeMap<Box<str>, WatchedUri>>);

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedUri {
    /// The name of the server.
    name: Box<str>,
    place: WatchState,
    /// The address as the server knows it.
    pub(crate) inner: Box<str>,
}

/// Where a subscription stands, with the number of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchState {
    /// The server was asked by the client.
    At(u64),
    /// The server is there again, or another one of its name is, and has not agreed yet.
    Returning(u64),
    /// The server is not there.
    Away,
}

impl WatchedUri {
    /// The number of the server, if it is there.
    pub(crate) const fn server(&self) -> Option<u64> {
        match self.place {
            WatchState::At(server) | WatchState::Returning(server) => Some(server),
            WatchState::Away => None,
        }
    }
}

impl SubscribedUri {
    /// The updated resource as the client knows it, if it is this one or a part of it.
    pub(crate) fn told(&self, uri: &str) -> Option<String> {
        told(&self.outer, &self.inner, uri)
    }
}

impl WatchedUris {
    /// The client subscribes at the server of this number and name; whether that is new.
    pub(crate) fn add(&self, server: u64, name: &str, shared: SubscribedUri) -> bool {
        let mut all = lock(&self.0);
        let SubscribedUri { outer, inner } = shared;
        if all.len() >= LIMIT && !all.contains_key(&outer) {
            return false;
        }
        let meant = WatchedUri {
            name: Box::from(name),
            place: WatchState::At(server),
            inner,
        };
        all.insert(outer, meant).is_none()
    }

    pub(crate) fn remove(&self, outer: &str) {
        lock(&self.0).remove(outer);
    }

    /// Forgets an address of which no server is to be told: as they are there now, none was asked for it, or the
    /// client knows the same thing by another address, too. Whether it was one.
    pub(crate) fn forget(&self, outer: &str, is_there: impl Fn(u64) -> bool) -> bool {
        let mut all = lock(&self.0);
        let Some(meant) = all.get(outer) else {
            return false;
        };
        let is_idle = match meant.place {
            WatchState::At(server) => {
                let is_other = |other: &str| *other != *outer;
                !is_there(server) || is_wanted(&all, server, &meant.inner, is_other)
            }
            WatchState::Returning(_) | WatchState::Away => true,
        };
        if is_idle {
            all.remove(outer);
        }
        is_idle
    }

    /// Whether the client wants to hear of what a server knows by this address.
    pub(crate) fn wants(&self, server: u64, inner: &str) -> bool {
        is_wanted(&lock(&self.0), server, inner, |_| true)
    }

    /// Every subscription stays with the server of its name, whichever has it now; what those are to be asked that
    /// have come, by their numbers.
    pub(crate) fn follow(
        &self,
        number: impl Fn(&str) -> Option<u64>,
    ) -> BTreeMap<u64, Vec<SubscribedUri>> {
        let mut come: BTreeMap<u64, Vec<SubscribedUri>> = BTreeMap::new();
        for (outer, meant) in lock(&self.0).iter_mut() {
            let now = number(&meant.name);
            if meant.server() == now {
                continue;
            }
            meant.place = now.map_or(WatchState::Away, WatchState::Returning);
            if let Some(server) = now {
                let (outer, inner) = (outer.clone(), meant.inner.clone());
                come.entry(server)
                    .or_default()
                    .push(SubscribedUri { outer, inner });
            }
        }
        come
    }

    /// Whether an address means this server, as far as anybody has heard.
    pub(crate) fn is_at(&self, outer: &str, server: u64) -> bool {
        let all = lock(&self.0);
        all.get(outer)
            .is_some_and(|meant| meant.server() == Some(server))
    }

    /// A server that has come has agreed; whether the client still wants it.
    pub(crate) fn settle(&self, outer: &str, server: u64) -> bool {
        let mut all = lock(&self.0);
        let meant = all.get_mut(outer);
        let Some(meant) = meant.filter(|meant| meant.server() == Some(server)) else {
            return false;
        };
        meant.place = WatchState::At(server);
        true
    }

    /// What an address meant when the client subscribed to it.
    pub(crate) fn meant(&self, outer: &str) -> Option<WatchedUri> {
        lock(&self.0).get(outer).cloned()
    }

    /// The updated resource of a server as the client knows it, by every address.
    pub(crate) fn told(&self, server: u64, uri: &str) -> BTreeSet<String> {
        let all = lock(&self.0);
        let of_server = all
            .iter()
            .filter(|(_, meant)| meant.server() == Some(server));
        let told = of_server.filter_map(|(outer, meant)| told(outer, &meant.inner, uri));
        told.collect()
    }
}

/// Whether any of these addresses means what a server knows by this one.
fn is_wanted(
    all: &BTreeMap<Box<str>, WatchedUri>,
    server: u64,
    inner: &str,
    is_one: impl Fn(&str) -> bool,
) -> bool {
    let mut all = all.iter();
    all.any(|(outer, meant)| {
        meant.server() == Some(server) && *meant.inner == *inner && is_one(outer)
    })
}

/// A request of a legacy client that begins or ends a subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionChange {
    watched: Arc<WatchedUris>,
    outer: Box<str>,
    method: Method,
    is_new: bool,
}

impl SubscriptionChange {
    /// The request is on its way, as the client gave it and as the server gets it. It may tell of the
    /// resource before it answers.
    pub(crate) fn begin(
        method: Method,
        guest: &DownstreamClient,
        entry: &ServerEntry,
        given: &str,
        sent: &str,
    ) -> Self {
        let uri = |params: &str| match subject(method, params) {
            Subject::Uri(uri) => Box::from(&*uri),
            Subject::Tool(_) | Subject::Prompt(_) | Subject::Task(_) | Subject::Nothing => {
                Box::default()
            }
        };
        let (outer, inner): (Box<str>, Box<str>) = (uri(given), uri(sent));
        let shared = SubscribedUri {
            outer: outer.clone(),
            inner,
        };
        let watched = Arc::clone(&guest.watched);
        Self {
            is_new: method == Method::ResourcesSubscribe
                && watched.add(entry.number, &entry.name, shared),
            watched,
            outer,
            method,
        }
    }

    /// The server has answered.
    pub(crate) fn end(self, is_granted: bool) {
        let is_over = match is_granted {
            true => self.method == Method::ResourcesUnsubscribe,
            false => self.is_new,
        };
        if is_over {
            self.watched.remove(&self.outer);
        }
    }
}

/// What names a server stands before the address, so that a part of a resource keeps it.
fn told(outer: &str, inner: &str, uri: &str) -> Option<String> {
    let naming = outer.strip_suffix(inner)?;
    covers(inner, uri).then(|| format!("{naming}{uri}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(outer: &str, inner: &str) -> SubscribedUri {
        SubscribedUri {
            outer: Box::from(outer),
            inner: Box::from(inner),
        }
    }

    #[test]
    fn updates_are_told_under_the_address_that_was_used() {
        let watched = WatchedUris::default();
        assert!(watched.add(1, "a", shared("x://a", "x://a")));
        assert!(!watched.add(1, "a", shared("x://a", "x://a")));
        assert!(watched.add(2, "b", shared("mcpact://b/x://a", "x://a")));
        assert!(watched.add(2, "b", shared("x://b", "x://b")));
        assert!(watched.add(2, "b", shared("mcpact://b/x://b", "x://b")));
        assert!(watched.add(2, "b", shared("x://b/part", "x://b/part")));
        let cells: [(u64, &str, &[&str]); 6] = [
            (1, "x://a", &["x://a"]),
            (1, "x://a/part", &["x://a/part"]),
            (2, "x://a/part", &["mcpact://b/x://a/part"]),
            (2, "x://b/part", &["mcpact://b/x://b/part", "x://b/part"]),
            (1, "x://ab", &[]),
            (3, "x://a", &[]),
        ];
        let told = |server, uri: &str| Vec::from_iter(watched.told(server, uri));
        for (server, uri, expected) in cells {
            assert_eq!(told(server, uri), expected, "{uri}");
        }
        watched.remove("x://a");
        assert_eq!((watched.meant("x://a"), told(1, "x://a")), (None, vec![]));
    }

    /// A subscription waits while its server is away, and goes to the one that comes under its name.
    #[test]
    fn subscriptions_follow_the_name_of_their_server() {
        let watched = WatchedUris::default();
        let all = [
            shared("x://1", "x://1"),
            shared("mcpact://a/x://2", "x://2"),
        ];
        for one in all.clone() {
            watched.add(1, "a", one);
        }
        watched.add(2, "b", shared("x://b", "x://b"));
        let only_b = |name: &str| (name == "b").then_some(2);
        let with = |a: u64| move |name: &str| Some(if name == "a" { a } else { 2 });
        assert!(watched.follow(with(1)).is_empty(), "nothing has changed");
        assert!(watched.follow(only_b).is_empty(), "there is nobody to ask");
        assert!(watched.told(1, "x://1").is_empty());
        assert_eq!(watched.meant("x://1").unwrap().server(), None);
        let [one, other] = all;
        let come = BTreeMap::from([(3, vec![other, one])]);
        assert_eq!(watched.follow(with(3)), come);
        assert!(watched.follow(with(3)).is_empty(), "once is enough");
        assert!(watched.is_at("x://1", 3) && watched.settle("x://1", 3));
        assert!(!watched.settle("x://1", 4), "that is another server");
        assert_eq!(Vec::from_iter(watched.told(3, "x://1")), ["x://1"]);
    }

    /// What no server was asked for ends without one.
    #[test]
    fn what_no_server_has_is_forgotten_here() {
        let watched = WatchedUris::default();
        for uri in ["x://1", "x://2", "x://3"] {
            watched.add(1, "a", shared(uri, uri));
        }
        let forget = |uri: &str, there: u64| watched.forget(uri, |server| server == there);
        assert!(!forget("x://1", 1), "its server has it");
        assert!(forget("x://1", 2), "its server has gone");
        watched.follow(|_| None);
        assert!(forget("x://2", 1), "its server is away");
        watched.follow(|_| Some(2));
        assert!(forget("x://3", 2), "its server does not have it yet");
        assert!(!forget("x://3", 2), "there is nothing left");
        assert!(!watched.settle("x://3", 2));
        for outer in ["x://4", "mcpact://b/x://4"] {
            watched.add(2, "b", shared(outer, "x://4"));
        }
        assert!(forget("x://4", 2), "it is known by another address, too");
        assert!(watched.wants(2, "x://4") && !watched.wants(1, "x://4"));
        assert!(!forget("mcpact://b/x://4", 2), "that is the last one");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let watched = WatchedUris::default();
        for number in 0..LIMIT + 10 {
            let uri = format!("x://{number}");
            watched.add(1, "a", shared(&uri, &uri));
        }
        assert_eq!(lock(&watched.0).len(), LIMIT);
    }
}
