//! Under which addresses a client wants to hear of resources.
//!
//! Which server an address means may change while a client is subscribed to it: the client still hears of
//! the resource that it has subscribed to, under the address that it has used.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mcpact_engine::server::listen::covers;
use mcpact_spec::Method;

use super::guest::Guest;
use super::lock;
use super::member::Member;
use crate::aggregate::rewrite::{Subject, subject};

/// How many addresses of one client are remembered; more are shown as in lists.
const LIMIT: usize = 4096;

/// One address or task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// As the client knows it.
    pub(super) outer: Box<str>,
    /// As the server knows it.
    pub(super) inner: Box<str>,
}

/// What a legacy client has subscribed to.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<BTreeMap<Box<str>, Meant>>);

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meant {
    /// The number of the server.
    pub(super) server: u64,
    /// The address as the server knows it.
    pub(super) inner: Box<str>,
}

impl Shared {
    /// The updated resource as the client knows it, if it is this one or a part of it.
    pub(super) fn told(&self, uri: &str) -> Option<String> {
        told(&self.outer, &self.inner, uri)
    }
}

impl Watched {
    /// The client subscribes; whether that is new.
    pub(super) fn add(&self, server: u64, shared: Shared) -> bool {
        let mut all = lock(&self.0);
        let Shared { outer, inner } = shared;
        if all.len() >= LIMIT && !all.contains_key(&outer) {
            return false;
        }
        all.insert(outer, Meant { server, inner }).is_none()
    }

    pub(super) fn remove(&self, outer: &str) {
        lock(&self.0).remove(outer);
    }

    /// Another server takes the place of one; what the client has subscribed to there.
    pub(super) fn pass(&self, from: u64, to: u64) -> Vec<Shared> {
        let mut all = lock(&self.0);
        let of_server = all.iter_mut().filter(|(_, meant)| meant.server == from);
        let passed = of_server.map(|(outer, meant)| {
            meant.server = to;
            Shared {
                outer: outer.clone(),
                inner: meant.inner.clone(),
            }
        });
        passed.collect()
    }

    /// What an address meant when the client subscribed to it.
    pub(super) fn meant(&self, outer: &str) -> Option<Meant> {
        lock(&self.0).get(outer).cloned()
    }

    /// The updated resource of a server as the client knows it.
    pub(super) fn told(&self, server: u64, uri: &str) -> Option<String> {
        let all = lock(&self.0);
        let mut of_server = all.iter().filter(|(_, meant)| meant.server == server);
        of_server.find_map(|(outer, meant)| told(outer, &meant.inner, uri))
    }
}

/// A request of a legacy client that begins or ends a subscription.
#[derive(Debug)]
pub(super) struct Watching<'a> {
    watched: &'a Watched,
    outer: Box<str>,
    method: Method,
    is_new: bool,
}

impl<'a> Watching<'a> {
    /// The request is on its way, as the client gave it and as the server gets it. It may tell of the
    /// resource before it answers.
    pub(super) fn begin(
        method: Method,
        guest: &'a Guest,
        member: &Member,
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
        let shared = Shared {
            outer: outer.clone(),
            inner,
        };
        let watched = &*guest.watched;
        Self {
            is_new: method == Method::ResourcesSubscribe && watched.add(member.number, shared),
            watched,
            outer,
            method,
        }
    }

    /// The server has answered.
    pub(super) fn end(self, is_granted: bool) {
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

    #[test]
    fn updates_are_told_under_the_address_that_was_used() {
        let watched = Watched::default();
        let shared = |outer: &str, inner: &str| Shared {
            outer: Box::from(outer),
            inner: Box::from(inner),
        };
        assert!(watched.add(1, shared("x://a", "x://a")));
        assert!(!watched.add(1, shared("x://a", "x://a")));
        assert!(watched.add(2, shared("mcpact://b/x://a", "x://a")));
        let cells = [
            (1, "x://a", Some("x://a")),
            (1, "x://a/part", Some("x://a/part")),
            (2, "x://a/part", Some("mcpact://b/x://a/part")),
            (1, "x://ab", None),
            (3, "x://a", None),
        ];
        for (server, uri, expected) in cells {
            assert_eq!(watched.told(server, uri).as_deref(), expected, "{uri}");
        }
        watched.remove("x://a");
        assert_eq!(
            (watched.meant("x://a"), watched.told(1, "x://a")),
            (None, None)
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let watched = Watched::default();
        for number in 0..LIMIT + 10 {
            let uri: Box<str> = format!("x://{number}").into();
            let (outer, inner) = (uri.clone(), uri);
            watched.add(1, Shared { outer, inner });
        }
        assert_eq!(lock(&watched.0).len(), LIMIT);
    }
}
