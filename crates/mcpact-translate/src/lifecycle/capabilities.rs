//! Capabilities of each side as the other sees them.

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::policy::Policy;
use mcpact_spec::{Capability, Era, Extension, Feature, Revision, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// Features offered on top of the server's own declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    /// Tasks are hosted here, in the form that the client knows.
    pub tasks: bool,
    /// Tasks can be listed: the caller can be told apart from others.
    pub task_list: bool,
    /// The server of 2024-11-05, which has no word for it, is known to complete arguments.
    pub completions: bool,
    /// Several clients use one session of the server: its list of tasks would be shared by all.
    pub shares_session: bool,
}

/// Declaration of a client of revision `from` for a server of revision `to`.
///
/// Only what the client declared, what its revision makes of it, and what can be asked of it.
/// Experimental and unknown keys reach legacy servers as they are; between the eras their messages
/// cannot be translated. While the revision of a legacy server is not known yet, `to` is the newest
/// legacy one.
#[must_use]
pub fn client_capabilities(client: &CapabilitySet, from: Revision, to: Revision) -> CapabilitySet {
    let declared = client.declared();
    let understood = declared.under(from).and(declared.under(to)).and(declared);
    let rows = understood
        .iter()
        .filter(|row| row.owner() == Side::Client && row.presence(to).may_be_sent());
    let opaque = match to.era() {
        Era::Legacy => Opaque::Keep,
        Era::Modern => Opaque::Drop,
    };
    written(rows.collect(), client, opaque, &crossing(client, from, to))
}

/// Treatment of the keys that no table gives a meaning.
#[derive(Clone, Copy)]
enum Opaque {
    Keep,
    Drop,
}

/// The same declaration with the tasks extension, for calls with tasks that are followed here.
#[must_use]
pub fn with_tasks(client: &CapabilitySet) -> CapabilitySet {
    let mut extensions: Vec<_> = client.extensions().collect();
    if !extensions
        .iter()
        .any(|(id, _)| *id == Extension::Tasks.id())
    {
        extensions.push((Extension::Tasks.id(), "{}"));
    }
    written(client.declared(), client, Opaque::Keep, &extensions)
}

/// Declaration to reopen the session with, if the server would misread the one that was `sent`.
///
/// A session begins before its revision is known. `2025-06-18 client/elicitation` takes every
/// declaration of elicitation for one of forms, so a client that can only visit URLs must not seem
/// to have any.
#[must_use]
pub fn without_elicitation(sent: &CapabilitySet, negotiated: Revision) -> Option<CapabilitySet> {
    let declared = sent.declared();
    let is_misread = declared.has(Capability::Elicitation)
        && Capability::Elicitation.presence(negotiated).counts()
        && !declared.under(negotiated).has(Capability::Elicitation);
    is_misread.then(|| {
        let rows = declared
            .without(Capability::Elicitation)
            .without(Capability::ElicitationForm)
            .without(Capability::ElicitationUrl);
        let extensions: Vec<_> = sent.extensions().collect();
        written(rows, sent, Opaque::Keep, &extensions)
    })
}

/// Declaration of a server of revision `from` for a client of revision `to`.
#[must_use]
pub fn server_capabilities(
    server: &CapabilitySet,
    from: Revision,
    to: Revision,
    emulation: Emulation,
) -> CapabilitySet {
    let (document, _) = server.encode(to, &Policy::default());
    let Ok(members) = Object::parse(&document) else {
        return CapabilitySet::empty(Side::Server);
    };
    let tasks = tasks_shown(server, from, to, emulation, members.get("tasks"));
    let own = |key: &str| matches!(key, "tasks" | "extensions" | "completions");
    let mut out = members.keep(|key| !own(key));
    let completes = emulation.completions && !from_has_completions(from);
    let completions = members.get("completions").or(completes.then_some("{}"));
    if Capability::Completions.presence(to).may_be_sent() {
        out = out.maybe_raw("completions", completions);
    }
    out = out.maybe_raw("tasks", tasks.as_deref());
    let mut extensions = crossing(server, from, to);
    if extends_tasks(server, from, to, emulation) {
        extensions.push((Extension::Tasks.id(), "{}"));
    }
    if !extensions.is_empty() {
        out = out.raw("extensions", &settings(&extensions));
    }
    CapabilitySet::lenient(Side::Server, Some(&out.finish()))
}

fn from_has_completions(from: Revision) -> bool {
    Capability::Completions.presence(from).counts()
}

/// Core tasks as they are between peers that both have them, or those that are hosted here.
fn tasks_shown(
    server: &CapabilitySet,
    from: Revision,
    to: Revision,
    emulation: Emulation,
    declared: Option<&str>,
) -> Option<String> {
    let has_tools = server.declared().has(Capability::Tools);
    if !to.has(Feature::TasksCore) {
        return None;
    }
    if from.has(Feature::TasksCore) {
        let members = Object::parse(declared?).unwrap_or_default();
        let has_list = emulation.task_list && !emulation.shares_session;
        let is_own = |key: &str| key != "list" || has_list;
        return Some(members.keep(is_own).finish());
    }
    (from.has(Feature::TasksExtension) && emulation.tasks && has_tools).then(|| {
        let list = emulation.task_list.then_some("{}");
        ObjectWriter::new()
            .maybe_raw("list", list)
            .raw("cancel", "{}")
            .raw("requests", r#"{"tools":{"call":{}}}"#)
            .finish()
    })
}

/// `2026-07-28`: what 2025-11-25 has as a core feature is an extension now.
fn extends_tasks(
    server: &CapabilitySet,
    from: Revision,
    to: Revision,
    emulation: Emulation,
) -> bool {
    emulation.tasks
        && from.has(Feature::TasksCore)
        && to.has(Feature::TasksExtension)
        && server.declared().has(Capability::ServerTasksToolsCall)
}

/// The extensions that may be declared on the other side: those in force on both.
fn crossing(set: &CapabilitySet, from: Revision, to: Revision) -> Vec<(&str, &str)> {
    let crosses =
        |id: &str| Extension::parse(id).is_none_or(|e| e.in_force(from) && e.in_force(to));
    set.extensions().filter(|(id, _)| crosses(id)).collect()
}

/// Declaration of these rows and extensions, with the opaque keys of the client.
fn written(
    rows: CapabilityBits,
    client: &CapabilitySet,
    opaque: Opaque,
    extensions: &[(&str, &str)],
) -> CapabilitySet {
    let rows = rows
        .without(Capability::ClientExperimental)
        .without(Capability::ClientExtensions);
    let plain = CapabilitySet::declaring(Side::Client, rows.iter());
    let document = match opaque {
        Opaque::Keep => Object::parse(client.raw()).unwrap_or_default(),
        Opaque::Drop => Object::default(),
    };
    let opaque: Vec<_> = opaque_keys(client, &document).collect();
    if extensions.is_empty() && opaque.is_empty() {
        return plain;
    }
    let members = Object::parse(plain.raw()).unwrap_or_default();
    let mut out = ObjectWriter::new().members(members.iter().chain(opaque));
    if !extensions.is_empty() {
        out = out.raw("extensions", &settings(extensions));
    }
    CapabilitySet::lenient(Side::Client, Some(&out.finish()))
}

/// `experimental` and the keys that no revision defines, in the document of a client.
pub(super) fn opaque_keys<'a>(
    client: &CapabilitySet,
    document: &'a Object<'_>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_experimental = |key: &str| {
        let row = Capability::ClientExperimental;
        key == row.path() && client.declared().has(row)
    };
    let is_unknown = |key: &str| client.unknown().any(|unknown| unknown == key);
    let is_opaque = move |key: &str| is_experimental(key) || is_unknown(key);
    document.iter().filter(move |(key, _)| is_opaque(key))
}

fn settings(extensions: &[(&str, &str)]) -> String {
    let extensions = extensions.iter().copied();
    ObjectWriter::new().members(extensions).finish()
}

#[cfg(test)]
mod tests;
