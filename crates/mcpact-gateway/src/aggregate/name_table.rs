//! Public names of tools and prompts, unique over all servers.
//!
//! A public name is the prefix of a server, a separator and the original name. It does not change when other servers are
//! added or removed. On a conflict the later item gets a hash suffix. Routing uses a table; names are never split.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::name_registry::{NameRegistry, Origin};
use crate::target::hex;

/// Number of hexadecimal digits in a hash suffix.
const DIGITS: usize = 8;

/// Format of public names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameFormat {
    /// Separator of prefix and name.
    pub(crate) separator: Box<str>,
    /// Maximum length; many models accept at most 64 characters.
    pub(crate) max_len: usize,
}

impl Default for NameFormat {
    fn default() -> Self {
        Self {
            separator: Box::from("__"),
            max_len: 64,
        }
    }
}

/// Conflict of two items with the same public name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameConflict {
    pub(crate) name: Box<str>,
    /// Public name of the later item.
    pub(crate) instead: Box<str>,
    pub(crate) server: usize,
}

/// Public names of tools or of prompts.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    /// Position of the server and original name, by public name.
    routes: HashMap<Box<str>, (usize, Box<str>)>,
    public: HashMap<(usize, Box<str>), Box<str>>,
    /// Conflicts of newly named items.
    pub(crate) conflicts: Vec<NameConflict>,
}

impl NameTable {
    /// Assigns public names in this order: servers as configured, items as listed. Items keep the names they already have.
    pub(crate) fn assign<'a>(
        format: &NameFormat,
        registry: &mut NameRegistry,
        origins: &[Origin],
        items: impl IntoIterator<Item = (usize, &'a str)>,
    ) -> Self {
        let mut names = Self::default();
        for (server, name) in items {
            let key = (server, Box::from(name));
            let origin = origins.get(server);
            let Some(origin) = origin.filter(|_| !names.public.contains_key(&key)) else {
                continue;
            };
            let public = match registry.public_name(origin, name) {
                Some(known) => Box::from(known),
                None => {
                    let wanted = format.join(&origin.prefix, name);
                    let mut public = wanted.clone();
                    let mut of = format!("{}\0{}\0{name}", origin.name, origin.prefix);
                    // An original name may equal the name with the hash.
                    while registry.is_taken(&public) {
                        public = format.with_hash(&wanted, &of);
                        of.push('\0');
                    }
                    registry.assign(origin, name, &public);
                    if public != wanted {
                        names.conflicts.push(NameConflict {
                            name: wanted,
                            instead: public.clone(),
                            server,
                        });
                    }
                    public
                }
            };
            names.routes.insert(public.clone(), key.clone());
            names.public.insert(key, public);
        }
        for (server, origin) in origins.iter().enumerate() {
            registry.trim(origin, |name| names.public_name(server, name).is_some());
        }
        names
    }

    /// Returns the position of the server and the original name of a public name.
    pub(crate) fn route(&self, public: &str) -> Option<(usize, &str)> {
        let (server, name) = self.routes.get(public)?;
        Some((*server, name))
    }

    /// Returns the public name of an item.
    pub(crate) fn public_name(&self, server: usize, name: &str) -> Option<&str> {
        self.public.get(&(server, Box::from(name))).map(|s| &**s)
    }
}

impl NameFormat {
    /// Returns the public name of an item without regard to conflicts.
    pub(crate) fn join(&self, prefix: &str, name: &str) -> Box<str> {
        let whole = if prefix.is_empty() {
            String::from(name)
        } else {
            format!("{prefix}{}{name}", self.separator)
        };
        let clean = whole.replace(|c| !is_allowed(c), "_");
        if clean == whole && whole.len() <= self.max_len && !whole.is_empty() {
            return whole.into_boxed_str();
        }
        self.with_hash(&clean, &whole)
    }

    /// Returns the name truncated, with a suffix from the hash of `of`.
    fn with_hash(&self, clean: &str, of: &str) -> Box<str> {
        let hash = hex(&Sha256::digest(of)[..DIGITS / 2]);
        let room = self.max_len.saturating_sub(DIGITS + 1);
        let kept = &clean[..clean.len().min(room)];
        format!("{kept}_{hash}").into_boxed_str()
    }

    /// Returns possible targets of a name before any list is known: servers with a matching prefix and the original
    /// name, the longest prefix first.
    pub(crate) fn routes_by_prefix<'a, T>(
        &self,
        public: &'a str,
        prefixes: impl IntoIterator<Item = (T, &'a str)>,
    ) -> Vec<(T, &'a str)> {
        let prefixes = prefixes.into_iter();
        let found = prefixes.filter_map(|(server, prefix)| match public.strip_prefix(prefix)? {
            name if prefix.is_empty() => Some((server, name)),
            rest => Some((server, rest.strip_prefix(&*self.separator)?)),
        });
        let mut found: Vec<_> = found.collect();
        // The longest prefix leaves the shortest name.
        found.sort_by_key(|(_, name)| name.len());
        found
    }
}

/// Returns true if the name may have a hash suffix, so that the original name cannot be derived from it.
pub(crate) fn may_have_hash_suffix(public: &str) -> bool {
    let digits = public.rsplit_once('_').map(|(_, digits)| digits);
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

    fn names(prefixes: &[&str], items: &[(usize, &str)]) -> NameTable {
        let (format, origins) = (NameFormat::default(), origins(prefixes));
        let items = items.iter().copied();
        NameTable::assign(&format, &mut NameRegistry::default(), &origins, items)
    }

    /// AG-01: names are unique, and each is routed to its server.
    #[test]
    fn tools_with_the_same_name_get_different_public_names() {
        let names = names(&["a", "b"], &[(0, "search"), (1, "search")]);
        assert_eq!(names.route("b__search"), Some((1, "search")));
        assert_eq!(names.public_name(0, "search"), Some("a__search"));
        assert_eq!(names.public_name(1, "search"), Some("b__search"));
        assert!(names.conflicts.is_empty());
    }

    /// Conflicts are resolved and reported; the first item keeps its name.
    #[test]
    fn conflicting_names_are_resolved_and_reported() {
        let prefixes = ["a", "a__b", "", ""];
        let names = names(&prefixes, &[(0, "b__c"), (1, "c"), (2, "x"), (3, "x")]);
        assert_eq!(names.public_name(0, "b__c"), Some("a__b__c"));
        let other = names.public_name(1, "c").unwrap();
        assert!(other.starts_with("a__b__c_"), "{other}");
        assert_eq!(names.route(other), Some((1, "c")));
        assert_eq!(names.conflicts.len(), 2);
    }

    /// Items of servers do not get the names of the gateway's own tools.
    #[test]
    fn reserved_names_are_not_assigned() {
        let (format, mut registry) = (NameFormat::default(), NameRegistry::without(&["x"]));
        let origins = origins(&["", "a"]);
        let items = [(0, "x"), (1, "x")];
        let names = NameTable::assign(&format, &mut registry, &origins, items);
        assert_eq!(names.public_name(1, "x"), Some("a__x"));
        let renamed = names.public_name(0, "x").unwrap();
        assert!(renamed.starts_with("x_"), "{renamed}");
        registry.keep_only(&[]);
        assert!(registry.is_taken("x") && !registry.is_taken(renamed));
    }

    /// A name keeps its meaning while servers are added, removed and added again.
    #[test]
    fn names_stay_assigned_to_their_item() {
        let (format, mut registry) = (NameFormat::default(), NameRegistry::default());
        let origins = origins(&["", "", ""]);
        let mut reported = Vec::new();
        for items in [
            &[(1, "x")][..],
            &[(0, "x"), (1, "x")],
            &[(0, "x")],
            &[(0, "x"), (1, "y"), (2, "x")],
            &[(1, "x"), (2, "x")],
        ] {
            let names = NameTable::assign(&format, &mut registry, &origins, items.iter().copied());
            for (server, name) in items {
                let shown = names.public_name(*server, name).unwrap();
                assert_eq!(names.route(shown), Some((*server, *name)));
                assert_eq!(shown == "x", (*server, *name) == (1, "x"), "{shown}");
            }
            reported.extend(names.conflicts.iter().map(|conflict| conflict.server));
        }
        assert_eq!(reported, [0, 2], "each is reported once");
    }

    /// An original name that equals the hashed name of another item does not take it.
    #[test]
    fn names_that_look_hashed_are_kept_apart() {
        let marked = names(&["", ""], &[(0, "x"), (1, "x")]);
        let marked = marked.public_name(1, "x").unwrap();
        for items in [
            [(0, "x"), (0, marked), (1, "x")],
            [(0, "x"), (1, "x"), (1, marked)],
        ] {
            let names = names(&["", ""], &items);
            for (server, name) in items {
                let route = names.route(names.public_name(server, name).unwrap());
                assert_eq!(route, Some((server, name)));
            }
        }
    }

    /// AG-01: names stay within the length and characters that models accept.
    #[test]
    fn long_and_invalid_names_are_truncated_and_hashed() {
        let format = NameFormat::default();
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
            let shown = format.join(prefix, name);
            assert!(shown.len() <= 64, "{shown}");
            assert!(
                !shown.is_empty() && shown.chars().all(is_allowed),
                "{shown}"
            );
            assert_eq!(shown, format.join(prefix, name), "deterministic");
        }
        assert_ne!(format.join("p", "a b"), format.join("p", "a/b"));
        assert!(may_have_hash_suffix(&format.join("p", "a b")));
        for name in [
            "",
            "_",
            "deadbeef",
            "a_deadbee",
            "a_DEADBEEF",
            "a_deadbeef_",
        ] {
            assert!(!may_have_hash_suffix(name), "{name}");
        }
    }

    #[test]
    fn unlisted_names_are_routed_by_prefix() {
        let format = NameFormat::default();
        let found = format.routes_by_prefix("a__b__c", [(0, "a"), (1, "a__b"), (2, "z"), (3, "")]);
        assert_eq!(found, [(1, "c"), (0, "b__c"), (3, "a__b__c")]);
    }
}
