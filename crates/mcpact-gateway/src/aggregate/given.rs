//! Which names have been given, and to what.
//!
//! A client holds a name for as long as it likes, and nobody sees that it means something else meanwhile. So
//! a name stays with the thing of the server that was first given it, whether a list has the thing at the
//! moment or not, until the server is gone or is called otherwise.

use std::collections::{HashMap, HashSet};

/// How many names that no list has are kept for one server; whoever has more loses all of these.
const VANISHED: usize = 1024;

/// A server whose things are named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) name: Box<str>,
    /// What the names of its things start with.
    pub(crate) prefix: Box<str>,
}

/// The names of one kind of things, whoever was shown them.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// What the things of each server are called.
    shown: HashMap<Origin, HashMap<Box<str>, Box<str>>>,
    taken: HashSet<Box<str>>,
    /// What was taken back, and has not been told.
    lost: HashSet<Box<str>>,
}

impl Given {
    /// What a thing of a server is called.
    pub(crate) fn shown(&self, origin: &Origin, name: &str) -> Option<&str> {
        Some(self.shown.get(origin)?.get(name)?)
    }

    /// Whether something has a name.
    pub(crate) fn is_taken(&self, shown: &str) -> bool {
        self.taken.contains(shown)
    }

    /// From here on a thing of a server is called so; nothing else must be.
    pub(crate) fn give(&mut self, origin: &Origin, name: &str, shown: &str) {
        self.taken.insert(Box::from(shown));
        let things = self.shown.entry(origin.clone()).or_default();
        things.insert(Box::from(name), Box::from(shown));
    }

    /// Takes the names back from all servers but these.
    pub(crate) fn keep(&mut self, origins: &[Origin]) {
        let (taken, lost) = (&mut self.taken, &mut self.lost);
        self.shown.retain(|origin, things| {
            let is_there = origins.contains(origin);
            if !is_there {
                let names = things.values().filter_map(|shown| taken.take(shown));
                lost.extend(names);
            }
            is_there
        });
    }

    /// Whether names have been taken back since this was last asked; they may be given anew from here on.
    pub(crate) fn has_lost(&mut self) -> bool {
        !std::mem::take(&mut self.lost).is_empty()
    }

    /// Whether a name may be that of a thing of a server, of which nobody may have heard.
    pub(crate) fn may_be(&self, shown: &str, origin: &Origin, name: &str) -> bool {
        match self.shown(origin, name) {
            Some(known) => known == shown,
            None => !self.is_taken(shown) && !self.lost.contains(shown),
        }
    }

    /// Forgets what a server had too much of that is not there any more.
    pub(crate) fn trim(&mut self, origin: &Origin, is_there: impl Fn(&str) -> bool) {
        let Some(things) = self.shown.get_mut(origin) else {
            return;
        };
        let vanished = things.keys().filter(|name| !is_there(name)).count();
        if vanished <= VANISHED {
            return;
        }
        things.retain(|name, shown| {
            let is_kept = is_there(name);
            if !is_kept {
                self.taken.remove(shown);
            }
            is_kept
        });
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

    /// A name is free again when its server is gone or is called otherwise, and not before.
    #[test]
    fn names_are_taken_back_with_their_server() {
        let (a, b) = (origin("a"), origin("b"));
        let mut given = Given::default();
        given.give(&a, "x", "x");
        given.give(&b, "x", "x_1");
        given.keep(&[a.clone(), b.clone()]);
        assert!(!given.has_lost());
        assert!(given.is_taken("x") && given.is_taken("x_1"));
        let renamed = Origin {
            prefix: Box::from("p"),
            ..a.clone()
        };
        given.keep(&[renamed, b.clone()]);
        assert!(!given.is_taken("x"));
        assert!(!given.may_be("x", &b, "x") && given.may_be("x_1", &b, "x"));
        assert!(!given.may_be("x", &b, "y"), "it was taken back just now");
        assert!(given.has_lost());
        assert!(!given.has_lost(), "it is told once");
        assert!(given.may_be("x", &b, "y"));
        assert_eq!(given.shown(&a, "x"), None);
        assert_eq!(given.shown(&b, "x"), Some("x_1"));
    }

    /// A server whose tools are others every time takes neither memory without end nor names from others.
    #[test]
    fn what_has_vanished_is_bounded() {
        let (a, b) = (origin("a"), origin("b"));
        let mut given = Given::default();
        given.give(&b, "x", "x");
        for round in 0..=VANISHED {
            let name = format!("t{round}");
            given.give(&a, &name, &name);
            given.trim(&a, |there| *there == *name);
            given.trim(&b, |_| false);
        }
        assert!(given.is_taken("t0"), "as many may have vanished");
        given.give(&a, "last", "last");
        given.trim(&a, |there| there == "last");
        assert!(!given.is_taken("t0"));
        assert!(given.is_taken("last") && given.is_taken("x"));
        assert_eq!(given.taken.len(), 2);
    }
}
