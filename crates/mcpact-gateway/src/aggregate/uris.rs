//! Addresses of resources, over all servers.
//!
//! An address stays as its server gave it as long as one server has it. Where several do, each gets a form
//! that names the server: `mcpact://SERVER/` and the address as it is, so that templates can still be
//! filled in, and the way back needs no table.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// How an address begins that names its server.
const SCHEME: &str = "mcpact://";

/// How many addresses that no list has are remembered; the oldest make room.
const SEEN: usize = 4096;

/// Who has which address, as far as the lists tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uris {
    servers: Vec<Box<str>>,
    owners: HashMap<Box<str>, Owner>,
    /// The beginning of each template up to its first expression, and who has it.
    templates: Vec<(Box<str>, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    One(usize),
    /// Several, and this is the first of them.
    Several(usize),
}

/// Addresses that results mentioned, and the number of the server that did.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    owners: HashMap<Box<str>, u64>,
    order: VecDeque<Box<str>>,
}

/// Where an address leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriRoute<'a> {
    pub(crate) server: usize,
    /// The address as the server knows it.
    pub(crate) uri: &'a str,
}

impl Uris {
    /// The addresses of these servers, which are named in this order.
    pub(crate) fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            servers: servers.into_iter().map(Box::from).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn add_resource(&mut self, server: usize, uri: &str) {
        self.own(server, uri);
    }

    pub(crate) fn add_template(&mut self, server: usize, template: &str) {
        self.own(server, template);
        let fixed = template.split('{').next().unwrap_or_default();
        self.templates.push((Box::from(fixed), server));
    }

    fn own(&mut self, server: usize, uri: &str) {
        let owner = self
            .owners
            .entry(Box::from(uri))
            .or_insert(Owner::One(server));
        if let Owner::One(first) = *owner
            && first != server
        {
            *owner = Owner::Several(first);
        }
    }

    /// An address of a server as clients see it.
    pub(crate) fn shown<'a>(&self, server: usize, uri: &'a str) -> Cow<'a, str> {
        let is_its_own = match self.owners.get(uri) {
            Some(Owner::One(owner)) => *owner == server,
            Some(Owner::Several(_)) => false,
            // One that looks like ours would lead elsewhere.
            None => !uri.starts_with(SCHEME),
        };
        match self.servers.get(server) {
            Some(name) if !is_its_own => Cow::Owned(format!("{SCHEME}{name}/{uri}")),
            Some(_) | None => Cow::Borrowed(uri),
        }
    }

    /// Where an address leads: to the server that it names or that listed it, then to the one that
    /// mentioned it (`seen`), then to the one with the longest template that begins alike.
    pub(crate) fn route<'a>(&self, uri: &'a str, seen: Option<usize>) -> Option<UriRoute<'a>> {
        if let Some(route) = self.named(uri) {
            return Some(route);
        }
        let listed = match self.owners.get(uri) {
            // A client may have the plain address from a time when one server had it.
            Some(Owner::One(server) | Owner::Several(server)) => Some(*server),
            None => None,
        };
        let server = listed.or(seen).or_else(|| self.by_template(uri))?;
        Some(UriRoute { server, uri })
    }

    fn named<'a>(&self, uri: &'a str) -> Option<UriRoute<'a>> {
        let (name, inner) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let server = self.servers.iter().position(|known| **known == *name)?;
        Some(UriRoute { server, uri: inner })
    }

    fn by_template(&self, uri: &str) -> Option<usize> {
        self.templates
            .iter()
            .filter(|(fixed, _)| uri.starts_with(&**fixed))
            .max_by_key(|(fixed, server)| (fixed.len(), std::cmp::Reverse(*server)))
            .map(|(_, server)| *server)
    }
}

impl Seen {
    /// Who mentioned an address.
    pub(crate) fn owner(&self, uri: &str) -> Option<u64> {
        self.owners.get(uri).copied()
    }

    /// A result of a server mentioned an address.
    pub(crate) fn note(&mut self, server: u64, uri: &str) {
        if self.owners.insert(Box::from(uri), server).is_some() {
            return;
        }
        self.order.push_back(Box::from(uri));
        if self.order.len() > SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.owners.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris() -> Uris {
        let mut uris = Uris::new(["a", "b"]);
        uris.add_resource(0, "test://one");
        uris.add_resource(0, "test://both");
        uris.add_resource(1, "test://both");
        uris.add_template(0, "note://{id}");
        uris.add_template(1, "note://deep/{id}");
        uris.add_template(0, "same://{x}");
        uris.add_template(1, "same://{x}");
        uris
    }

    /// G14, AG-08: what two servers have is told apart, everything else stays as it is; both ways.
    #[test]
    fn addresses_lead_back_to_their_server() {
        let uris = uris();
        let cells = [
            (0, "test://one", "test://one"),
            (0, "test://both", "mcpact://a/test://both"),
            (1, "test://both", "mcpact://b/test://both"),
            // Listed by the other one only.
            (1, "test://one", "mcpact://b/test://one"),
            (1, "mcpact://a/x", "mcpact://b/mcpact://a/x"),
            (1, "same://{x}", "mcpact://b/same://{x}"),
        ];
        for (server, uri, shown) in cells {
            assert_eq!(uris.shown(server, uri), shown);
            let route = uris.route(shown, None);
            assert_eq!(route, Some(UriRoute { server, uri }), "{shown}");
        }
    }

    #[test]
    fn addresses_that_no_list_has_are_routed_by_what_was_seen_and_by_templates() {
        let uris = uris();
        let server = |uri: &str, seen| uris.route(uri, seen).map(|route| route.server);
        assert_eq!(server("note://7", None), Some(0));
        assert_eq!(server("note://deep/7", None), Some(1));
        assert_eq!(server("other://7", None), None);
        assert_eq!(server("other://7", Some(1)), Some(1));
        assert_eq!(server("mcpact://zzz/other://1", None), None);
    }

    #[test]
    fn what_was_seen_is_bounded() {
        let mut seen = Seen::default();
        for number in 0..SEEN + 10 {
            seen.note(0, &format!("x://{number}"));
        }
        assert_eq!((seen.owners.len(), seen.order.len()), (SEEN, SEEN));
        assert_eq!((seen.owner("x://0"), seen.owner("x://20")), (None, Some(0)));
    }
}
