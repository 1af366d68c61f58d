//! Registry of public names.
//!
//! Clients may use a name long after they read a list. A public name therefore stays assigned to the same item, listed or
//! not, until its server is removed or gets another prefix.

use std::collections::{HashMap, HashSet};

/// Maximum number of unlisted names per server; above it all unlisted names of the server are released.
const MAX_UNLISTED: usize = 1024;

/// Server name and prefix, as far as public names depend on them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) name: Box<str>,
    /// Prefix of public names.
    pub(crate) prefix: Box<str>,
}

/// Assigned public names of tools or of prompts.
#[derive(Debug, Default)]
pub(crate) struct NameRegistry {
    /// Public names by server and original name.
    names: HashMap<Origin, HashMap<Box<str>, Box<str>>>,
    taken: HashSet<Box<str>>,
    /// Names released since the last [`Self::take_released`].
    released: HashSet<Box<str>>,
}

impl NameRegistry {
    /// Returns the public name of an item.
    pub(crate) fn public_name(&self, origin: &Origin, name: &str) -> Option<&str> {
        Some(self.names.get(origin)?.get(name)?)
    }

    /// Returns true if the public name is assigned.
    pub(crate) fn is_taken(&self, public: &str) -> bool {
        self.taken.contains(public)
    }

    /// Creates a registry that assigns none of these public names.
    pub(crate) fn without(reserved: &[&str]) -> Self {
        Self {
            taken: reserved.iter().map(|name| Box::from(*name)).collect(),
            ..Self::default()
        }
    }

    /// Assigns a public name, which must be free.
    pub(crate) fn assign(&mut self, origin: &Origin, name: &str, public: &str) {
        self.taken.insert(Box::from(public));
        let names = self.names.entry(origin.clone()).or_default();
        names.insert(Box::from(name), Box::from(public));
    }

    /// Releases the names of all servers but these.
    pub(crate) fn keep_only(&mut self, origins: &[Origin]) {
        self.names.retain(|origin, names| {
            let is_kept = origins.contains(origin);
            if !is_kept {
                let names = names.values();
                self.released
                    .extend(names.filter_map(|public| self.taken.take(public)));
            }
            is_kept
        });
    }

    /// Returns true if names were released since the last call; they may be assigned again afterwards.
    pub(crate) fn take_released(&mut self) -> bool {
        !std::mem::take(&mut self.released).is_empty()
    }

    /// Returns true if the public name is, or could become, that of this item, which need not be listed.
    pub(crate) fn may_be(&self, public: &str, origin: &Origin, name: &str) -> bool {
        match self.public_name(origin, name) {
            Some(known) => known == public,
            None => !self.is_taken(public) && !self.released.contains(public),
        }
    }

    /// Releases the unlisted names of a server if it has too many of them.
    pub(crate) fn trim(&mut self, origin: &Origin, is_listed: impl Fn(&str) -> bool) {
        let Some(names) = self.names.get_mut(origin) else {
            return;
        };
        if names.keys().filter(|name| !is_listed(name)).count() > MAX_UNLISTED {
            names.retain(|name, public| {
                let is_kept = is_listed(name);
                if !is_kept {
                    self.taken.remove(public);
                }
                is_kept
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(name: &str) -> Origin {
        Origin {
            name: Box::from(name),
            prefix: Box::from(""),
        }
    }

    /// Names are released when their server is removed or gets another prefix.
    #[test]
    fn names_are_released_with_their_server() {
        let (a, b) = (origin("a"), origin("b"));
        let mut registry = NameRegistry::default();
        registry.assign(&a, "x", "x");
        registry.assign(&b, "x", "x_1");
        registry.keep_only(&[a.clone(), b.clone()]);
        assert!(!registry.take_released());
        assert!(registry.is_taken("x") && registry.is_taken("x_1"));
        let renamed = Origin {
            prefix: Box::from("p"),
            ..a.clone()
        };
        registry.keep_only(&[renamed, b.clone()]);
        assert!(!registry.is_taken("x"));
        assert!(!registry.may_be("x", &b, "x") && registry.may_be("x_1", &b, "x"));
        assert!(!registry.may_be("x", &b, "y"), "released just now");
        assert!(registry.take_released());
        assert!(!registry.take_released(), "reported once");
        assert!(registry.may_be("x", &b, "y"));
        assert_eq!(registry.public_name(&a, "x"), None);
        assert_eq!(registry.public_name(&b, "x"), Some("x_1"));
    }

    /// A server with ever-changing tools uses bounded memory and does not affect the names of others.
    #[test]
    fn unlisted_names_are_bounded() {
        let (a, b) = (origin("a"), origin("b"));
        let mut registry = NameRegistry::default();
        registry.assign(&b, "x", "x");
        for round in 0..=MAX_UNLISTED {
            let name = format!("t{round}");
            registry.assign(&a, &name, &name);
            registry.trim(&a, |listed| *listed == *name);
            registry.trim(&b, |_| false);
        }
        assert!(registry.is_taken("t0"), "at the limit");
        registry.assign(&a, "last", "last");
        registry.trim(&a, |listed| listed == "last");
        assert!(!registry.is_taken("t0"));
        assert!(registry.is_taken("last") && registry.is_taken("x"));
        assert_eq!(registry.taken.len(), 2);
    }
}
