//! What several servers declare together.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Capability, Extension, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// What a client can rely on over all servers.
///
/// The lists are the gateway's own, and their changes can always be told: servers come and go, and what a legacy
/// client is told at first holds for its whole session. A list of which no server has anything is an empty one.
/// Everything else is there as far as a server is known to have it. Extensions and experimental keys stay behind:
/// nobody could say whose they are. Tasks are told apart by their names, so they are shown in the form that the
/// client knows.
pub(crate) fn union<'a>(known: impl IntoIterator<Item = &'a CapabilitySet>) -> CapabilitySet {
    use Capability::{Completions, Logging, ResourcesSubscribe};
    let others = [ResourcesSubscribe, Completions, Logging];
    let known: Vec<&CapabilitySet> = known.into_iter().collect();
    let mut extensions = known.iter().flat_map(|set| set.extensions());
    let extends_tasks = extensions.any(|(id, _)| id == Extension::Tasks.id());
    let declared: Vec<_> = known.iter().map(|set| set.declared()).collect();
    let has = |row: &Capability| declared.iter().any(|bits| bits.has(*row));
    let others = others.into_iter().chain(TASKS).filter(has);
    let plain = CapabilitySet::declaring(Side::Server, LISTS.into_iter().chain(others));
    if extends_tasks {
        with_extension(&plain, Extension::Tasks)
    } else {
        plain
    }
}

/// What the gateway makes of all servers.
const LISTS: [Capability; 6] = [
    Capability::Tools,
    Capability::ToolsListChanged,
    Capability::Prompts,
    Capability::PromptsListChanged,
    Capability::Resources,
    Capability::ResourcesListChanged,
];

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

    /// AG-02: the union of what can be routed, and nothing else.
    #[test]
    fn what_nobody_declares_is_left_out() {
        let a = set(r#"{"tools":{"listChanged":true},"experimental":{"x":{}}}"#);
        let b = set(r#"{"tools":{},"completions":{},"extensions":{"a/b":{}}}"#);
        let merged = union([&a, &b]);
        let has = |path: &str| merged.has(path);
        assert!(has("tools") && has("completions"));
        assert!(!has("resources.subscribe") && !has("logging"));
        assert_eq!(
            merged.extensions().count() + merged.experimental().count(),
            0
        );
    }

    /// Tasks are shown in the form that a client knows, as far as a server has them.
    #[test]
    fn tasks_are_declared_in_either_form() {
        let core = set(r#"{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#);
        let merged = union([&core, &set("{}")]);
        assert!(merged.has("tasks.requests.tools.call") && merged.has("tasks.cancel"));
        assert!(!merged.has("tasks.list"));
        let extension = set(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
        let merged = union([&set("{}"), &extension]);
        let shown: Vec<_> = merged.extensions().map(|(id, _)| id).collect();
        assert_eq!(shown, [Extension::Tasks.id()]);
        assert!(merged.has("tools") && !merged.has("tasks"));
    }

    /// Of servers that are still to come nothing is promised but that they will be listed, whoever is there.
    #[test]
    fn what_may_come_can_be_told_of() {
        let tools = set(r#"{"tools":{}}"#);
        for known in [&[][..], &[&tools]] {
            let merged = union(known.iter().copied());
            for list in ["tools", "prompts", "resources"] {
                assert!(merged.has(list) && merged.has(&format!("{list}.listChanged")));
            }
            assert_eq!(merged.declared().iter().count(), LISTS.len());
        }
    }
}
