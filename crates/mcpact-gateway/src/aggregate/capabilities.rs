//! Capabilities of the aggregated server.

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Extension, Side};
use mcpact_wire::raw::{Object, ObjectWriter};

/// Returns the capabilities that the gateway declares for these servers.
///
/// Lists and their change notifications are always declared: servers may be added later, and a legacy client learns the
/// capabilities once per session. A list without items is empty. Other capabilities are declared if a server is known to
/// have them. Unknown extensions and experimental keys are left out, since requests could not be routed.
pub(crate) fn union<'a>(known: impl IntoIterator<Item = &'a CapabilitySet>) -> CapabilitySet {
    let known: Vec<&CapabilitySet> = known.into_iter().collect();
    let has = |row: &Capability| known.iter().any(|set| set.declared().has(*row));
    let others = OTHER_CAPABILITIES.into_iter().filter(has);
    let plain = CapabilitySet::declaring(Side::Server, LIST_CAPABILITIES.into_iter().chain(others));
    let mut extensions = ObjectWriter::new();
    let mut is_extended = false;
    for extension in EXTENSIONS {
        let declared = known.iter().flat_map(|set| set.extensions());
        let mut settings = declared.filter(|(id, _)| *id == extension.id()).peekable();
        if settings.peek().is_none() {
            continue;
        }
        is_extended = true;
        // A directory may belong to any of the servers with skills.
        let reads_directories = extension == Extension::Skills && settings.all(reads_directories);
        let settings = match reads_directories {
            true => r#"{"directoryRead":true}"#,
            false => "{}",
        };
        extensions = extensions.raw(extension.id(), settings);
    }
    if !is_extended {
        return plain;
    }
    let members = Object::parse(plain.raw()).unwrap_or_default();
    let out = members
        .keep(|_| true)
        .raw("extensions", &extensions.finish());
    CapabilitySet::lenient(Side::Server, Some(&out.finish()))
}

fn reads_directories((_, settings): (&str, &str)) -> bool {
    let settings = Object::parse(settings).unwrap_or_default();
    settings.get("directoryRead") == Some("true")
}

/// Extensions with requests that can be routed, by their task id or URI.
const EXTENSIONS: [Extension; 3] = [Extension::Tasks, Extension::Ui, Extension::Skills];

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

    /// Directories of skills can be read if every server with skills can read them.
    #[test]
    fn directories_are_declared_if_all_servers_have_them() {
        let id = Extension::Skills.id();
        let skills = |settings: &str| set(&format!(r#"{{"extensions":{{"{id}":{settings}}}}}"#));
        let (none, with, without) = (set("{}"), skills(r#"{"directoryRead":true}"#), skills("{}"));
        for (known, expected) in [
            (vec![&none], None),
            (vec![&with, &none, &with], Some(r#"{"directoryRead":true}"#)),
            (vec![&with, &without], Some("{}")),
        ] {
            let merged = union(known);
            assert_eq!(
                merged.extensions().next(),
                expected.map(|settings| (id, settings))
            );
        }
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
