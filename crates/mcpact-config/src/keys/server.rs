//! Keys of a server.

use mcpact_spec::Revision;

use super::{
    ANSWERS, Key, choice, command, count, flag, seconds, table, text, text_or, text_table, texts,
    texts_table,
};

/// The demo server with all protocol features.
pub const EVERYTHING: &str = "everything";

/// Built-in servers.
pub const BUILTINS: &[&str] = &[EVERYTHING];

const DAY: f64 = 86_400.0;

const MODES: [&str; 3] = ["auto", "legacy", "modern"];

/// Modes and revisions.
const ERAS: [&str; MODES.len() + Revision::COUNT] = {
    let mut all = [""; MODES.len() + Revision::COUNT];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < MODES.len() {
            MODES[at]
        } else {
            Revision::NAMES[at - MODES.len()]
        };
        at += 1;
    }
    all
};

const STRATEGIES: &[&str] = &["stateless", "stateful", "persistent", "singleton"];

/// Keys of `[servers.NAME]`.
pub const SERVER: &[Key] = &[
    command::COMMAND,
    command::ARGS,
    command::ENV,
    command::ENV_FILE,
    command::INHERIT,
    command::CWD,
    flag(
        "no_new_privileges",
        false,
        "Prevent its processes from gaining privileges, for example through setuid programs (Linux only).",
    ),
    count(
        "max_open_files",
        [0, 1_000_000],
        0,
        "Maximum number of open files per process (Linux only); 0 means the limit of the gateway.",
    ),
    count(
        "max_memory_mb",
        [0, 1_000_000],
        0,
        "Maximum address space per process in MiB (Linux only); 0 means unlimited. Some runtimes reserve much more than they use.",
    ),
    text("url", "URL of an HTTP server."),
    text_table("headers", "Headers of every request."),
    text("builtin", "Name of a built-in server: `everything`."),
    flag("enabled", true, "Serve this server."),
    texts(
        "tags",
        "Tags that clients select servers by: `/tags/TAG/mcp`.",
    ),
    text(
        "prefix",
        "Prefix of its tool names, instead of the server name.",
    ),
    texts(
        "tools",
        "Tools to serve; `*` matches anything. Empty means all.",
    ),
    texts("hidden_tools", "Tools to hide; `*` matches anything."),
    texts_table(
        "needs",
        "Client capabilities required by tools, such as `{ \"ask_*\" = [\"elicitation\"] }`; other clients can neither see nor call the tool.",
    ),
    choice(
        "changed_tools",
        &["warn", "hide", "serve"],
        "warn",
        "Treatment of a tool whose definition has changed since it was first seen: serve it with a warning (`warn`), hide it until `mcpact approve --tools` (`hide`), or `serve` it.",
    ),
    choice(
        "era",
        &ERAS,
        "auto",
        "Protocol era: `auto` probes the server, `legacy` uses the handshake, `modern` does not. A revision such as `2025-11-25` allows that one only.",
    ),
    texts(
        "require",
        "Capabilities required from the server, such as `tools`.",
    ),
    texts(
        "declare",
        "Client capabilities declared to a `singleton`, such as `roots`. Default: none.",
    ),
    table(
        "answers",
        ANSWERS,
        "Default answers for this server; replaces all of `[gateway.answers]`.",
    ),
    flag(
        "public_results",
        false,
        "Allow caches to share results that the server marks `public`, at its own URL; otherwise they are `private`.",
    ),
    choice(
        "strategy",
        STRATEGIES,
        "stateless",
        "Sharing of instances: all clients share several (`stateless`), one per client (`stateful`), shared and never stopped when idle (`persistent`), or one for all clients (`singleton`).",
    ),
    seconds(
        "idle_seconds",
        [0.05, DAY],
        300.0,
        "Idle time before an instance is stopped. Its lists are still served, from a cache.",
    ),
    count(
        "max_concurrent",
        [1, 10_000],
        8,
        "Maximum number of concurrent calls per instance.",
    ),
    count(
        "max_instances",
        [1, 1_000],
        4,
        "Maximum number of running instances.",
    ),
    count(
        "min_ready",
        [0, 1_000],
        0,
        "Number of instances kept running without calls.",
    ),
    count(
        "queue",
        [0, 100_000],
        64,
        "Maximum number of queued calls; further calls are rejected.",
    ),
    seconds(
        "queue_seconds",
        [0.05, 3600.0],
        30.0,
        "Maximum time of a call in the queue.",
    ),
    seconds(
        "start_seconds",
        [0.05, 3600.0],
        60.0,
        "Timeout of a start, including negotiation.",
    ),
    seconds(
        "call_seconds",
        [0.05, DAY],
        600.0,
        "Timeout of a call, including requests to the client.",
    ),
    seconds(
        "drain_seconds",
        [0.0, 3600.0],
        10.0,
        "Time for running calls to finish when an instance is stopped.",
    ),
    seconds(
        "session_seconds",
        [0.05, DAY],
        1800.0,
        "Time a `stateful` instance is kept after the last request of its client, instead of `idle_seconds`. It stops earlier if the client's session or connection ends.",
    ),
    text_or(
        "health",
        "auto",
        "Health check: `auto`, `off`, `ping`, `discover`, `tool:NAME` or `resource:URI`. While calls are running, the last two are replaced by `auto`.",
    ),
    seconds(
        "health_seconds",
        [0.05, DAY],
        30.0,
        "Interval of health checks.",
    ),
    count(
        "health_failures",
        [1, 100],
        3,
        "Consecutive failed checks after which an instance is failed.",
    ),
    seconds(
        "backoff_seconds",
        [0.01, 3600.0],
        1.0,
        "Backoff before a failed server is restarted; it doubles with every failure.",
    ),
    seconds("backoff_max_seconds", [0.01, DAY], 60.0, "Maximum backoff."),
    count(
        "failures",
        [1, 1_000],
        5,
        "Failures within `failure_seconds` that suspend the server.",
    ),
    seconds(
        "failure_seconds",
        [0.05, DAY],
        120.0,
        "Time during which a failure counts.",
    ),
    seconds(
        "suspend_seconds",
        [0.05, DAY],
        60.0,
        "Time a suspended server is not started; it doubles with every failed attempt, up to 16 times.",
    ),
];
