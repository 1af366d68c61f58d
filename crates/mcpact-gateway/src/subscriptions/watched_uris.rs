//! Public URIs of the resources that a legacy client subscribed to through an aggregator.
//!
//! The server of a public URI may change during a subscription. The client is notified under the URI that it used, by the
//! server with the name that it subscribed to: that server may be removed, come back, or be replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mcpact_engine::server::listen::covers;
use mcpact_spec::Method;

use crate::aggregate::rewrite::subject;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::sync::lock;

/// Maximum number of URIs per client; updates of further ones have the URI of the list.
const MAX_URIS: usize = 4096;

/// URI or task id in both forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscribedUri {
    /// Public form.
    pub(crate) outer: Box<str>,
    /// Form of the server.
    pub(crate) inner: Box<str>,
}

/// Subscriptions of a legacy client, by public URI.
#[derive(Debug, Default)]
pub(crate) struct WatchedUris(Mutex<BTreeMap<Box<str>, WatchedUri>>);

/// Target of a subscribed URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedUri {
    /// Name of the server.
    name: Box<str>,
    /// Number of the server; none if there is no server with the name.
    server: Option<u64>,
    /// True if the client or the gateway has sent the request to this server. Otherwise the server came back, or another
    /// one has its name, and has not accepted the subscription yet.
    is_subscribed: bool,
    /// URI of the server.
    pub(crate) inner: Box<str>,
}

impl WatchedUri {
    /// Returns the number of the server, if it exists.
    pub(crate) const fn server(&self) -> Option<u64> {
        self.server
    }

    fn is_at(&self, server: u64) -> bool {
        self.server == Some(server)
    }
}

impl WatchedUris {
    /// Adds a subscription at the server with this number and name; returns true if the URI is new.
    pub(crate) fn add(&self, server: u64, name: &str, uri: SubscribedUri) -> bool {
        let mut all = lock(&self.0);
        if all.len() >= MAX_URIS && !all.contains_key(&uri.outer) {
            return false;
        }
        let watched = WatchedUri {
            name: Box::from(name),
            server: Some(server),
            is_subscribed: true,
            inner: uri.inner,
        };
        all.insert(uri.outer, watched).is_none()
    }

    pub(crate) fn remove(&self, outer: &str) {
        lock(&self.0).remove(outer);
    }

    /// Removes a subscription that needs no request to a server: no current server has it, or the client is subscribed
    /// to the same resource under another URI. Returns true if it was removed.
    pub(crate) fn remove_local(&self, outer: &str, is_present: impl Fn(u64) -> bool) -> bool {
        let mut all = lock(&self.0);
        let Some(watched) = all.get(outer) else {
            return false;
        };
        let is_local = watched.server.is_none_or(|server| {
            let is_same = |other: &WatchedUri| other.is_at(server) && other.inner == watched.inner;
            let mut others = all.iter().filter(|(other, _)| ***other != *outer);
            !watched.is_subscribed || !is_present(server) || others.any(|(_, other)| is_same(other))
        });
        if is_local {
            all.remove(outer);
        }
        is_local
    }

    /// Returns true if the client is subscribed to this resource of a server.
    pub(crate) fn wants(&self, server: u64, inner: &str) -> bool {
        let all = lock(&self.0);
        let mut all = all.values();
        all.any(|watched| watched.is_at(server) && *watched.inner == *inner)
    }

    /// Assigns every subscription to the current server with its name; returns the subscriptions of newly assigned
    /// servers by number.
    pub(crate) fn reassign(
        &self,
        number: impl Fn(&str) -> Option<u64>,
    ) -> BTreeMap<u64, Vec<SubscribedUri>> {
        let mut assigned: BTreeMap<u64, Vec<SubscribedUri>> = BTreeMap::new();
        for (outer, watched) in lock(&self.0).iter_mut() {
            let now = number(&watched.name);
            if watched.server == now {
                continue;
            }
            watched.server = now;
            watched.is_subscribed = false;
            if let Some(server) = now {
                let (outer, inner) = (outer.clone(), watched.inner.clone());
                let uris = assigned.entry(server).or_default();
                uris.push(SubscribedUri { outer, inner });
            }
        }
        assigned
    }

    /// Returns true if a URI is assigned to this server.
    pub(crate) fn is_at(&self, outer: &str, server: u64) -> bool {
        let watched = self.get(outer);
        watched.is_some_and(|watched| watched.is_at(server))
    }

    /// Records that a new server accepted a subscription; returns false if the client no longer wants it.
    pub(crate) fn confirm(&self, outer: &str, server: u64) -> bool {
        let mut all = lock(&self.0);
        let watched = all.get_mut(outer);
        let Some(watched) = watched.filter(|watched| watched.is_at(server)) else {
            return false;
        };
        watched.is_subscribed = true;
        true
    }

    /// Returns the target of a URI.
    pub(crate) fn get(&self, outer: &str) -> Option<WatchedUri> {
        lock(&self.0).get(outer).cloned()
    }

    /// Returns the public URIs of an updated resource of a server.
    pub(crate) fn public_uris(&self, server: u64, uri: &str) -> BTreeSet<String> {
        let all = lock(&self.0);
        let at_server = all.iter().filter(|(_, watched)| watched.is_at(server));
        let public =
            at_server.filter_map(|(outer, watched)| public_uri(outer, &watched.inner, uri));
        public.collect()
    }
}

/// Request of a legacy client that starts or ends a subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionChange {
    watched: Arc<WatchedUris>,
    outer: Box<str>,
    method: Method,
    is_new: bool,
}

impl SubscriptionChange {
    /// Records the request before it is sent, since the server may send updates before it answers. `received` are the
    /// parameters of the client, `sent` those for the server.
    pub(crate) fn begin(
        method: Method,
        client: &DownstreamClient,
        entry: &ServerEntry,
        received: &str,
        sent: &str,
    ) -> Self {
        let uri = |params: &str| {
            let uri = subject(method, params).into_name().unwrap_or_default();
            uri.into_boxed_str()
        };
        let (outer, inner) = (uri(received), uri(sent));
        let subscribed = SubscribedUri {
            outer: outer.clone(),
            inner,
        };
        let watched = Arc::clone(&client.watched);
        Self {
            is_new: method == Method::ResourcesSubscribe
                && watched.add(entry.number, &entry.name, subscribed),
            watched,
            outer,
            method,
        }
    }

    /// Applies the answer of the server.
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

/// Returns the public URI of an updated resource if a subscription covers it. The qualification with the server name
/// stays, also for parts of the resource.
pub(crate) fn public_uri(outer: &str, inner: &str, uri: &str) -> Option<String> {
    let qualification = outer.strip_suffix(inner)?;
    covers(inner, uri).then(|| format!("{qualification}{uri}"))
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
    fn updates_have_the_public_uri_of_the_subscription() {
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
        let public = |server, uri: &str| Vec::from_iter(watched.public_uris(server, uri));
        for (server, uri, expected) in cells {
            assert_eq!(public(server, uri), expected, "{uri}");
        }
        watched.remove("x://a");
        assert_eq!((watched.get("x://a"), public(1, "x://a")), (None, vec![]));
    }

    /// A subscription waits while its server is removed, and moves to the next server of the same name.
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
        assert!(watched.reassign(with(1)).is_empty(), "nothing has changed");
        assert!(
            watched.reassign(only_b).is_empty(),
            "no server has the name"
        );
        assert!(watched.public_uris(1, "x://1").is_empty());
        assert_eq!(watched.get("x://1").unwrap().server(), None);
        let [one, other] = all;
        let come = BTreeMap::from([(3, vec![other, one])]);
        assert_eq!(watched.reassign(with(3)), come);
        assert!(watched.reassign(with(3)).is_empty(), "once is enough");
        assert!(watched.is_at("x://1", 3) && watched.confirm("x://1", 3));
        assert!(!watched.confirm("x://1", 4), "that is another server");
        assert_eq!(Vec::from_iter(watched.public_uris(3, "x://1")), ["x://1"]);
    }

    #[test]
    fn subscriptions_of_no_server_are_removed_without_a_request() {
        let watched = WatchedUris::default();
        for uri in ["x://1", "x://2", "x://3"] {
            watched.add(1, "a", shared(uri, uri));
        }
        let remove =
            |uri: &str, present: u64| watched.remove_local(uri, |server| server == present);
        assert!(!remove("x://1", 1), "its server has it");
        assert!(remove("x://1", 2), "its server has gone");
        watched.reassign(|_| None);
        assert!(remove("x://2", 1), "its server is away");
        watched.reassign(|_| Some(2));
        assert!(remove("x://3", 2), "its server does not have it yet");
        assert!(!remove("x://3", 2), "there is nothing left");
        assert!(!watched.confirm("x://3", 2));
        for outer in ["x://4", "mcpact://b/x://4"] {
            watched.add(2, "b", shared(outer, "x://4"));
        }
        assert!(remove("x://4", 2), "it is known by another address, too");
        assert!(watched.wants(2, "x://4") && !watched.wants(1, "x://4"));
        assert!(!remove("mcpact://b/x://4", 2), "that is the last one");
    }

    #[test]
    fn watched_uris_are_bounded() {
        let watched = WatchedUris::default();
        for number in 0..MAX_URIS + 10 {
            let uri = format!("x://{number}");
            watched.add(1, "a", shared(&uri, &uri));
        }
        assert_eq!(lock(&watched.0).len(), MAX_URIS);
    }
}
