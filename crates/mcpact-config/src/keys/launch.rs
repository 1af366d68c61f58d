//! What every program is started with.

use super::{Key, text, text_table, texts};

pub(super) const COMMAND: Key = text(
    "command",
    "The program to start: a name that is looked up in `PATH`, or a path. There is no shell.",
);

pub(super) const ARGS: Key = texts("args", "Its arguments, each as it is.");

pub(super) const ENV: Key = text_table(
    "env",
    "Its variables, besides those that every server gets: `PATH`, `HOME`, `LANG`, `TZ`, `TERM`.",
);

pub(super) const ENV_FILE: Key = text(
    "env_file",
    "A file with lines `NAME=value`, for more of them; `env` wins.",
);

pub(super) const INHERIT: Key = texts(
    "inherit",
    "Names of variables that it gets from the gateway, if they are set.",
);

pub(super) const CWD: Key = text(
    "cwd",
    "Where it runs; a relative path starts at the folder of the config.",
);
