//! What several servers declare together.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Capability, Extension, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// What a client can rely on over all servers.
///
/// A server of which nothing is known yet counts for everything that could be routed to it: what a
/// legacy client is told at first holds for its whole session. Changes of lists can always be told, for
/// servers come and go. Extensions and experimental keys stay behind: nobody could say whose they are. Tasks
/// are told apart by their names, so they are shown in the form that the client knows.
pub(crate) fn union<'a>(
    known: impl IntoIterator<Item = &'a CapabilitySet>,
    has_unknown: bool,
) -> CapabilitySet {
    use Capability::{
        Completions, Logging, Prompts, PromptsListChanged, Resources, ResourcesListChanged,
        ResourcesSubscribe, Tools, ToolsListChanged,
    };
    let all = [
        Tools,
        Prompts,
        Resources,
        ResourcesSubscribe,
        Completions,
        Logging,
    ];
    let known: Vec<&CapabilitySet> = known.into_iter().collect();
    let mut extensions = known.iter().flat_map(|set| set.extensions());
    let extends_tasks = extensions.any(|(id, _)| id == Extension::Tasks.id());
    let declared: Vec<_> = known.iter().map(|set| set.declared()).collect();
    let is_there = |row: Capability| has_unknown || declared.iter().any(|bits| bits.has(row));
    let changes = [
        (Tools, ToolsListChanged),
        (Prompts, PromptsListChanged),
        (Resources, ResourcesListChanged),
    ];
    let changes = changes.into_iter().filter(|(list, _)| is_there(*list));
    let rows = all.into_iter().filter(|row| is_there(*row));
    let has_tasks = |row: &Capability| declared.iter().any(|bits| bits.has(*row));
    let tasks = TASKS.into_iter().filter(has_tasks);
    let rows = rows.chain(changes.map(|(_, change)| change)).chain(tasks);
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

    /// G5: a server that is still to come may have everything.
    #[test]
    fn what_may_come_is_declared() {
        let merged = union([], true);
        assert!(merged.has("resources.subscribe") && merged.has("prompts.listChanged"));
    }
}
