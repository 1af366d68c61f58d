//! Pairs of peers that are connected through the bridge.

use serde::Deserialize;

use super::manifest::{Lack, Manifest, Peer, Transport};
use super::pair::End;

/// Default mode of the bridge towards servers. Entries of `servers.toml` for other modes do not apply.
const TOWARDS_SERVERS: &str = "auto";

/// The file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Bridged {
    client: Vec<Client>,
    servers: Vec<String>,
    absent: Vec<Absent>,
}

/// A client and its modes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    name: String,
    modes: Vec<String>,
}

/// Missing features of some pairs; an empty list means all pairs.
#[derive(Deserialize)]
struct Absent {
    #[serde(default)]
    clients: Vec<String>,
    #[serde(default)]
    modes: Vec<String>,
    #[serde(default)]
    servers: Vec<String>,
    #[serde(flatten)]
    lack: Lack,
}

impl Absent {
    fn fits(&self, client: &End<'_>, mode: &str, server: &End<'_>) -> bool {
        let has = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        has(&self.clients, &client.peer.name)
            && has(&self.modes, mode)
            && has(&self.servers, &server.peer.name)
    }
}

impl Bridged {
    /// Each client in each of its modes with each server. The transports rotate, so each pair runs
    /// once and both sides use all transports.
    pub(super) fn pairs<'a>(&'a self, manifest: &'a Manifest) -> Vec<(End<'a>, &'a str, End<'a>)> {
        let clients = self.client.iter().filter_map(|client| {
            let peer = manifest.peer(&client.name)?;
            Some((peer, &client.modes))
        });
        let clients = clients.flat_map(|(peer, modes)| modes.iter().map(move |mode| (peer, mode)));
        let mut pairs = Vec::new();
        for (row, (client, mode)) in clients.enumerate() {
            let servers = self.servers.iter().filter_map(|name| manifest.peer(name));
            for (column, server) in servers.enumerate() {
                let fronts: Vec<Transport> = client.carriers(mode).collect();
                let backs: Vec<Transport> = server.carriers(TOWARDS_SERVERS).collect();
                let front = turn(client, &fronts, row + column);
                // Rotates more slowly than the front, so that all combinations occur.
                let back = turn(server, &backs, row / fronts.len().max(1) + column);
                pairs.extend(front.zip(back).map(|(f, b)| (f, mode.as_str(), b)));
            }
        }
        pairs
    }

    /// Missing features of a pair: those of each side and those of the combination.
    pub(super) fn lacks<'a>(
        &'a self,
        client: &End<'a>,
        mode: &'a str,
        server: &End<'a>,
    ) -> Vec<&'a Lack> {
        let together = self
            .absent
            .iter()
            .filter(|entry| entry.fits(client, mode, server))
            .map(|entry| &entry.lack);
        let of_client = client.peer.lacks(client.transport, mode);
        let of_server = server.peer.lacks(server.transport, TOWARDS_SERVERS);
        of_client.chain(of_server).chain(together).collect()
    }

    /// Unknown names, and entries that match no pair.
    pub(super) fn unused(&self, manifest: &Manifest) -> Vec<String> {
        let pairs = self.pairs(manifest);
        let names = self.client.iter().map(|client| &client.name);
        let unknown = names
            .chain(&self.servers)
            .filter(|name| manifest.peer(name).is_none())
            .map(|name| format!("bridged: unknown peer `{name}`"));
        let unused = self
            .absent
            .iter()
            .filter(|entry| !pairs.iter().any(|(c, mode, s)| entry.fits(c, mode, s)))
            .map(|entry| format!("bridged: no pair for `{}`", entry.lack.reason));
        unknown.chain(unused).collect()
    }
}

fn turn<'a>(peer: &'a Peer, carriers: &[Transport], number: usize) -> Option<End<'a>> {
    let transport = *carriers.get(number.checked_rem(carriers.len())?)?;
    Some(End { peer, transport })
}
