//! Which peers meet each other through the bridge.

use serde::Deserialize;

use super::manifest::{Lack, Manifest, Peer, Transport};
use super::pair::End;

/// How the bridge speaks to a server unless it is told otherwise; entries of `servers.toml` that are
/// about other modes do not concern it.
const TOWARDS_SERVERS: &str = "auto";

/// The file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Bridged {
    client: Vec<Client>,
    servers: Vec<String>,
    absent: Vec<Absent>,
}

/// A client, and what it insists on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    name: String,
    modes: Vec<String>,
}

/// Features that some meetings lack; an empty list means all.
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
    /// Each client in each of its modes with each server. The carriers take turns, so that each
    /// meeting is held once and all carriers are used on either side.
    pub(super) fn meetings<'a>(
        &'a self,
        manifest: &'a Manifest,
    ) -> Vec<(End<'a>, &'a str, End<'a>)> {
        let clients = self.client.iter().filter_map(|client| {
            let peer = manifest.peer(&client.name)?;
            Some((peer, &client.modes))
        });
        let clients = clients.flat_map(|(peer, modes)| modes.iter().map(move |mode| (peer, mode)));
        let mut meetings = Vec::new();
        for (row, (client, mode)) in clients.enumerate() {
            let servers = self.servers.iter().filter_map(|name| manifest.peer(name));
            for (column, server) in servers.enumerate() {
                let fronts: Vec<Transport> = client.carriers(mode).collect();
                let backs: Vec<Transport> = server.carriers(TOWARDS_SERVERS).collect();
                let front = turn(client, &fronts, row + column);
                // Another pace than in front, so that each meets each.
                let back = turn(server, &backs, row / fronts.len().max(1) + column);
                meetings.extend(front.zip(back).map(|(f, b)| (f, mode.as_str(), b)));
            }
        }
        meetings
    }

    /// What a meeting lacks: what either side lacks by itself, and what they lack together.
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

    /// Names that nobody has, and entries that no meeting has to do with.
    pub(super) fn unused(&self, manifest: &Manifest) -> Vec<String> {
        let meetings = self.meetings(manifest);
        let names = self.client.iter().map(|client| &client.name);
        let unknown = names
            .chain(&self.servers)
            .filter(|name| manifest.peer(name).is_none())
            .map(|name| format!("bridged: there is no `{name}`"));
        let unused = self
            .absent
            .iter()
            .filter(|entry| !meetings.iter().any(|(c, mode, s)| entry.fits(c, mode, s)))
            .map(|entry| format!("bridged: no pair for `{}`", entry.lack.reason));
        unknown.chain(unused).collect()
    }
}

fn turn<'a>(peer: &'a Peer, carriers: &[Transport], number: usize) -> Option<End<'a>> {
    let transport = *carriers.get(number.checked_rem(carriers.len())?)?;
    Some(End { peer, transport })
}
