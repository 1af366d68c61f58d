//! A capability document as a set of paths.

use std::collections::BTreeSet;

use mcpact_spec::{Revision, Side};

/// Form of a path in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// As `{}`.
    Object,
    /// As `true`.
    True,
}

struct Row {
    owner: Side,
    path: &'static str,
    written: Written,
    /// In which revisions it means something, oldest first.
    known: [bool; 5],
}

const Y: bool = true;
const N: bool = false;
const ALWAYS: [bool; 5] = [true; 5];
const FOURTH: [bool; 5] = [N, N, N, Y, N];
const SINCE_FOURTH: [bool; 5] = [N, N, N, Y, Y];

const fn row(owner: Side, path: &'static str, written: Written, known: [bool; 5]) -> Row {
    Row {
        owner,
        path,
        written,
        known,
    }
}

use Side::{Client, Server};
use Written::{Object, True};

const TABLE: &[Row] = &[
    row(Client, "roots", Object, ALWAYS),
    row(Client, "roots.listChanged", True, [Y, Y, Y, Y, N]),
    row(Client, "sampling", Object, ALWAYS),
    row(Client, "sampling.tools", Object, SINCE_FOURTH),
    row(Client, "sampling.context", Object, SINCE_FOURTH),
    row(Client, "elicitation", Object, [N, N, Y, Y, Y]),
    row(Client, "elicitation.form", Object, SINCE_FOURTH),
    row(Client, "elicitation.url", Object, SINCE_FOURTH),
    row(Client, "tasks", Object, FOURTH),
    row(Client, "tasks.list", Object, FOURTH),
    row(Client, "tasks.cancel", Object, FOURTH),
    row(
        Client,
        "tasks.requests.sampling.createMessage",
        Object,
        FOURTH,
    ),
    row(Client, "tasks.requests.elicitation.create", Object, FOURTH),
    row(Server, "logging", Object, ALWAYS),
    row(Server, "completions", Object, [N, Y, Y, Y, Y]),
    row(Server, "prompts", Object, ALWAYS),
    row(Server, "prompts.listChanged", True, ALWAYS),
    row(Server, "resources", Object, ALWAYS),
    row(Server, "resources.subscribe", True, ALWAYS),
    row(Server, "resources.listChanged", True, ALWAYS),
    row(Server, "tools", Object, ALWAYS),
    row(Server, "tools.listChanged", True, ALWAYS),
    row(Server, "tasks", Object, FOURTH),
    row(Server, "tasks.list", Object, FOURTH),
    row(Server, "tasks.cancel", Object, FOURTH),
    row(Server, "tasks.requests.tools.call", Object, FOURTH),
];

/// Declared capabilities of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    paths: BTreeSet<&'static str>,
    tasks_extension: bool,
}

impl Caps {
    /// The paths of one side; the position of each is its bit in [`Caps::of_bits`].
    #[must_use]
    pub fn paths_of(owner: Side) -> Vec<&'static str> {
        let own = TABLE.iter().filter(|row| row.owner == owner);
        own.map(|row| row.path).collect()
    }

    /// Capabilities from bits; the bit after the last path is the tasks extension.
    #[must_use]
    pub fn of_bits(owner: Side, bits: u32) -> Self {
        let all = Self::paths_of(owner);
        let is_set = |at: usize| bits >> at & 1 == 1;
        Self {
            tasks_extension: is_set(all.len()),
            paths: (0..all.len())
                .filter(|at| is_set(*at))
                .map(|at| all[at])
                .collect(),
        }
    }

    /// The same without a path and what is below it, or with it.
    #[must_use]
    pub fn toggled(&self, path: &'static str) -> Self {
        let mut other = self.clone();
        if self.mentions(path) {
            let is_below = |own: &str| own == path || below(own, path);
            other.paths.retain(|own| !is_below(own));
        } else {
            other.paths.insert(path);
        }
        other
    }

    /// Returns whether the tasks extension is declared.
    #[must_use]
    pub const fn has_tasks_extension(&self) -> bool {
        self.tasks_extension
    }

    /// Returns whether the document contains the path, itself or as a parent.
    #[must_use]
    pub fn mentions(&self, path: &str) -> bool {
        self.paths
            .iter()
            .any(|own| *own == path || below(own, path))
    }

    /// Returns whether the path is declared and has a meaning in the revision.
    ///
    /// An `elicitation` without a mode means forms; one with URLs only means nothing in a revision that has only forms.
    #[must_use]
    pub fn counts(&self, owner: Side, path: &str, revision: Revision) -> bool {
        let has_url = self.mentions("elicitation.url");
        let has_form =
            self.mentions("elicitation.form") || (self.mentions("elicitation") && !has_url);
        if owner == Client && path == "elicitation.form" && revision >= Revision::V2025_06_18 {
            return has_form;
        }
        if owner == Client && path == "elicitation" && revision == Revision::V2025_06_18 {
            return has_form;
        }
        let row = TABLE
            .iter()
            .find(|row| row.owner == owner && row.path == path);
        row.is_some_and(|row| row.known[revision as usize]) && self.mentions(path)
    }

    /// The document.
    #[must_use]
    pub fn document(&self) -> String {
        let mut root = serde_json::Map::new();
        for path in &self.paths {
            let row = TABLE.iter().find(|row| row.path == *path);
            let is_true = row.is_some_and(|row| row.written == True);
            insert(&mut root, path, is_true);
        }
        if self.tasks_extension {
            let settings = serde_json::json!({"io.modelcontextprotocol/tasks": {}});
            root.insert("extensions".to_owned(), settings);
        }
        serde_json::Value::Object(root).to_string()
    }
}

fn below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.starts_with('.'))
}

fn insert(into: &mut serde_json::Map<String, serde_json::Value>, path: &str, is_true: bool) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    if rest.is_empty() && is_true {
        into.insert(head.to_owned(), serde_json::Value::Bool(true));
        return;
    }
    let child = into
        .entry(head)
        .or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    if let (serde_json::Value::Object(child), false) = (child, rest.is_empty()) {
        insert(child, rest, is_true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_nest_and_parents_are_mentioned() {
        let mut caps = Caps::default();
        caps.paths.insert("resources.subscribe");
        caps.paths.insert("tasks.requests.tools.call");
        assert_eq!(
            caps.document(),
            r#"{"resources":{"subscribe":true},"tasks":{"requests":{"tools":{"call":{}}}}}"#
        );
        assert!(caps.mentions("resources") && caps.mentions("tasks"));
        assert!(!caps.mentions("tasks.list"));
        assert!(!caps.toggled("resources").mentions("resources.subscribe"));
    }
}
