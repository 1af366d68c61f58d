//! One server.

use mcpact_spec::Revision;

use super::{
    ANSWERS, Key, choice, count, flag, launch, seconds, table, text, text_or, text_table, texts,
    texts_table,
};

/// The server that shows everything that the protocol has.
pub const EVERYTHING: &str = "everything";

/// The servers that are part of mcpact.
pub const BUILTINS: &[&str] = &[EVERYTHING];

const DAY: f64 = 86_400.0;

const MODES: [&str; 3] = ["auto", "legacy", "modern"];

/// The modes, then every revision.
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

/// The keys of `[servers.NAME]`.
pub const SERVER: &[Key] = &[
    launch::COMMAND,
    launch::ARGS,
    launch::ENV,
    launch::ENV_FILE,
    launch::INHERIT,
    launch::CWD,
    flag(
        "no_new_privileges",
        false,
        "Whether it, and whatever it starts, can get no rights that it does not have, by setuid programs for example; on Linux.",
    ),
    count(
        "max_open_files",
        [0, 1_000_000],
        0,
        "How many files each of its processes may have open, on Linux; 0 means as many as the gateway's.",
    ),
    count(
        "max_memory_mb",
        [0, 1_000_000],
        0,
        "How many MiB of address space each of its processes may have, on Linux; 0 means any number. Some runtimes reserve much more than they use.",
    ),
    text("url", "The address of a server that is reached by HTTP."),
    text_table("headers", "Headers that go with every request."),
    text(
        "builtin",
        "The name of a server that is part of mcpact: `everything`.",
    ),
    flag("enabled", true, "Whether it is served."),
    texts(
        "tags",
        "Words by which clients choose servers: `/tags/WORD/mcp`.",
    ),
    text(
        "prefix",
        "What the names of its tools start with, instead of the name of the server.",
    ),
    texts(
        "tools",
        "The only tools that are served, at every address; `*` stands for anything. Empty means all.",
    ),
    texts(
        "hidden_tools",
        "Tools that are not served, at no address; `*` stands for anything.",
    ),
    texts_table(
        "needs",
        "Client capabilities that tools need, such as `{ \"ask_*\" = [\"elicitation\"] }`; whoever lacks one neither sees nor can call the tool.",
    ),
    choice(
        "changed_tools",
        &["warn", "hide", "serve"],
        "warn",
        "What happens to a tool about which the server says something else than when it was first seen: it is served with a warning in the log (`warn`), it is hidden until `mcpact approve --tools` (`hide`), or it is served (`serve`).",
    ),
    choice(
        "era",
        &ERAS,
        "auto",
        "Protocol era: `auto` probes the server, `legacy` uses the handshake, `modern` does not. A revision such as `2025-11-25` allows that one only.",
    ),
    texts(
        "require",
        "Capabilities that it must have, such as `tools`.",
    ),
    texts(
        "declare",
        "Client capabilities that a `singleton` is told of, such as `roots`; without it, it is told of none.",
    ),
    table(
        "answers",
        ANSWERS,
        "What this server is answered in the place of clients that did not declare that they can be asked, instead of everything in `[gateway.answers]`.",
    ),
    flag(
        "public_results",
        false,
        "Let caches keep for everybody what the server calls `public`, at its own address; without it, it is `private`.",
    ),
    choice(
        "strategy",
        STRATEGIES,
        "stateless",
        "Who shares an instance: everybody (`stateless`), one client each (`stateful`), everybody and it is kept running (`persistent`), everybody and there is only one (`singleton`).",
    ),
    seconds(
        "idle_seconds",
        [0.05, DAY],
        300.0,
        "How long an instance may be idle before it is stopped; its lists are served all the same.",
    ),
    count(
        "max_concurrent",
        [1, 10_000],
        8,
        "How many calls an instance may have at a time.",
    ),
    count(
        "max_instances",
        [1, 1_000],
        4,
        "How many instances may run at a time.",
    ),
    count(
        "min_ready",
        [0, 1_000],
        0,
        "How many instances are kept running even if nobody calls.",
    ),
    count(
        "queue",
        [0, 100_000],
        64,
        "How many calls may wait for an instance; one more is refused at once.",
    ),
    seconds(
        "queue_seconds",
        [0.05, 3600.0],
        30.0,
        "How long a call may wait for an instance.",
    ),
    seconds(
        "start_seconds",
        [0.05, 3600.0],
        60.0,
        "How long it may take to start and to agree on a revision.",
    ),
    seconds(
        "call_seconds",
        [0.05, DAY],
        600.0,
        "How long a call may take, questions to the client included.",
    ),
    seconds(
        "drain_seconds",
        [0.0, 3600.0],
        10.0,
        "How long running calls may take to end when an instance is stopped.",
    ),
    seconds(
        "session_seconds",
        [0.05, DAY],
        1800.0,
        "How long an instance that one client has for itself (`stateful`) is kept after that client's last request, instead of `idle_seconds`; it ends sooner if the client's session or connection does.",
    ),
    text_or(
        "health",
        "auto",
        "How an instance is asked whether it is well: `auto`, `off`, `ping`, `discover`, `tool:NAME` or `resource:URI`; while it has calls, it is asked as with `auto` in place of the last two, and not given another call.",
    ),
    seconds(
        "health_seconds",
        [0.05, DAY],
        30.0,
        "How often it is asked.",
    ),
    count(
        "health_failures",
        [1, 100],
        3,
        "How many bad answers in a row make it failed.",
    ),
    seconds(
        "backoff_seconds",
        [0.01, 3600.0],
        1.0,
        "The pause before a failed server is started again; it doubles with every failure that counts.",
    ),
    seconds(
        "backoff_max_seconds",
        [0.01, DAY],
        60.0,
        "The longest such pause.",
    ),
    count(
        "failures",
        [1, 1_000],
        5,
        "How many failures within `failure_seconds` suspend the server.",
    ),
    seconds(
        "failure_seconds",
        [0.05, DAY],
        120.0,
        "For how long a failure counts.",
    ),
    seconds(
        "suspend_seconds",
        [0.05, DAY],
        60.0,
        "How long a suspended server is left alone before it is tried once more; it doubles each time that fails, up to 16 times as long.",
    ),
];
