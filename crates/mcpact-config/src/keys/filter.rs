//! One filter.

use super::{Key, choices, count, flag, launch, seconds, texts};

/// The keys of `[filters.NAME]`.
pub const FILTER: &[Key] = &[
    launch::COMMAND,
    launch::ARGS,
    launch::ENV,
    launch::ENV_FILE,
    launch::INHERIT,
    launch::CWD,
    count(
        "order",
        [0, 1_000],
        100,
        "Filters with smaller numbers are asked first, those with the same one by name.",
    ),
    choices(
        "on",
        &["request", "response"],
        "What it is shown, out of `request` and `response`; empty means both.",
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
