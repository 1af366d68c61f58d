//! Layers of the workspace: the order of the crates and the dependencies of the pure ones.

/// A crate and its access to the outside world.
pub(crate) struct Layer {
    /// Name of the crate and of its directory.
    pub(crate) name: &'static str,
    pub(crate) access: Access,
}

/// Access of a crate to clock, network, threads and randomness.
pub(crate) enum Access {
    /// None. The listed third-party crates are the whole dependency tree.
    Pure {
        third_party: &'static [&'static str],
    },
    /// Unrestricted.
    Io,
}

/// Dependencies of serde, `serde_json` and thiserror without the standard library. The proc-macro
/// crates run in the compiler only.
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

/// Every crate of the workspace; a crate may depend only on those above it in this list.
///
/// Dev-dependencies are not restricted.
pub(crate) const LAYERS: &[Layer] = &[
    pure("mcpact-spec", &[]),
    pure("mcpact-wire", PARSING),
    pure("mcpact-engine", PARSING),
    pure("mcpact-translate", PARSING),
    io("mcpact-transport"),
    io("mcpact"),
    io("mcpact-everything"),
    io("mcpact-config"),
    io("mcpact-gateway"),
    io("mcpact-cli"),
    io("mcpact-sim"),
    io("mcpact-fuzzing"),
    io("mcpact-bench"),
    io("mcpact-load"),
    io("mcpact-faults"),
];

const fn pure(name: &'static str, third_party: &'static [&'static str]) -> Layer {
    let access = Access::Pure { third_party };
    Layer { name, access }
}

const fn io(name: &'static str) -> Layer {
    let access = Access::Io;
    Layer { name, access }
}

/// Position of a crate in [`LAYERS`].
pub(crate) fn position(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.name == name)
}

/// Returns `true` for the name of a workspace crate.
pub(crate) fn is_ours(name: &str) -> bool {
    name == "mcpact" || name.starts_with("mcpact-")
}
