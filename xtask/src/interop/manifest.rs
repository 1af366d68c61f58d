//! The peers, as their two files name them, and those that meet through the bridge.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bridged::Bridged;
use super::feature::Feature;
use super::pair::{End, Pair};
use crate::checkout::Checkout;
use crate::failure::Failure;

const SERVERS: &str = "interop/servers/servers.toml";
const CLIENTS: &str = "interop/clients/clients.toml";
const BRIDGED: &str = "interop/bridged.toml";

/// All three files.
pub(super) struct Manifest {
    servers: File,
    clients: File,
    bridged: Bridged,
}

/// One of the files.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    server: Vec<Peer>,
    client: Vec<Peer>,
    scripts: BTreeMap<String, Value>,
}

/// Transport of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    Stdio,
    Http,
    Sse,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        })
    }
}

/// Runtime of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Node,
    Python,
    Cargo,
}

/// A program on another SDK.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// A file beside the manifest, or the name of a package of this workspace.
    pub(super) file: Option<String>,
    /// A file of one of the packages.
    pub(super) program: Option<String>,
    #[serde(default)]
    pub(super) packages: Vec<String>,
    modes: Vec<String>,
    pub(super) transports: Vec<Transport>,
    /// Arguments for each transport.
    #[serde(default)]
    pub(super) arguments: BTreeMap<Transport, Vec<String>>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    /// Script that exercises each feature of a server.
    script: Option<String>,
    #[serde(default)]
    absent: Vec<Absent>,
    #[serde(default)]
    without: Vec<Without>,
}

/// Selection of pairs; an empty list means all.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Which {
    modes: Vec<String>,
    transports: Vec<Transport>,
}

impl Which {
    fn fits(&self, transport: Transport, mode: &str) -> bool {
        let has_mode = self.modes.is_empty() || self.modes.iter().any(|one| one == mode);
        has_mode && (self.transports.is_empty() || self.transports.contains(&transport))
    }
}

/// Missing features of some pairs.
#[derive(Deserialize)]
pub(super) struct Absent {
    #[serde(flatten)]
    which: Which,
    #[serde(flatten)]
    lack: Lack,
}

/// Missing features with the reason.
#[derive(Deserialize)]
pub(super) struct Lack {
    pub(super) features: Vec<Feature>,
    pub(super) reason: String,
}

/// Pairs that there cannot be.
#[derive(Deserialize)]
pub(super) struct Without {
    #[serde(flatten)]
    which: Which,
    reason: String,
}

impl Manifest {
    /// Reads the files of the checkout.
    pub(super) fn read(checkout: &Checkout) -> Result<Self, Failure> {
        Ok(Self {
            servers: file(checkout, SERVERS)?,
            clients: file(checkout, CLIENTS)?,
            bridged: file(checkout, BRIDGED)?,
        })
    }

    /// The manifest that these texts make.
    #[cfg(test)]
    pub(super) fn of(servers: &str, clients: &str, bridged: &str) -> Self {
        Self {
            servers: toml::from_str(servers).unwrap(),
            clients: toml::from_str(clients).unwrap(),
            bridged: toml::from_str(bridged).unwrap(),
        }
    }

    /// Every pair: servers first, then clients, then those on either side of the bridge.
    pub(super) fn pairs(&self) -> Vec<Pair<'_>> {
        let mut pairs = Vec::new();
        for peer in self.peers() {
            for (transport, mode) in peer.runs() {
                let end = End { peer, transport };
                let script = self.script(peer);
                let (client, server) = match script {
                    Some(_) => (None, Some(end)),
                    None => (Some(end), None),
                };
                pairs.push(Pair {
                    position: pairs.len(),
                    client,
                    server,
                    mode,
                    script,
                    absent: peer.lacks(transport, mode).collect(),
                });
            }
        }
        for (client, mode, server) in self.bridged.pairs(self) {
            pairs.push(Pair {
                position: pairs.len(),
                mode,
                script: self.script(server.peer),
                absent: self.bridged.lacks(&client, mode, &server),
                client: Some(client),
                server: Some(server),
            });
        }
        pairs
    }

    fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.servers.server.iter().chain(&self.clients.client)
    }

    /// Script for a server; clients have their own.
    fn script(&self, peer: &Peer) -> Option<&Value> {
        let name = peer.script.as_deref()?;
        Some(self.servers.scripts.get(name).unwrap_or(&Value::Null))
    }

    /// The peer of this name.
    pub(super) fn peer(&self, name: &str) -> Option<&Peer> {
        self.peers().find(|peer| peer.name == name)
    }

    /// Pairs that there are not, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for peer in self.peers() {
            for (transport, mode) in peer.all() {
                let reason = peer.left_out(transport, mode);
                lines.extend(reason.map(|why| format!("{} {transport} {mode}: {why}", peer.name)));
            }
        }
        lines
    }

    /// Entries that no pair has to do with, so that they say nothing.
    pub(super) fn unused(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for peer in self.peers() {
            let absent = peer
                .absent
                .iter()
                .map(|entry| (&entry.which, &entry.lack.reason));
            let without = peer
                .without
                .iter()
                .map(|entry| (&entry.which, &entry.reason));
            let has_run = |which: &Which| peer.runs().any(|(t, mode)| which.fits(t, mode));
            let is_left = |which: &Which| peer.all().any(|(t, mode)| which.fits(t, mode));
            let absent = absent.filter(|(which, _)| !has_run(which));
            let unused = absent.chain(without.filter(|(which, _)| !is_left(which)));
            lines.extend(unused.map(|(_, why)| format!("{}: no pair for `{why}`", peer.name)));
        }
        lines.extend(self.bridged.unused(self));
        lines
    }
}

impl Peer {
    fn all(&self) -> impl Iterator<Item = (Transport, &str)> {
        self.transports
            .iter()
            .flat_map(|transport| self.modes.iter().map(|mode| (*transport, mode.as_str())))
    }

    /// Transports in this mode.
    pub(super) fn carriers<'a>(&'a self, mode: &'a str) -> impl Iterator<Item = Transport> {
        let carriers = self.transports.iter().copied();
        carriers.filter(move |carrier| self.left_out(*carrier, mode).is_none())
    }

    fn runs(&self) -> impl Iterator<Item = (Transport, &str)> {
        self.all()
            .filter(|(transport, mode)| self.left_out(*transport, mode).is_none())
    }

    /// Missing features on this transport in this mode.
    pub(super) fn lacks<'a>(
        &'a self,
        transport: Transport,
        mode: &'a str,
    ) -> impl Iterator<Item = &'a Lack> {
        let fits = move |entry: &&Absent| entry.which.fits(transport, mode);
        self.absent.iter().filter(fits).map(|entry| &entry.lack)
    }

    fn left_out(&self, transport: Transport, mode: &str) -> Option<&str> {
        let fits = |entry: &&Without| entry.which.fits(transport, mode);
        self.without
            .iter()
            .find(fits)
            .map(|entry| entry.reason.as_str())
    }
}

pub(super) fn file<T: DeserializeOwned>(checkout: &Checkout, path: &str) -> Result<T, Failure> {
    toml::from_str(&checkout.read(path)?).map_err(|source| Failure::Toml {
        path: checkout.path(path),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = r#"
        [[client]]
        name = "peer"
        kind = "cargo"
        file = "peer"
        modes = ["auto", "modern"]
        transports = ["stdio", "sse"]
        [[client.without]]
        modes = ["modern"]
        transports = ["sse"]
        reason = "too old"
        [[client.absent]]
        transports = ["sse"]
        features = ["log"]
        reason = "silent"
    "#;

    #[test]
    fn pairs_are_all_modes_on_all_transports_without_the_excluded() {
        let manifest = Manifest::of("", CLIENT, "");
        let pairs = manifest.pairs();
        let names: Vec<String> = pairs.iter().map(Pair::name).collect();
        assert_eq!(
            names,
            ["peer stdio auto", "peer stdio modern", "peer sse auto"]
        );
        let absent: Vec<usize> = pairs.iter().map(|pair| pair.absent.len()).collect();
        assert_eq!(absent, [0, 0, 1]);
        assert_eq!(manifest.left_out(), ["peer sse modern: too old"]);
        assert_eq!(manifest.unused(), [""; 0]);
    }

    #[test]
    fn entries_about_no_pair_are_unused() {
        let text = CLIENT.replace("modes = [\"modern\"]", "modes = [\"moddern\"]");
        assert_eq!(
            Manifest::of("", &text, "").unused(),
            ["peer: no pair for `too old`"]
        );
        let text = CLIENT.replace("\"sse\"]\n        features", "\"http\"]\n        features");
        assert_eq!(
            Manifest::of("", &text, "").unused(),
            ["peer: no pair for `silent`"]
        );
    }

    #[test]
    fn unknown_values_are_rejected() {
        for (from, to) in [
            ("kind =", "kinds ="),
            ("\"stdio\"", "\"pigeon\""),
            ("\"log\"", "\"logs\""),
        ] {
            let text = CLIENT.replacen(from, to, 1);
            assert!(toml::from_str::<File>(&text).is_err(), "{to}");
        }
    }
}
