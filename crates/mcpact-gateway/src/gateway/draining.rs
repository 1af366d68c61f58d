//! Servers that were removed or replaced while calls are in flight.

use std::sync::{Arc, Weak};

use mcpact_config::ServerName;

use super::State;
use crate::supervisor::InstanceStatus;
use crate::upstream::UpstreamServer;

/// Removed or replaced servers that still exist.
#[derive(Debug, Default)]
pub(super) struct DrainingServers(Vec<(ServerName, Weak<UpstreamServer>)>);

impl DrainingServers {
    /// Adds a server.
    pub(super) fn add(&mut self, name: ServerName, server: &Arc<UpstreamServer>) {
        self.0.retain(|(_, server)| server.strong_count() > 0);
        self.0.push((name, Arc::downgrade(server)));
    }

    fn bridges(&self) -> impl Iterator<Item = (&ServerName, Arc<UpstreamServer>)> {
        let all = self.0.iter();
        all.filter_map(|(name, server)| Some((name, server.upgrade()?)))
    }
}

impl State {
    /// Returns the instances of replaced servers of this name.
    pub(super) fn draining_instances(&self, name: &ServerName) -> Vec<InstanceStatus> {
        let replaced = self.draining.bridges().filter(|(of, _)| *of == name);
        replaced
            .flat_map(|(_, server)| server.status().instances)
            .collect()
    }

    /// Returns the removed servers that still have instances.
    pub(super) fn removed(&self) -> Vec<(&ServerName, Arc<UpstreamServer>)> {
        let names = self.names().collect::<Vec<_>>();
        let removed = self.draining.bridges().filter(|(name, server)| {
            !names.contains(name) && !server.status().instances.is_empty()
        });
        let mut removed: Vec<_> = removed.collect();
        removed.dedup_by_key(|(name, _)| *name);
        removed
    }
}
