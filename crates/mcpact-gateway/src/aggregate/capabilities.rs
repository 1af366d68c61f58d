//! What several servers declare together.

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Side};

/// What a client can rely on over all servers.
///
/// A server of which nothing is known yet counts for everything that could be routed to it: what a
/// legacy client is told at first holds for its whole session. Changes of lists can always be told, for
/// servers come and go. Extensions and experimental keys stay behind: nobody could say whose they are.
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
    let declared: Vec<_> = known.into_iter().map(CapabilitySet::declared).collect();
    let is_there = |row: Capability| has_unknown || declared.iter().any(|bits| bits.has(row));
    let changes = [
        (Tools, ToolsListChanged),
        (Prompts, PromptsListChanged),
        (Resources, ResourcesListChanged),
    ];
    let changes = changes.into_iter().filter(|(list, _)| is_there(*list));
    let rows = all.into_iter().filter(|row| is_there(*row));
    CapabilitySet::declaring(Side::Server, rows.chain(changes.map(|(_, change)| change)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_engine::policy::Reading;

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

    /// G5: a server that is still to come may have everything.
    #[test]
    fn what_may_come_is_declared() {
        let merged = union([], true);
        assert!(merged.has("resources.subscribe") && merged.has("prompts.listChanged"));
    }
}
