//! Names of tools and prompts, unique over all servers.
//!
//! A name is a server's prefix, a separator, and the name that the server gave. It depends on nothing
//! else, so it stays when other servers come and go; only where two servers would get the same, whoever comes
//! later is marked with a hash. Nothing is ever split to find the way back: a table knows.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::given::{Given, Origin};

/// How many hexadecimal digits of a hash tell names apart.
const DIGITS: usize = 8;

/// How names are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameStyle {
    /// What stands between a prefix and a name.
    pub(crate) separator: Box<str>,
    /// How long a name may be; many models take no more than 64 characters.
    pub(crate) longest: usize,
}

impl Default for NameStyle {
    fn default() -> Self {
        Self {
            separator: Box::from("__"),
            longest: 64,
        }
    }
}

/// Where a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The position of the server.
    pub(crate) server: usize,
    /// What it calls the thing.
    pub(crate) name: Box<str>,
}

/// Two things that would have had the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    pub(crate) name: Box<str>,
    /// What the later one is called instead.
    pub(crate) instead: Box<str>,
    pub(crate) server: usize,
}

/// The names of one kind of things.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    routes: HashMap<Box<str>, Route>,
    shown: HashMap<(usize, Box<str>), Box<str>>,
    clashes: Vec<Clash>,
}

impl Names {
    /// Names everything, in this order: servers as they are configured, things as their servers list
    /// them. What was given a name before keeps it.
    pub(crate) fn assign<'a>(
        style: &NameStyle,
        given: &mut Given,
        origins: &[Origin],
        things: impl IntoIterator<Item = (usize, &'a str)>,
    ) -> Self {
        let mut names = Self::default();
        for (server, name) in things {
            if let Some(origin) = origins.get(server) {
                names.add(style, given, server, origin, name);
            }
        }
        for (server, origin) in origins.iter().enumerate() {
            given.trim(origin, |name| names.shown(server, name).is_some());
        }
        names
    }

    fn add(
        &mut self,
        style: &NameStyle,
        given: &mut Given,
        server: usize,
        origin: &Origin,
        name: &str,
    ) {
        let key = (server, Box::from(name));
        if self.shown.contains_key(&key) {
            return;
        }
        let before = given.shown(origin, name).map(Box::from);
        let shown = before.unwrap_or_else(|| {
            let shown = self.free(style, given, server, origin, name);
            given.give(origin, name, &shown);
            shown
        });
        let route = Route {
            server,
            name: Box::from(name),
        };
        self.routes.insert(shown.clone(), route);
        self.shown.insert(key, shown);
    }

    /// A name that nothing else has.
    fn free(
        &mut self,
        style: &NameStyle,
        given: &Given,
        server: usize,
        origin: &Origin,
        name: &str,
    ) -> Box<str> {
        let wanted = style.join(&origin.prefix, name);
        if !given.is_taken(&wanted) {
            return wanted;
        }
        let mut of = format!("{}\0{}\0{name}", origin.name, origin.prefix);
        let instead = loop {
            let instead = style.marked(&wanted, &of);
            // Somebody may have called a thing just so.
            if !given.is_taken(&instead) {
                break instead;
            }
            of.push('\0');
        };
        self.clashes.push(Clash {
            name: wanted,
            instead: instead.clone(),
            server,
        });
        instead
    }

    /// Where a name leads.
    pub(crate) fn route(&self, shown: &str) -> Option<&Route> {
        self.routes.get(shown)
    }

    /// What clients call a thing of a server.
    pub(crate) fn shown(&self, server: usize, name: &str) -> Option<&str> {
        self.shown.get(&(server, Box::from(name))).map(|s| &**s)
    }

    /// Which names were taken when something wanted them for the first time.
    pub(crate) fn clashes(&self) -> &[Clash] {
        &self.clashes
    }
}

impl NameStyle {
    /// The name of a thing, if nobody else has it.
    pub(crate) fn join(&self, prefix: &str, name: &str) -> Box<str> {
        let whole = if prefix.is_empty() {
            String::from(name)
        } else {
            format!("{prefix}{}{name}", self.separator)
        };
        let is_clean = whole.chars().all(is_allowed);
        if is_clean && whole.len() <= self.longest && !whole.is_empty() {
            return whole.into_boxed_str();
        }
        let clean: String = whole
            .chars()
            .map(|c| if is_allowed(c) { c } else { '_' })
            .collect();
        self.marked(&clean, &whole)
    }

    /// Cut to length, with a hash of what it stands for.
    fn marked(&self, clean: &str, of: &str) -> Box<str> {
        let digest = Sha256::digest(of);
        let hash: String = digest
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .take(DIGITS)
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect();
        let room = self.longest.saturating_sub(DIGITS + 1);
        let kept = &clean[..clean.len().min(room)];
        format!("{kept}_{hash}").into_boxed_str()
    }

    /// Where a name may lead if no list is known yet: servers whose prefix it begins with, the longest
    /// prefix first.
    pub(crate) fn guess<'a>(
        &self,
        shown: &str,
        prefixes: impl IntoIterator<Item = (usize, &'a str)>,
    ) -> Vec<Route> {
        let mut found: Vec<(usize, Route)> = prefixes
            .into_iter()
            .filter_map(|(server, prefix)| {
                let rest = if prefix.is_empty() {
                    shown
                } else {
                    shown.strip_prefix(prefix)?.strip_prefix(&*self.separator)?
                };
                let name = Box::from(rest);
                Some((prefix.len(), Route { server, name }))
            })
            .collect();
        found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        found.into_iter().map(|(_, route)| route).collect()
    }
}

/// Whether a name may end in a hash, so that it does not tell what its server calls the thing.
pub(crate) fn may_be_marked(shown: &str) -> bool {
    let digits = shown.rsplit_once('_').map(|(_, digits)| digits);
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(is_digit))
}

/// `2025-11-25 server/tools#tool-names`.
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(prefixes: &[&str]) -> Vec<Origin> {
        let all = prefixes.iter().enumerate();
        all.map(|(at, prefix)| Origin {
            name: format!("s{at}").into(),
            prefix: Box::from(*prefix),
        })
        .collect()
    }

    fn names(prefixes: &[&str], things: &[(usize, &str)]) -> Names {
        let (style, origins) = (NameStyle::default(), origins(prefixes));
        let things = things.iter().copied();
        Names::assign(&style, &mut Given::default(), &origins, things)
    }

    /// AG-01: names are unique, and each leads back to where it came from.
    #[test]
    fn equal_tools_of_two_servers_have_two_names() {
        let names = names(&["a", "b"], &[(0, "search"), (1, "search")]);
        let route = names.route("b__search").unwrap();
        assert_eq!((route.server, &*route.name), (1, "search"));
        assert_eq!(names.shown(0, "search"), Some("a__search"));
        assert_eq!(names.shown(1, "search"), Some("b__search"));
        assert!(names.clashes().is_empty());
    }

    /// What would be the same after prefixing is told apart, announced, and the first keeps its name.
    #[test]
    fn names_that_clash_are_resolved_and_announced() {
        let prefixes = ["a", "a__b", "", ""];
        let names = names(&prefixes, &[(0, "b__c"), (1, "c"), (2, "x"), (3, "x")]);
        assert_eq!(names.shown(0, "b__c"), Some("a__b__c"));
        let other = names.shown(1, "c").unwrap();
        assert!(other.starts_with("a__b__c_"), "{other}");
        assert_eq!(names.route(other).unwrap().server, 1);
        assert_eq!(names.clashes().len(), 2);
    }

    /// A name means what it meant, whoever comes, goes and comes back.
    #[test]
    fn a_name_stays_with_what_was_given_it() {
        let (style, mut given) = (NameStyle::default(), Given::default());
        let origins = origins(&["", "", ""]);
        let mut told = Vec::new();
        for things in [
            &[(1, "x")][..],
            &[(0, "x"), (1, "x")],
            &[(0, "x")],
            &[(0, "x"), (1, "y"), (2, "x")],
            &[(1, "x"), (2, "x")],
        ] {
            let names = Names::assign(&style, &mut given, &origins, things.iter().copied());
            for (server, name) in things {
                let shown = names.shown(*server, name).unwrap();
                let route = names.route(shown).unwrap();
                assert_eq!((route.server, &*route.name), (*server, *name));
                assert_eq!(shown == "x", (*server, *name) == (1, "x"), "{shown}");
            }
            told.extend(names.clashes().iter().map(|clash| clash.server));
        }
        assert_eq!(told, [0, 2], "each is told once");
    }

    /// Who calls a thing as another's would be marked does not take its place.
    #[test]
    fn a_name_that_looks_marked_is_nobody_elses() {
        let marked = names(&["", ""], &[(0, "x"), (1, "x")]);
        let marked = marked.shown(1, "x").unwrap();
        for things in [
            [(0, "x"), (0, marked), (1, "x")],
            [(0, "x"), (1, "x"), (1, marked)],
        ] {
            let names = names(&["", ""], &things);
            for (server, name) in things {
                let route = names.route(names.shown(server, name).unwrap());
                let route = route.map(|route| (route.server, &*route.name));
                assert_eq!(route, Some((server, name)));
            }
        }
    }

    /// AG-01: no name is longer than a model takes, nor has characters that it does not take.
    #[test]
    fn long_and_odd_names_are_cut_and_hashed() {
        let style = NameStyle::default();
        let long = "x".repeat(100);
        let cells = [
            ("files", long.as_str()),
            ("files", "täglich"),
            ("files", ""),
            ("", ""),
            ("", "äöü"),
            ("p", "with space/slash"),
        ];
        for (prefix, name) in cells {
            let shown = style.join(prefix, name);
            assert!(shown.len() <= 64, "{shown}");
            assert!(
                !shown.is_empty() && shown.chars().all(is_allowed),
                "{shown}"
            );
            assert_eq!(shown, style.join(prefix, name), "deterministic");
        }
        assert_ne!(style.join("p", "a b"), style.join("p", "a/b"));
        assert!(may_be_marked(&style.join("p", "a b")));
        for name in [
            "",
            "_",
            "deadbeef",
            "a_deadbee",
            "a_DEADBEEF",
            "a_deadbeef_",
        ] {
            assert!(!may_be_marked(name), "{name}");
        }
    }

    #[test]
    fn a_name_that_no_list_has_is_guessed_by_its_prefix() {
        let style = NameStyle::default();
        let found = style.guess("a__b__c", [(0, "a"), (1, "a__b"), (2, "z"), (3, "")]);
        let found: Vec<(usize, &str)> = found.iter().map(|r| (r.server, &*r.name)).collect();
        assert_eq!(found, [(1, "c"), (0, "b__c"), (3, "a__b__c")]);
    }
}
