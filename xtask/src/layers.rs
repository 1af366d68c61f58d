//! Layers of the workspace: the order of the crates, the dependencies of the pure ones, and the order of the modules of
//! the gateway.

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

/// Dependencies of serde, `serde_json`, thiserror and wide without the standard library. The proc-macro
/// crates run in the compiler only.
const PARSING: &[&str] = &[
    "base64",
    "bytemuck",
    "itoa",
    "memchr",
    "proc-macro2",
    "quote",
    "safe_arch",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "wide",
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

/// Layers of the modules of a crate.
pub(crate) struct ModuleLayers {
    /// Source directory of the crate.
    pub(crate) folder: &'static str,
    /// Layers, the lowest first. A module may use its own layer and those above it in this list.
    ///
    /// A name stands for the module with its submodules, except those that are listed themselves. The modules of one
    /// layer may use each other. Only paths are checked, not the methods of values.
    pub(crate) layers: &'static [&'static [&'static str]],
    pub(crate) exceptions: &'static [Exception],
}

/// Permitted use of a higher layer.
pub(crate) struct Exception {
    pub(crate) module: &'static str,
    /// Module or item of the higher layer.
    pub(crate) uses: &'static str,
    pub(crate) why: &'static str,
}

/// Modules of the gateway.
pub(crate) const GATEWAY: ModuleLayers = ModuleLayers {
    folder: "crates/mcpact-gateway/src",
    layers: &[
        &["sync"],
        &["aggregate::list_kind", "reason"],
        &[
            "drain",
            "event_history",
            "loop_detection",
            "metrics",
            "pins",
            "retry",
            "target",
        ],
        // Pure: names, URIs, task ids and pages of several servers as one.
        &[
            "aggregate::capabilities",
            "aggregate::instructions",
            "aggregate::list_defects",
            "aggregate::merge",
            "aggregate::name_registry",
            "aggregate::name_table",
            "aggregate::rewrite",
            "aggregate::task_ids",
            "aggregate::tool_search",
            "aggregate::uri_table",
        ],
        &["error"],
        &["approval", "cache"],
        &["meaning"],
        &["filters"],
        &["supervisor"],
        &["connect", "lists::scope"],
        &[
            "connection",
            "downstream::sink",
            "lists::watch",
            "subscriptions::log_levels",
            "subscriptions::reopen",
            "subscriptions::subscribers",
            "upstream::info",
        ],
        // One server and its clients. The server owns the state of its tasks, subscriptions and suspended calls, and
        // they use it.
        &[
            "downstream",
            "exchange",
            "handover",
            "lists::bindings",
            "lists::pages",
            "lists::server_list",
            "result_limit",
            "subscriptions",
            "suspended",
            "tasks",
            "upstream",
        ],
        &["pipeline", "upstream::single_server"],
        // Several servers as one.
        &[
            "aggregate",
            "downstream::client",
            "handover::removed",
            "handover::subscriptions",
            "lists",
            "subscriptions::aggregate_listen",
            "subscriptions::list_changes",
            "subscriptions::watched_uris",
            "tasks::aggregate_tasks",
        ],
        &["control", "gateway"],
    ],
    exceptions: &[
        Exception {
            module: "connection",
            uses: "tasks::same_era",
            why: "a connection holds the tasks of its server, and passes on their questions and notifications",
        },
        Exception {
            module: "connection",
            uses: "tasks::mapped::Mapping",
            why: "a connection keeps the server awake while tasks run",
        },
        Exception {
            module: "connection",
            uses: "tasks::waiting::ToolTasks",
            why: "a connection reports that the tool list has changed",
        },
        Exception {
            module: "connection",
            uses: "subscriptions::listen",
            why: "a connection passes on the notifications of its subscriptions",
        },
        Exception {
            module: "connection::slot",
            uses: "lists::own::OwnListChanges",
            why: "counter of list changes, to be moved to `connection`",
        },
        Exception {
            module: "connection::state_lost",
            uses: "upstream::binding::ServerBinding",
            why: "methods of the binding, to be moved to `upstream`",
        },
        Exception {
            module: "connection::ownership",
            uses: "exchange::Exchange",
            why: "method of the exchange, to be moved to `exchange`",
        },
        Exception {
            module: "lists::watch",
            uses: "lists::pages",
            why: "`own_stamp`, to be moved to `connection`",
        },
        Exception {
            module: "subscriptions::subscribers",
            uses: "subscriptions::listen",
            why: "the streams of a connection, to be moved to `subscribers`",
        },
        Exception {
            module: "upstream::saved_client",
            uses: "pipeline",
            why: "a client that is bound later gets its saved log level by a request",
        },
        Exception {
            module: "downstream",
            uses: "downstream::client::DownstreamClient",
            why: "the library keeps one type of state per client, for both kinds of backend",
        },
        Exception {
            module: "downstream::sink",
            uses: "downstream::ClientState",
            why: "the session of the library holds the state of the client",
        },
    ],
};

/// Position of a crate in [`LAYERS`].
pub(crate) fn position(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.name == name)
}

/// Returns `true` for the name of a workspace crate.
pub(crate) fn is_ours(name: &str) -> bool {
    name == "mcpact" || name.starts_with("mcpact-")
}
