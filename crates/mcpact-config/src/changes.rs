//! Difference between two configs, for reload.

use std::collections::{BTreeMap, BTreeSet};

use super::Catalog;
use super::config::ServerConfig;
use super::name::ServerName;

/// Difference between two configs. Disabled servers count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Added servers.
    pub added: BTreeSet<ServerName>,
    /// Removed servers.
    pub removed: BTreeSet<ServerName>,
    /// Changed servers.
    pub changed: BTreeMap<ServerName, Change>,
    /// True if the gateway settings differ.
    pub gateway: bool,
}

/// Effect of a change on a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The launch differs: instances are stopped and start again on the next call.
    Relaunch,
    /// Only limits, names or visibility differ; instances keep running.
    Settings,
}

impl Changes {
    /// Returns whether the configs are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Catalog {
    /// Computes the changes from this config to another.
    #[must_use]
    pub fn changes_to(&self, next: &Self) -> Changes {
        let (old, new) = (self.served(), next.served());
        let names = |all: &BTreeMap<&ServerName, _>, other: &BTreeMap<&ServerName, _>| {
            let only = all.keys().filter(|name| !other.contains_key(*name));
            only.map(|name| (*name).clone()).collect()
        };
        let changed = new.iter().filter_map(|(name, server)| {
            let change = change(old.get(name)?, server)?;
            Some(((*name).clone(), change))
        });
        Changes {
            added: names(&new, &old),
            removed: names(&old, &new),
            changed: changed.collect(),
            gateway: self.gateway != next.gateway,
        }
    }

    /// Enabled servers.
    #[must_use]
    pub fn served(&self) -> BTreeMap<&ServerName, &ServerConfig> {
        let all = self.servers.iter();
        all.filter(|(_, server)| server.enabled).collect()
    }
}

fn change(old: &ServerConfig, new: &ServerConfig) -> Option<Change> {
    let is_started_alike = old.launch == new.launch
        && old.era == new.era
        && old.require == new.require
        && old.declare == new.declare
        && old.answers == new.answers
        && old.run.strategy == new.run.strategy;
    if !is_started_alike {
        return Some(Change::Relaunch);
    }
    (old != new).then_some(Change::Settings)
}

#[cfg(test)]
mod tests {
    use crate::read::tests::taken_from;

    use super::*;

    fn changes(old: &str, new: &str) -> Changes {
        taken_from("mcpact.toml", old).changes_to(&taken_from("mcpact.toml", new))
    }

    /// Unchanged servers are not listed; only a changed launch restarts a server.
    #[test]
    fn changes_are_classified() {
        let old = "[servers.a]\ncommand = \"a\"\n[servers.b]\ncommand = \"b\"\n[servers.c]\ncommand = \"c\"\n[servers.d]\ncommand = \"d\"\n[servers.e]\ncommand = \"e\"\nenabled = false";
        let new = "[servers.a]\ncommand = \"a\"\n[servers.b]\ncommand = \"b\"\nmax_concurrent = 1\n[servers.c]\ncommand = \"c\"\nargs = [\"x\"]\n[servers.d]\ncommand = \"d\"\nenabled = false\n[servers.e]\ncommand = \"e\"\n[servers.f]\ncommand = \"f\"";
        let found = changes(old, new);
        let names =
            |set: &BTreeSet<ServerName>| set.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&found.added), ["e", "f"]);
        assert_eq!(names(&found.removed), ["d"]);
        assert_eq!(found.changed.len(), 2);
        assert_eq!(found.changed["b"], Change::Settings);
        assert_eq!(found.changed["c"], Change::Relaunch);
        assert!(!found.gateway);
    }

    /// A changed secret counts as a change.
    #[test]
    fn changed_secret_is_a_change() {
        let one = "[servers.a]\nurl = \"https://a.example/\"\nheaders = { K = \"1\" }";
        let two = "[servers.a]\nurl = \"https://a.example/\"\nheaders = { K = \"2\" }";
        assert_eq!(changes(one, two).changed["a"], Change::Relaunch);
        assert!(changes(one, one).is_empty());
        assert!(changes(one, &format!("[gateway]\nsse = true\n{one}")).gateway);
    }
}
