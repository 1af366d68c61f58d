//! One filter.

use super::{Key, choices, count, flag, seconds, text, text_table, texts};

/// The keys of `[filters.NAME]`.
pub const FILTER: &[Key] = &[
    text(
        "command",
        "The program to start: a name that is looked up in `PATH`, or a path. There is no shell.",
    ),
    texts("args", "Its arguments, each as it is."),
    text_table(
        "env",
        "Its variables, besides those that every server gets: `PATH`, `HOME`, `LANG`, `TZ`, `TERM`.",
    ),
    text(
        "env_file",
        "A file with lines `NAME=value`, for more of them; `env` wins.",
    ),
    texts(
        "inherit",
        "Names of variables that it gets from the gateway, if they are set.",
    ),
    text(
        "cwd",
        "Where it runs; a relative path starts at the folder of the config.",
    ),
    count(
        "order",
        [0, 1_000],
        100,
        "Filters with smaller numbers are asked first, those with the same one by name.",
    ),
    choices(
        "on",
        &["request", "response"],
        "What it is shown; empty means both.",
    ),
    texts(
        "methods",
        "The methods that it is asked about, such as `tools/call`; `*` stands for anything. Empty means all.",
    ),
    flag(
        "required",
        true,
        "Whether a request is refused when the filter cannot be asked; without it, it passes.",
    ),
    seconds(
        "seconds",
        [0.01, 600.0],
        5.0,
        "How long it may take to answer, waiting for its turn included.",
    ),
];
