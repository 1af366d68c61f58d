//! Servers that another config has ended, and whose calls may still run.

use std::sync::{Arc, Weak};

use mcpact_config::ServerName;

use super::{Served, State};
use crate::bridge::Bridge;
use crate::supervisor::InstanceStatus;

/// Who leaves, for as long as anything of it runs.
#[derive(Debug, Default)]
pub(super) struct Leaving(Vec<(ServerName, Weak<Bridge>)>);

impl Leaving {
    /// These leave from now on.
    pub(super) fn add<'a>(&mut self, gone: impl Iterator<Item = (&'a ServerName, &'a Served)>) {
        self.0.retain(|(_, bridge)| bridge.strong_count() > 0);
        let gone = gone.map(|(name, served)| {
            let bridge = Arc::downgrade(served.member.bridge());
            (name.clone(), bridge)
        });
        self.0.extend(gone);
    }

    fn bridges(&self) -> impl Iterator<Item = (&ServerName, Arc<Bridge>)> {
        let all = self.0.iter();
        all.filter_map(|(name, bridge)| Some((name, bridge.upgrade()?)))
    }
}

impl State {
    /// What still runs of the servers that had this name before.
    pub(super) fn leaving(&self, name: &ServerName) -> Vec<InstanceStatus> {
        let before = self.leaving.bridges().filter(|(of, _)| *of == name);
        before
            .flat_map(|(_, bridge)| bridge.status().instances)
            .collect()
    }

    /// Servers of which something still runs, and which there are no more.
    pub(super) fn left(&self) -> Vec<(&ServerName, Arc<Bridge>)> {
        let names = self.names().collect::<Vec<_>>();
        let left = self.leaving.bridges().filter(|(name, bridge)| {
            !names.contains(name) && !bridge.status().instances.is_empty()
        });
        let mut left: Vec<_> = left.collect();
        left.dedup_by_key(|(name, _)| *name);
        left
    }
}
