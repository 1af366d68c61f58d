//! What several servers declare together.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Capability, Extension, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// What a client can rely on over all servers.
///
/// A server of which nothing is known yet counts for nothing but the lists: what a legacy client is told at
/// first holds for its whole session, and it could not be told of what becomes known later. Changes of lists can
/// always be told, for servers come and go. Extensions and experimental keys stay behind: nobody could say whose they are. Tasks
/// are told apart by their names, so they are shown in the form that the client knows.
pub(crate) fn union<'a>(
    known: impl IntoIterator<Item = &'a CapabilitySet>,
    has_unknown: bool,
) -> CapabilitySet {
    use Capability::{
        Completions, Logging, Prompts, PromptsListChanged, Resources, ResourcesListChanged,
        ResourcesSubscribe, Tools, ToolsListChanged,
    };
    let lists = [Tools, Prompts, Resources];
    let others = [ResourcesSubscribe, Completions, Logging];
    let known: Vec<&CapabilitySet> = known.into_iter().collect();
    let mut extensions = known.iter().flat_map(|set| set.extensions());
    let extends_tasks = extensions.any(|(id, _)| id == Extension::Tasks.id());
    let declared: Vec<_> = known.iter().map(|set| set.declared()).collect();
    let has = |row: &Capability| declared.iter().any(|bits| bits.has(*row));
    let is_there = |row: &Capability| has_unknown || has(row);
    let changes = [
        (Tools, ToolsListChanged),
        (Prompts, PromptsListChanged),
        (Resources, ResourcesListChanged),
    ];
    let changes = changes.into_iter().filter(|(list, _)| is_there(list));
    let lists = lists.into_iter().filter(is_there);
    let others = others.into_iter().chain(TASKS).filter(has);
    let rows = lists.chain(changes.map(|(_, change)| change)).chain(others);
    let plain = CapabilitySet::declaring(Side::Server, rows);
    if extends_tasks {
        with_extension(&plain, Extension::Tasks)
    } else {
        plain
    }
}

/// Tasks of 2025-11-25.
const TASKS: [Capability; 4] = [
    Capability::ServerTasks,
    Capability::ServerTasksList,
    Capability::ServerTasksCancel,
    Capability::ServerTasksToolsCall,
];

fn with_extension(plain: &CapabilitySet, extension: Extension) -> CapabilitySet {
    let members = Object::parse(plain.raw()).unwrap_or_default();
    let entry = ObjectWriter::new().raw(extension.id(), "{}").finish();
    let members = members.iter();
    let out = members.fold(ObjectWriter::new(), |out, (key, raw)| out.raw(key, raw));
    let out = out.raw("extensions", &entry).finish();
    CapabilitySet::parse(Side::Server, Some(&out), Reading::Lenient)
        .unwrap_or_else(|_| plain.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(raw: &str) -> CapabilitySet {
        CapabilitySet::parse(Side::Server, Some(raw), Reading::Lenient).unwrap()
    }

    /// G5, AG-02: the union of what can be routed, and nothing else.
    #[test]
    fn what_nobody_declares_is_left_out() {
        let a = set(r#"{"tools":{"listChanged":true},"experimental":{"x":{}}}"#);
        let b = set(r#"{"tools":{},"completions":{},"extensions":{"a/b":{}}}"#);
        let merged = union([&a, &b], false);
        let has = |path: &str| merged.has(path);
        assert!(has("tools") && has("tools.listChanged") && has("completions"));
        assert!(!has("prompts") && !has("resources") && !has("logging"));
        assert_eq!(
            merged.extensions().count() + merged.experimental().count(),
            0
        );
        assert_eq!(union([], false).declared().iter().count(), 0);
    }

    /// G5: tasks are shown in the form that a client knows, as far as a server has them.
    #[test]
    fn tasks_are_declared_in_either_form() {
        let core = set(r#"{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#);
        let merged = union([&core, &set("{}")], false);
        assert!(merged.has("tasks.requests.tools.call") && merged.has("tasks.cancel"));
        assert!(!merged.has("tasks.list"));
        let extension = set(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
        let merged = union([&set("{}"), &extension], true);
        let shown: Vec<_> = merged.extensions().map(|(id, _)| id).collect();
        assert_eq!(shown, [Extension::Tasks.id()]);
        assert!(merged.has("tools") && !merged.has("tasks"));
    }

    /// G5: of a server that is still to come nothing is promised but that it will be listed.
    #[test]
    fn what_may_come_can_be_told_of() {
        let merged = union([], true);
        assert!(merged.has("tools.listChanged") && merged.has("prompts.listChanged"));
        assert!(!merged.has("resources.subscribe") && !merged.has("completions"));
        assert!(merged.has("resources") && !merged.has("logging"));
    }
}
