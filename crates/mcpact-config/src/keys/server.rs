//! Keys of a server.

use mcpact_spec::Revision;

use super::Kind::{
    Choice, Choices, Count, Counts, Flag, Seconds, Table, Text, TextTable, Texts, TextsTable,
};
use super::{ANSWERS, Key, SANDBOXES, key};

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
    COMMAND,
    ARGS,
    ENV,
    ENV_FILE,
    INHERIT,
    CWD,
    key(
        "no_new_privileges",
        Flag(false),
        "Prevent its processes from gaining privileges, for example through setuid programs (Linux only).",
    ),
    key(
        "max_open_files",
        Count([0, 1_000_000], 0),
        "Maximum number of open files per process (Linux only); 0 means the limit of the gateway.",
    ),
    key(
        "max_memory_mb",
        Count([0, 1_000_000], 0),
        "Maximum address space per process in MiB (Linux only); 0 means unlimited. Some runtimes reserve much more than they use.",
    ),
    key(
        "sandbox",
        Choice(SANDBOXES, "off"),
        "Sandbox of its processes (Linux only): `off`, limited files (`standard`), or limited files and network (`strict`). The default is that of the gateway.",
    ),
    key(
        "allow_read",
        Texts,
        "Files and folders that the sandboxed server can read, besides system, program and working folder.",
    ),
    key(
        "allow_write",
        Texts,
        "Files and folders that the sandboxed server can read and write.",
    ),
    key(
        "allow_ports",
        Counts([1, 65_535]),
        "TCP ports that the server can connect to with `sandbox = \"strict\"`, such as 443.",
    ),
    key("url", Text(None), "URL of an HTTP server."),
    key("headers", TextTable, "Headers of every request."),
    key(
        "proxy",
        Text(Some("system")),
        "Proxy for its `url`: `system` follows `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, `disabled` connects directly, and the URL of a proxy (`http`, `https` or `socks5`) uses that one.",
    ),
    key(
        "no_proxy",
        Texts,
        "Hosts, domains and networks that the proxy of `proxy` is not used for, such as `10.0.0.0/8`.",
    ),
    key(
        "builtin",
        Text(None),
        "Name of a built-in server: `everything`.",
    ),
    key("enabled", Flag(true), "Serve this server."),
    key(
        "tags",
        Texts,
        "Tags that clients select servers by: `/tags/TAG/mcp`.",
    ),
    key(
        "prefix",
        Text(None),
        "Prefix of its tool names, instead of the server name.",
    ),
    key(
        "tools",
        Texts,
        "Tools to serve; `*` matches anything. Empty means all.",
    ),
    key(
        "hidden_tools",
        Texts,
        "Tools to hide; `*` matches anything.",
    ),
    key(
        "needs",
        TextsTable,
        "Client capabilities required by tools, such as `{ \"ask_*\" = [\"elicitation\"] }`; other clients can neither see nor call the tool.",
    ),
    key(
        "changed_tools",
        Choice(&["warn", "hide", "serve"], "warn"),
        "Treatment of a tool whose definition has changed since it was first seen: serve it with a warning (`warn`), hide it until `mcpact approve --tools` (`hide`), or `serve` it. A config that was found instead of passed with `--config` has the default `hide`.",
    ),
    key(
        "era",
        Choice(&ERAS, "auto"),
        "Protocol era: `auto` probes the server, `legacy` uses the handshake, `modern` does not. A revision such as `2025-11-25` allows that one only.",
    ),
    key(
        "require",
        Texts,
        "Capabilities required from the server, such as `tools`.",
    ),
    key(
        "declare",
        Texts,
        "Client capabilities declared to a `singleton`, such as `roots`. Default: none.",
    ),
    key(
        "answers",
        Table(ANSWERS),
        "Default answers for this server; replaces all of `[gateway.answers]`.",
    ),
    key(
        "public_results",
        Flag(false),
        "Allow caches to share results that the server marks `public`, at its own URL; otherwise they are `private`.",
    ),
    key(
        "strategy",
        Choice(STRATEGIES, "stateless"),
        "Sharing of instances: all clients share several (`stateless`), one per client (`stateful`), shared and never stopped when idle (`persistent`), or one for all clients (`singleton`).",
    ),
    key(
        "idle_seconds",
        Seconds([0.0, DAY], 300.0),
        "Idle time before an instance is stopped; 0 stops it at once. Its lists are still served, from a cache.",
    ),
    key(
        "max_concurrent",
        Count([1, 10_000], 8),
        "Maximum number of concurrent calls per instance.",
    ),
    key(
        "max_instances",
        Count([1, 1_000], 4),
        "Maximum number of running instances.",
    ),
    key(
        "max_input_waits",
        Count([0, 1_000], 16),
        "Maximum number of further instances whose calls wait for the input of modern clients.",
    ),
    key(
        "input_grace_seconds",
        Seconds([0.05, DAY], 60.0),
        "Time after which a call that waits for input is ended, if more than `max_input_waits` instances wait and other calls are queued.",
    ),
    key(
        "min_ready",
        Count([0, 1_000], 0),
        "Number of instances kept running without calls.",
    ),
    key(
        "queue",
        Count([0, 100_000], 64),
        "Maximum number of queued calls; further calls are rejected.",
    ),
    key(
        "queue_seconds",
        Seconds([0.05, 3600.0], 30.0),
        "Maximum time of a call in the queue, also while the server restarts.",
    ),
    key(
        "start_seconds",
        Seconds([0.05, 3600.0], 60.0),
        "Timeout of a start, including negotiation.",
    ),
    key(
        "call_seconds",
        Seconds([0.05, DAY], 600.0),
        "Timeout of a call, including requests to the client.",
    ),
    key(
        "max_result_bytes",
        Count([0, 1_000_000_000], 0),
        "Maximum size of the result of a call, at least 1024; 0 means unlimited. Longer text is cut and kept for ten minutes as a resource of the caller; other content is not cut but refused.",
    ),
    key(
        "drain_seconds",
        Seconds([0.0, 3600.0], 10.0),
        "Time for running calls to finish when an instance is stopped.",
    ),
    key(
        "session_seconds",
        Seconds([0.0, DAY], 1800.0),
        "Time a `stateful` instance is kept after the last request of its client, instead of `idle_seconds`; 0 means no limit. It stops earlier if the client's session or connection ends.",
    ),
    key(
        "health",
        Text(Some("auto")),
        "Health check: `auto`, `off`, `ping`, `discover`, `tool:NAME` or `resource:URI`. While calls are running, the last two are replaced by `auto`.",
    ),
    key(
        "health_seconds",
        Seconds([0.05, DAY], 30.0),
        "Interval of health checks.",
    ),
    key(
        "health_failures",
        Count([1, 100], 3),
        "Consecutive failed checks after which an instance is failed.",
    ),
    key(
        "health_errors",
        Choice(&["pass", "fail"], "pass"),
        "Result of a check if the server answers `ping` or `server/discover` with an error: `pass`, because the server is alive, or `fail`.",
    ),
    key(
        "backoff_seconds",
        Seconds([0.01, 3600.0], 1.0),
        "Backoff after a failed start, or an end before the first answer; it doubles with every failure. A server that has answered is restarted at once.",
    ),
    key(
        "backoff_max_seconds",
        Seconds([0.01, DAY], 60.0),
        "Maximum backoff.",
    ),
    key(
        "failures",
        Count([1, 1_000], 5),
        "Failed starts and ends before the first answer within `failure_seconds` that suspend the server.",
    ),
    key(
        "failure_seconds",
        Seconds([0.05, DAY], 120.0),
        "Time during which a failure counts.",
    ),
    key(
        "suspend_seconds",
        Seconds([0.05, DAY], 60.0),
        "Time a suspended server is not started; it doubles with every failed attempt, up to 16 times.",
    ),
];

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
