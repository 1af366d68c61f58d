//! Keys of commands and filters.

use super::Kind::{Choices, Count, Flag, Seconds, Text, TextTable, Texts};
use super::{Key, key};

pub(super) const COMMAND: Key = key(
    "command",
    Text(None),
    "Program to start: a path, or a name to look up in `PATH`. Runs without a shell.",
);

pub(super) const ARGS: Key = key("args", Texts, "Arguments, passed unchanged.");

pub(super) const ENV: Key = key(
    "env",
    TextTable,
    "Environment variables, besides `PATH`, `HOME`, `LANG`, `TZ` and `TERM`, which every server inherits.",
);

pub(super) const ENV_FILE: Key = key(
    "env_file",
    Text(None),
    "File with more variables, as lines `NAME=value`; `env` wins.",
);

pub(super) const INHERIT: Key = key(
    "inherit",
    Texts,
    "Names of variables to inherit from the gateway, if set.",
);

pub(super) const CWD: Key = key(
    "cwd",
    Text(None),
    "Working directory; a relative path starts at the folder of the config.",
);

/// Keys of `[filters.NAME]`.
pub const FILTER: &[Key] = &[
    COMMAND,
    ARGS,
    ENV,
    ENV_FILE,
    INHERIT,
    CWD,
    key(
        "order",
        Count([0, 1_000], 100),
        "Order of execution: smaller numbers run first, equal ones by name.",
    ),
    key(
        "on",
        Choices(&["request", "response"]),
        "Inspected stages: `request`, `response`. Empty means both.",
    ),
    key(
        "methods",
        Texts,
        "Inspected methods, such as `tools/call`; `*` matches anything. Empty means all.",
    ),
    key(
        "required",
        Flag(true),
        "Reject requests while the filter is unavailable; otherwise they pass.",
    ),
    key(
        "seconds",
        Seconds([0.01, 600.0], 5.0),
        "Timeout of a decision, including time in the queue.",
    ),
];
