use alloc::boxed::Box;
use alloc::vec::Vec;

use mcpact_spec::{Extension, Revision, Side};
use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::text;

use super::set::CapabilitySet;

/// An extension or experimental feature that both sides declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedExtension {
    /// Its identifier.
    pub id: Box<str>,
    /// The client's raw settings.
    pub client_settings: Box<str>,
    /// The server's raw settings.
    pub server_settings: Box<str>,
    /// The highest version that both name, where they name any.
    pub version: Option<Box<str>>,
}

/// Result of the negotiation of one identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Both declared it and can work together.
    Shared(SharedExtension),
    /// Only the client declared it.
    ClientOnly(Box<str>),
    /// Only the server declared it.
    ServerOnly(Box<str>),
    /// Both declared it, with no version in common.
    NoCommonVersion(Box<str>),
    /// This side declared it, but it must not be used under this revision.
    NotInForce(Box<str>, Side),
    /// This side's identifier has no prefix, which extensions must have.
    BadIdentifier(Box<str>, Side),
}

/// Finds what two peers share among their extensions.
///
/// `2026-07-28 basic/versioning#extensions`: both must declare it, the identifier has a prefix, and
/// a peer without it gets core behaviour.
#[must_use]
pub fn agree(client: &CapabilitySet, server: &CapabilitySet, revision: Revision) -> Vec<Agreement> {
    let in_force = |id: &str| Extension::parse(id).is_none_or(|e| e.in_force(revision));
    meet(client.extensions(), server.extensions(), |id, side| {
        if !id.contains('/') {
            Some(Agreement::BadIdentifier(Box::from(id), side))
        } else if in_force(id) {
            None
        } else {
            Some(Agreement::NotInForce(Box::from(id), side))
        }
    })
}

/// The same for experimental features, with free identifiers and perhaps boolean values.
pub(crate) fn agree_experimental(client: &CapabilitySet, server: &CapabilitySet) -> Vec<Agreement> {
    let enabled = |(_, raw): &(&str, &str)| !matches!(*raw, "false" | "null");
    meet(
        client.experimental().filter(enabled),
        server.experimental().filter(enabled),
        |_, _| None,
    )
}

/// Only what is shared among the extensions; most peers have none, and then this costs nothing.
pub(crate) fn share(
    client: &CapabilitySet,
    server: &CapabilitySet,
    revision: Revision,
) -> Vec<SharedExtension> {
    if client.extensions().next().is_none() {
        return Vec::new();
    }
    shared(agree(client, server, revision))
}

/// Only what is shared among the experimental features.
pub(crate) fn share_experimental(
    client: &CapabilitySet,
    server: &CapabilitySet,
) -> Vec<SharedExtension> {
    if client.experimental().next().is_none() {
        return Vec::new();
    }
    shared(agree_experimental(client, server))
}

fn shared(all: Vec<Agreement>) -> Vec<SharedExtension> {
    all.into_iter()
        .filter_map(|agreement| {
            let Agreement::Shared(shared) = agreement else {
                return None;
            };
            Some(shared)
        })
        .collect()
}

fn meet<'a>(
    client: impl Iterator<Item = (&'a str, &'a str)>,
    server: impl Iterator<Item = (&'a str, &'a str)>,
    objection: impl Fn(&str, Side) -> Option<Agreement>,
) -> Vec<Agreement> {
    let theirs: Vec<_> = server.collect();
    let mut all = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (id, client_settings) in client {
        seen.push(id);
        let other = theirs.iter().find(|(other, _)| *other == id);
        all.push(match (objection(id, Side::Client), other) {
            (Some(objection), _) => objection,
            (None, None) => Agreement::ClientOnly(Box::from(id)),
            (None, Some((_, server_settings))) => pair(id, client_settings, server_settings),
        });
    }
    for (id, _) in theirs.iter().filter(|(id, _)| !seen.contains(id)) {
        all.push(
            objection(id, Side::Server).unwrap_or_else(|| Agreement::ServerOnly(Box::from(*id))),
        );
    }
    all
}

fn pair(id: &str, client: &str, server: &str) -> Agreement {
    let (ours, theirs) = (versions(client), versions(server));
    let version = ours
        .iter()
        .filter(|v| theirs.contains(v))
        .max_by(|a, b| by_number(a, b));
    if version.is_none() && !ours.is_empty() && !theirs.is_empty() {
        return Agreement::NoCommonVersion(Box::from(id));
    }
    Agreement::Shared(SharedExtension {
        id: Box::from(id),
        client_settings: Box::from(client),
        server_settings: Box::from(server),
        version: version.cloned(),
    })
}

/// The versions in a settings object: `version`, or the list `versions`.
fn versions(settings: &str) -> Vec<Box<str>> {
    let Ok(settings) = Object::parse(settings) else {
        return Vec::new();
    };
    let of = |raw: &str| match JsonKind::of(raw) {
        JsonKind::String => text(raw).map(|t| Box::from(t.as_ref())),
        JsonKind::Number => Some(Box::from(raw)),
        JsonKind::Object | JsonKind::Array | JsonKind::Boolean | JsonKind::Null => None,
    };
    let single = settings.get("version").and_then(of);
    let listed = settings.get("versions").and_then(|raw| elements(raw).ok());
    listed
        .unwrap_or_default()
        .into_iter()
        .filter_map(of)
        .chain(single)
        .collect()
}

/// Orders `1.10` after `1.9`: number by number, and text where there is none.
fn by_number(a: &str, b: &str) -> core::cmp::Ordering {
    let key = |v: &str| {
        v.split(['.', '-'])
            .map(|part| part.parse::<u64>().ok())
            .collect::<Vec<_>>()
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}
