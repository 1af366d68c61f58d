//! Reference model: the expected outcome of a conversation.
//!
//! It uses neither the engine nor the tables of `mcpact-spec`; revisions and sides are names only. The tables are typed
//! in by hand from the five revisions.

pub mod caps;
pub mod ledger;
mod methods;

use mcpact_engine::revisions::RevisionSet;
use mcpact_spec::{Kind, Revision, Side};

use caps::Caps;
use methods::{By, Needs, TABLE};

/// Outcome of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Agreement on this revision.
    Agreed(Revision),
    /// No agreement.
    Failed,
}

/// The four revisions with `initialize`, oldest first.
const LEGACY: [Revision; 4] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
];

/// The one without.
const MODERN: Revision = Revision::V2026_07_28;

/// Expected outcome for a client and a server with these revisions.
///
/// `2026-07-28 basic/versioning#compatibility-matrix` and `2025-11-25 basic/lifecycle#version-negotiation`: a common
/// revision without handshake wins. Otherwise the client requests its newest version with a handshake, the server
/// answers with it or with its own newest, and a client that does not support the answer disconnects.
#[must_use]
pub fn expected_outcome(client: RevisionSet, server: RevisionSet) -> Outcome {
    if client.contains(MODERN) && server.contains(MODERN) {
        return Outcome::Agreed(MODERN);
    }
    let newest = |set: RevisionSet| LEGACY.into_iter().rev().find(|r| set.contains(*r));
    let (Some(asked), Some(fallback)) = (newest(client), newest(server)) else {
        return Outcome::Failed;
    };
    let answered = if server.contains(asked) {
        asked
    } else {
        fallback
    };
    if client.contains(answered) {
        Outcome::Agreed(answered)
    } else {
        Outcome::Failed
    }
}

/// Returns whether the side may send the method as a message of this kind.
#[must_use]
pub fn may_send(
    revision: Revision,
    client: &Caps,
    server: &Caps,
    sender: Side,
    kind: Kind,
    method: &str,
) -> bool {
    let column = revision as usize;
    let Some(row) = TABLE.iter().find(|row| row.method == method) else {
        return false;
    };
    let is_sender = match row.by[column] {
        By::Neither => false,
        By::Client => sender == Side::Client,
        By::Server => sender == Side::Server,
        By::Both => true,
    };
    let declares = |side: Side, path: &str| match side {
        Side::Client => client.counts(side, path, revision),
        Side::Server => server.counts(side, path, revision),
    };
    let is_declared = match row.needs[column] {
        Needs::Nothing => true,
        Needs::Of(side, path) => declares(side, path),
        Needs::PromptsOrResources => {
            declares(Side::Server, "prompts") || declares(Side::Server, "resources")
        }
        Needs::OfReceiver(path) => declares(sender.peer(), path),
        Needs::OfSender(path) => declares(sender, path),
        Needs::TasksExtension => client.has_tasks_extension() && server.has_tasks_extension(),
    };
    row.kind == kind && is_sender && is_declared
}

/// Names of all methods, and of some undefined ones.
#[must_use]
pub fn method_names() -> Vec<&'static str> {
    const STRANGE: [&str; 4] = ["tools/lost", "notifications/made/up", "", "ini\"tialize"];
    TABLE.iter().map(|row| row.method).chain(STRANGE).collect()
}

/// A member of the parameters that needs a capability of its own under 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The method.
    pub method: &'static str,
    /// Text in the parameters that identifies the extra.
    pub mark: &'static str,
    /// Side that declares the capability.
    pub owner: Side,
    /// Path of the capability.
    pub path: &'static str,
}

const EXTRAS: [Extra; 8] = [
    extra(
        "tools/call",
        "\"task\":",
        Side::Server,
        "tasks.requests.tools.call",
    ),
    extra(
        "sampling/createMessage",
        "\"tools\":",
        Side::Client,
        "sampling.tools",
    ),
    extra(
        "sampling/createMessage",
        "\"toolChoice\":",
        Side::Client,
        "sampling.tools",
    ),
    extra(
        "sampling/createMessage",
        "\"allServers\"",
        Side::Client,
        "sampling.context",
    ),
    extra(
        "sampling/createMessage",
        "\"task\":",
        Side::Client,
        "tasks.requests.sampling.createMessage",
    ),
    extra(
        "elicitation/create",
        "\"mode\":\"url\"",
        Side::Client,
        "elicitation.url",
    ),
    extra(
        "elicitation/create",
        "\"mode\":\"form\"",
        Side::Client,
        "elicitation.form",
    ),
    extra(
        "elicitation/create",
        "\"task\":",
        Side::Client,
        "tasks.requests.elicitation.create",
    ),
];

const fn extra(method: &'static str, mark: &'static str, owner: Side, path: &'static str) -> Extra {
    Extra {
        method,
        mark,
        owner,
        path,
    }
}

/// Returns whether the parameters of a request use only declared capabilities.
///
/// `2025-11-25 client/elicitation`, `client/sampling` and `basic/utilities/tasks`. Earlier revisions have one
/// elicitation mode and no tasks; in the later one these are not messages.
#[must_use]
pub fn may_carry(
    revision: Revision,
    client: &Caps,
    server: &Caps,
    method: &str,
    params: Option<&str>,
) -> bool {
    if revision != Revision::V2025_11_25 {
        let is_url = params.is_some_and(|p| p.contains("\"mode\":\"url\""));
        let is_elicitation = method == "elicitation/create";
        return !(revision == Revision::V2025_06_18 && is_elicitation && is_url);
    }
    let params = params.unwrap_or("{}");
    let declares = |side: Side, path: &str| match side {
        Side::Client => client.counts(side, path, revision),
        Side::Server => server.counts(side, path, revision),
    };
    let names_no_mode = method == "elicitation/create" && !params.contains("\"mode\":");
    if names_no_mode && !declares(Side::Client, "elicitation.form") {
        return false;
    }
    EXTRAS
        .iter()
        .filter(|e| e.method == method && params.contains(e.mark))
        .all(|e| declares(e.owner, e.path))
}
