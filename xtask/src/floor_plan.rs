//! Which crate stands on which floor.

/// A crate and what it may do.
pub(crate) struct Room {
    /// The name of the crate and of its folder.
    pub(crate) name: &'static str,
    /// What it may stand on.
    pub(crate) floor: Floor,
}

/// How close a crate is to the outside world.
pub(crate) enum Floor {
    /// No clock, no socket, no thread; only these foreign crates below it.
    Pure {
        /// Names of foreign crates, the whole tree.
        foreign: &'static [&'static str],
    },
    /// May touch the world.
    Door,
}

/// What serde, `serde_json` and thiserror bring without the standard library; the proc-macro part
/// runs in the compiler only.
const PARSING: &[&str] = &[
    "base64",
    "itoa",
    "memchr",
    "proc-macro2",
    "quote",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "zmij",
];

/// Every crate of the workspace; a crate may depend only on those above it.
///
/// Dev-dependencies are free: a test may stand on any floor.
pub(crate) const FLOOR_PLAN: &[Room] = &[
    Room {
        name: "mcpact-spec",
        floor: Floor::Pure { foreign: &[] },
    },
    Room {
        name: "mcpact-wire",
        floor: Floor::Pure { foreign: PARSING },
    },
    Room {
        name: "mcpact-engine",
        floor: Floor::Pure { foreign: PARSING },
    },
    Room {
        name: "mcpact-translate",
        floor: Floor::Pure { foreign: PARSING },
    },
    Room {
        name: "mcpact-transport",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-everything",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-config",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-gateway",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-dashboard",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-cli",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-sim",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-fuzzing",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-bench",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-load",
        floor: Floor::Door,
    },
    Room {
        name: "mcpact-faults",
        floor: Floor::Door,
    },
];

/// The position of a crate, counted from the cellar.
pub(crate) fn height(name: &str) -> Option<usize> {
    FLOOR_PLAN.iter().position(|room| room.name == name)
}

/// Whether a crate is one of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name == "mcpact" || name.starts_with("mcpact-")
}
