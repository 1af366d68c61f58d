//! Capabilities of the aggregated server.

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Extension, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// Returns the capabilities that the gateway declares for these servers.
///
/// Lists and their change notifications are always declared: servers may be added later, and a legacy client learns the
/// capabilities once per session. A list without items is empty. Other capabilities are declared if a server is known to
/// have them. Extensions and experimental keys are left out, since requests could not be routed; tasks are routed by
/// their ids.
pub(crate) fn union<'a>(known: impl IntoIterator<Item = &'a CapabilitySet>) -> CapabilitySet {
    let known: Vec<&CapabilitySet> = known.into_iter().collect();
    let mut extensions = known.iter().flat_map(|set| set.extensions());
    let extends_tasks = extensions.any(|(id, _)| id == Extension::Tasks.id());
    let has = |row: &Capability| known.iter().any(|set| set.declared().has(*row));
    let others = OTHER_CAPABILITIES.into_iter().filter(has);
    let plain = CapabilitySet::declaring(Side::Server, LIST_CAPABILITIES.into_iter().chain(others));
    if !extends_tasks {
        return plain;
    }
    let members = Object::parse(plain.raw()).unwrap_or_default();
    let tasks = ObjectWriter::new().raw(Extension::Tasks.id(), "{}");
    let out = members.keep(|_| true).raw("extensions", &tasks.finish());
    CapabilitySet::lenient(Side::Server, Some(&out.finish()))
}

/// Capabilities that the gateway provides itself.
const LIST_CAPABILITIES: [Capability; 6] = [
    Capability::Tools,
    Capability::ToolsListChanged,
    Capability::Prompts,
    Capability::PromptsListChanged,
    Capability::Resources,
    Capability::ResourcesListChanged,
];

/// Capabilities that the gateway provides if a server has them.
const OTHER_CAPABILITIES: [Capability; 7] = [
    Capability::ResourcesSubscribe,
    Capability::Completions,
    Capability::Logging,
    Capability::ServerTasks,
    Capability::ServerTasksList,
    Capability::ServerTasksCancel,
    Capability::ServerTasksToolsCall,
];

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::Reading;

    use super::*;

    fn set(raw: &str) -> CapabilitySet {
        CapabilitySet::parse(Side::Server, Some(raw), Reading::Lenient).unwrap()
    }

    /// AG-02: the union has only capabilities that can be routed.
    #[test]
    fn undeclared_capabilities_are_left_out() {
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

    /// Tasks are declared as capabilities of 2025-11-25 or as an extension.
    #[test]
    fn tasks_are_declared_in_both_forms() {
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

    /// Lists and their change notifications are declared before any server is known.
    #[test]
    fn lists_are_always_declared() {
        let tools = set(r#"{"tools":{}}"#);
        for known in [&[][..], &[&tools]] {
            let merged = union(known.iter().copied());
            for list in ["tools", "prompts", "resources"] {
                assert!(merged.has(list) && merged.has(&format!("{list}.listChanged")));
            }
            assert_eq!(merged.declared().iter().count(), LIST_CAPABILITIES.len());
        }
    }
}
