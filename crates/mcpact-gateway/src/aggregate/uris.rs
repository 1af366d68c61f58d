//! Addresses of resources, over all servers.
//!
//! An address stays as its server gave it as long as one server has it. Where several do, each gets a form
//! that names the server: `mcpact://SERVER/` and the address as it is, so that templates can still be
//! filled in, and the way back needs no table. An address that a server itself gave in this form, such as
//! another gateway does, gets it in any case: it would lead elsewhere.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use smallvec::{SmallVec, smallvec};

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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    One(usize),
    /// In the order in which they came.
    Several(Vec<usize>),
}

impl Owner {
    fn all(&self) -> &[usize] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            Self::Several(servers) => servers,
        }
    }
}

/// Addresses that results mentioned as they are, and the numbers of the servers that did so.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    owners: HashMap<Box<str>, SmallVec<[u64; 1]>>,
    order: VecDeque<Box<str>>,
}

/// Where an address leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead<'a> {
    /// Nobody is known to have it.
    Nowhere,
    /// To one server.
    To(UriRoute<'a>),
    /// It leaves open which server is meant; these forms of it do not.
    Open(Vec<String>),
}

/// A server, and what to ask it for.
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
        match owner {
            Owner::One(first) if *first != server => *owner = Owner::Several(vec![*first, server]),
            Owner::Several(servers) if !servers.contains(&server) => servers.push(server),
            Owner::One(_) | Owner::Several(_) => {}
        }
    }

    /// An address of a server as clients see it in lists.
    pub(crate) fn shown<'a>(&self, server: usize, uri: &'a str) -> Cow<'a, str> {
        match self.servers.get(server) {
            Some(name) if !self.is_plain(server, uri, &[]) => Cow::Owned(naming(name, uri)),
            Some(_) | None => Cow::Borrowed(uri),
        }
    }

    /// Whether an address leads to this server as it is; one that no list has, to the only server that has
    /// mentioned it so far (`seen`).
    pub(crate) fn is_plain(&self, server: usize, uri: &str, seen: &[usize]) -> bool {
        if names_a_server(uri) {
            return false;
        }
        match (self.owners.get(uri), seen) {
            (Some(Owner::One(owner)), _) => *owner == server,
            (Some(Owner::Several(_)), _) => false,
            (None, []) => self.by_template(uri).iter().all(|at| *at == server),
            (None, seen) => *seen == [server],
        }
    }

    /// Where an address leads: to the server that it names and no other one, or to the one that listed it,
    /// then to the one that mentioned it (`seen`), then to the one with the longest template that begins
    /// alike.
    pub(crate) fn lead<'a>(&self, uri: &'a str, seen: &[usize]) -> Lead<'a> {
        if names_a_server(uri) {
            return self.named(uri).map_or(Lead::Nowhere, Lead::To);
        }
        let servers = match (self.owners.get(uri), seen) {
            (Some(owner), _) => owner.all().to_vec(),
            (None, []) => self.by_template(uri),
            (None, seen) => seen.to_vec(),
        };
        match *servers {
            [] => Lead::Nowhere,
            [server] => Lead::To(UriRoute { server, uri }),
            [_, _, ..] => {
                let names = servers.iter().filter_map(|at| self.servers.get(*at));
                Lead::Open(names.map(|name| naming(name, uri)).collect())
            }
        }
    }

    fn named<'a>(&self, uri: &'a str) -> Option<UriRoute<'a>> {
        let (name, inner) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let server = self.servers.iter().position(|known| **known == *name)?;
        Some(UriRoute { server, uri: inner })
    }

    /// The servers with the longest template that begins alike, in their order.
    fn by_template(&self, uri: &str) -> Vec<usize> {
        let all = self.templates.iter();
        let alike = all.filter(|(fixed, _)| uri.starts_with(&**fixed));
        let longest = alike.clone().map(|(fixed, _)| fixed.len()).max();
        let longest = alike.filter(|(fixed, _)| Some(fixed.len()) == longest);
        let servers: BTreeSet<usize> = longest.map(|(_, server)| *server).collect();
        servers.into_iter().collect()
    }
}

/// Whether an address has the form that names a server, be it one that there is or not.
pub(crate) fn names_a_server(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// The form of an address that names its server.
pub(crate) fn naming(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

impl Seen {
    /// Who mentioned an address, in the order in which they did.
    pub(crate) fn owners(&self, uri: &str) -> &[u64] {
        self.owners.get(uri).map_or(&[], SmallVec::as_slice)
    }

    /// A result of a server mentioned an address.
    pub(crate) fn note(&mut self, server: u64, uri: &str) {
        if let Some(owners) = self.owners.get_mut(uri) {
            if !owners.contains(&server) {
                owners.push(server);
            }
            return;
        }
        self.owners.insert(Box::from(uri), smallvec![server]);
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
        // As another gateway lists them.
        uris.add_resource(1, "mcpact://a/test://one");
        uris.add_template(1, "mcpact://zzz/{x}");
        uris
    }

    /// AG-08: what two servers have is told apart, everything else stays as it is; both ways.
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
            (
                1,
                "mcpact://a/test://one",
                "mcpact://b/mcpact://a/test://one",
            ),
            (1, "mcpact://zzz/{x}", "mcpact://b/mcpact://zzz/{x}"),
            (1, "same://{x}", "mcpact://b/same://{x}"),
        ];
        for (server, uri, shown) in cells {
            assert_eq!(uris.shown(server, uri), shown);
            let lead = uris.lead(shown, &[]);
            assert_eq!(lead, Lead::To(UriRoute { server, uri }), "{shown}");
        }
    }

    #[test]
    fn addresses_that_no_list_has_are_routed_by_what_was_seen_and_by_templates() {
        let uris = uris();
        let cells = [
            ("note://7", &[][..], Some(0)),
            ("note://deep/7", &[], Some(1)),
            ("other://7", &[], None),
            ("other://7", &[1], Some(1)),
            ("same://7", &[1], Some(1)),
            ("mcpact://zzz/other://1", &[], None),
        ];
        for (uri, seen, server) in cells {
            let to = |server| Lead::To(UriRoute { server, uri });
            let expected = server.map_or(Lead::Nowhere, to);
            assert_eq!(uris.lead(uri, seen), expected, "{uri}");
        }
    }

    /// AG-08: what several servers have leads to none of them by itself.
    #[test]
    fn what_is_left_open_can_be_said() {
        let uris = uris();
        for uri in ["test://both", "same://7", "same://{x}"] {
            let forms = ["a", "b"].map(|server| naming(server, uri));
            assert_eq!(uris.lead(uri, &[]), Lead::Open(forms.to_vec()));
            for (server, form) in forms.iter().enumerate() {
                let route = UriRoute { server, uri };
                assert_eq!(uris.lead(form, &[]), Lead::To(route), "{form}");
            }
        }
    }

    /// AG-08: an address that results mention stays as it is for the first server that does, unless
    /// templates tell that another one may have it; if several did, it leads to none of them by itself.
    #[test]
    fn what_results_mention_leads_back_to_their_server() {
        let uris = uris();
        let cells = [
            (0, "note://7", &[][..], true),
            (1, "note://7", &[], false),
            (0, "same://7", &[], false),
            (1, "same://7", &[1], true),
            (0, "other://7", &[], true),
            (0, "other://7", &[0], true),
            (0, "other://7", &[1], false),
            (0, "other://7", &[0, 1], false),
        ];
        for (server, uri, seen, is_plain) in cells {
            assert_eq!(uris.is_plain(server, uri, seen), is_plain, "{server} {uri}");
        }
        let mut seen = Seen::default();
        seen.note(7, "other://7");
        seen.note(8, "other://7");
        seen.note(7, "other://7");
        assert_eq!(seen.owners("other://7"), [7, 8]);
        let forms = ["b", "a"].map(|server| naming(server, "other://7"));
        assert_eq!(uris.lead("other://7", &[1, 0]), Lead::Open(forms.to_vec()));
    }

    #[test]
    fn what_was_seen_is_bounded() {
        let mut seen = Seen::default();
        for number in 0..SEEN + 10 {
            seen.note(0, &format!("x://{number}"));
        }
        assert_eq!((seen.owners.len(), seen.order.len()), (SEEN, SEEN));
        assert_eq!(seen.owners("x://0"), [0; 0]);
        assert_eq!(seen.owners("x://20"), [0]);
    }
}
