//! Keys of commands and filters.

use super::{Key, choices, count, flag, seconds, text, text_table, texts};

pub(super) const COMMAND: Key = text(
    "command",
    "Program to start: a path, or a name to look up in `PATH`. Runs without a shell.",
);

pub(super) const ARGS: Key = texts("args", "Arguments, passed unchanged.");

pub(super) const ENV: Key = text_table(
    "env",
    "Environment variables, besides `PATH`, `HOME`, `LANG`, `TZ` and `TERM`, which every server inherits.",
);

pub(super) const ENV_FILE: Key = text(
    "env_file",
    "File with more variables, as lines `NAME=value`; `env` wins.",
);

pub(super) const INHERIT: Key = texts(
    "inherit",
    "Names of variables to inherit from the gateway, if set.",
);

pub(super) const CWD: Key = text(
    "cwd",
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
    count(
        "order",
        [0, 1_000],
        100,
        "Order of execution: smaller numbers run first, equal ones by name.",
    ),
    choices(
        "on",
        &["request", "response"],
        "Inspected stages: `request`, `response`. Empty means both.",
    ),
    texts(
        "methods",
        "Inspected methods, such as `tools/call`; `*` matches anything. Empty means all.",
    ),
    flag(
        "required",
        true,
        "Reject requests while the filter is unavailable; otherwise they pass.",
    ),
    seconds(
        "seconds",
        [0.01, 600.0],
        5.0,
        "Timeout of a decision, including time in the queue.",
    ),
];
