//! Goals of the load tests, as data.

/// Measured figure of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Responses per second.
    Rate,
    /// Median latency.
    P50,
    /// Processor time per call.
    Cpu,
    /// Most resident memory under load.
    Peak,
}

/// Baseline of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Against {
    /// Another subject of the contest.
    Subject(&'static str),
    /// The fastest relay of another project.
    FastestPeer,
    /// None: the figure itself counts, in nanoseconds or bytes.
    Nothing,
}

/// Bound of the median over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// One goal of one subject in contests that share it.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) contests: &'static [&'static str],
    pub(super) open: u32,
    pub(super) subject: &'static str,
    pub(super) figure: Figure,
    pub(super) against: Against,
    pub(super) bound: Bound,
}

/// Maximum memory in bytes.
#[derive(Debug)]
pub(super) struct MemoryGoal {
    pub(super) subject: &'static str,
    pub(super) what: &'static str,
    pub(super) bytes: f64,
}

use Against::{FastestPeer, Nothing, Subject};
use Bound::{AtLeast, AtMost};
use Figure::{Cpu, P50, Peak, Rate};

const TO_HTTP: &[&str] = &["relay, HTTP to HTTP, legacy", "relay, HTTP to HTTP, modern"];
const TO_STDIO: &[&str] = &[
    "relay, HTTP to stdio, legacy",
    "relay, HTTP to stdio, modern",
];
const RELAY: &[&str] = &[
    "relay, HTTP to HTTP, legacy",
    "relay, HTTP to HTTP, modern",
    "relay, HTTP to stdio, legacy",
    "relay, HTTP to stdio, modern",
];
const TRANSLATE: &[&str] = &[
    "translate, HTTP to HTTP, legacy to modern",
    "translate, HTTP to HTTP, modern to legacy",
    "translate, HTTP to stdio, legacy to modern",
    "translate, HTTP to stdio, modern to legacy",
];
const ECHO: &[&str] = &[
    "large, HTTP to HTTP, legacy, 1 MiB echo",
    "large, HTTP to HTTP, modern, 1 MiB echo",
    "large, HTTP to stdio, legacy, 1 MiB echo",
    "large, HTTP to stdio, modern, 1 MiB echo",
    "large, HTTP to HTTP, legacy, 10 MiB echo",
    "large, HTTP to HTTP, modern, 10 MiB echo",
    "large, HTTP to stdio, legacy, 10 MiB echo",
    "large, HTTP to stdio, modern, 10 MiB echo",
];
const RESULT: &[&str] = &[
    "large, HTTP to HTTP, legacy, 1 MiB result",
    "large, HTTP to HTTP, modern, 1 MiB result",
];
const SERVERS: &[&str] = &["gateway, call by number of servers"];
const SESSIONS: &[&str] = &["gateway, call by number of idle sessions"];

const fn goal(
    contests: &'static [&'static str],
    open: u32,
    subject: &'static str,
    figure: Figure,
    against: Against,
    bound: Bound,
) -> Goal {
    Goal {
        contests,
        open,
        subject,
        figure,
        against,
        bound,
    }
}

const FLOOR: Against = Subject("floor");

/// All goals but those of memory, in the order of the page.
pub(super) const GOALS: &[Goal] = &[
    goal(TO_HTTP, 32, "bridge", Rate, FLOOR, AtLeast(0.80)),
    goal(TO_HTTP, 32, "serve", Rate, FLOOR, AtLeast(0.72)),
    goal(TO_STDIO, 32, "bridge", Rate, FLOOR, AtLeast(0.70)),
    goal(TO_STDIO, 32, "serve", Rate, FLOOR, AtLeast(0.62)),
    goal(RELAY, 1, "bridge", Cpu, FLOOR, AtMost(1.6)),
    goal(RELAY, 1, "serve", Cpu, FLOOR, AtMost(1.6)),
    goal(RELAY, 1, "bridge", P50, FLOOR, AtMost(1.15)),
    goal(RELAY, 1, "serve", P50, FLOOR, AtMost(1.15)),
    goal(ECHO, 1, "bridge", P50, FLOOR, AtMost(1.8)),
    goal(ECHO, 1, "serve", P50, FLOOR, AtMost(1.8)),
    goal(RESULT, 1, "bridge", P50, FLOOR, AtMost(1.5)),
    goal(
        &["gateway, 100 servers, start to first client"],
        1,
        "serve",
        P50,
        FLOOR,
        AtMost(1.5),
    ),
    goal(
        &["gateway, 100 servers, list of 2,000 tools"],
        1,
        "serve",
        P50,
        Nothing,
        AtMost(1e6),
    ),
    goal(
        SERVERS,
        1,
        "100 servers",
        Cpu,
        Subject("1 server"),
        AtMost(1.1),
    ),
    goal(
        SERVERS,
        1,
        "100 servers",
        P50,
        Subject("1 server"),
        AtMost(1.1),
    ),
    goal(
        SERVERS,
        32,
        "100 servers",
        Cpu,
        Subject("1 server"),
        AtMost(1.1),
    ),
    goal(
        SESSIONS,
        1,
        "10,000 sessions",
        Cpu,
        Subject("1 session"),
        AtMost(1.1),
    ),
    goal(
        SESSIONS,
        1,
        "10,000 sessions",
        P50,
        Subject("1 session"),
        AtMost(1.1),
    ),
    goal(
        SESSIONS,
        32,
        "10,000 sessions",
        Cpu,
        Subject("1 session"),
        AtMost(1.1),
    ),
    goal(TRANSLATE, 32, "bridge", Rate, FLOOR, AtLeast(0.5)),
    goal(RELAY, 32, "bridge", Peak, Nothing, AtMost(25e6)),
    goal(RELAY, 1, "bridge", Rate, FastestPeer, AtLeast(1.0)),
    goal(RELAY, 32, "bridge", Rate, FastestPeer, AtLeast(1.0)),
    goal(
        &[
            "gateway, 10 servers, start to first list",
            "gateway, 10 servers, routed call",
        ],
        1,
        "serve",
        Rate,
        FastestPeer,
        AtLeast(1.0),
    ),
    goal(
        &[
            "gateway, 10 servers, new client to list",
            "gateway, 100 servers, list of 2,000 tools",
        ],
        1,
        "serve",
        Rate,
        FastestPeer,
        AtLeast(10.0),
    ),
    goal(
        &["server, HTTP, legacy"],
        1,
        "ours",
        Rate,
        Subject("rmcp"),
        AtLeast(1.5),
    ),
    goal(
        &["server, HTTP, legacy"],
        32,
        "ours",
        Rate,
        Subject("rmcp"),
        AtLeast(1.5),
    ),
    goal(
        &["server, HTTP, legacy", "server, HTTP, modern"],
        1,
        "ours",
        Rate,
        Subject("rmcp without sessions"),
        AtLeast(1.5),
    ),
    goal(
        &["server, HTTP, legacy", "server, HTTP, modern"],
        32,
        "ours",
        Rate,
        Subject("rmcp without sessions"),
        AtLeast(1.5),
    ),
    goal(
        &["server, HTTP, legacy", "server, HTTP, modern"],
        32,
        "ours",
        Rate,
        FLOOR,
        AtLeast(0.6),
    ),
    goal(
        &["server, stdio"],
        32,
        "ours",
        Rate,
        Subject("rmcp"),
        AtLeast(4.0),
    ),
    goal(&["server, stdio"], 32, "ours", Rate, FLOOR, AtLeast(0.25)),
    goal(
        &["client, HTTP, legacy", "client, HTTP, modern"],
        1,
        "ours",
        Rate,
        Subject("rmcp"),
        AtLeast(1.5),
    ),
    goal(
        &["client, HTTP, legacy", "client, HTTP, modern"],
        32,
        "ours",
        Rate,
        Subject("rmcp"),
        AtLeast(1.5),
    ),
];

const KIB: f64 = 1024.0;

const fn memory(subject: &'static str, what: &'static str, bytes: f64) -> MemoryGoal {
    MemoryGoal {
        subject,
        what,
        bytes,
    }
}

/// Goals of memory.
pub(super) const MEMORY: &[MemoryGoal] = &[
    memory("bridge", "idle process", 13.5e6),
    memory("bridge", "session without stream", 4.4 * KIB),
    memory("serve", "idle process", 14.5e6),
    memory("serve", "session without stream", 3.4 * KIB),
    memory("serve", "session with open stream", 18.6 * KIB),
    memory(
        "serve",
        "session with calls to each of 10 servers",
        64.0 * KIB,
    ),
    memory("serve", "the same, after 2,000 others", 64.0 * KIB),
    memory("ours", "session without stream", 8.0 * KIB),
    memory("ours", "session with open stream", 32.0 * KIB),
];

/// Maximum instructions of a call through `serve`, as a multiple of the same call through `bridge`.
pub(super) const SERVE_INSTRUCTIONS: f64 = 1.15;

/// Reasons of missed goals: the beginning of the name of the outcome, and why, with the profile.
pub(super) const REASONS: &[(&str, &str)] = &[
    (
        "relay, HTTP to HTTP, legacy, 32 open: rate of bridge",
        "0.798, within the spread; of a modern call, 23 % of the instructions scan, 18 % are HTTP, 8 % copy",
    ),
    (
        "relay, HTTP to HTTP, legacy, 1 open: p50",
        "rounds differ by half; the system calls are those of the floor (strace), the rest are 70,000 instructions of serve",
    ),
    (
        "relay, HTTP to HTTP, modern, 1 open: p50",
        "rounds differ by 80 %; the system calls are those of the floor (strace), the rest are 82,000 instructions of serve",
    ),
    (
        "relay, HTTP to stdio, legacy, 1 open: p50",
        "rounds differ by 40 %; six system calls, as many as the bytes need (strace), and 56,000 instructions of bridge",
    ),
    (
        "relay, HTTP to stdio, modern, 1 open: p50",
        "rounds differ by a third; six system calls, as many as the bytes need (strace), and 70,000 instructions of serve",
    ),
    (
        "gateway, 100 servers, start to first client",
        "rounds from 1.25 to 1.63; the guard process of each server takes 2 ms of CPU",
    ),
    (
        "gateway, call by number of idle sessions, 1 open: CPU",
        "rounds from 0.96 to 1.18; repeated by hand with 18,000 calls each in six rounds: 1.01",
    ),
    (
        "memory: bridge, idle process",
        "weighed after the first client; jemalloc needs more than malloc of the C library, and returns more (decision 018)",
    ),
    (
        "memory: serve, idle process",
        "weighed after the first client; jemalloc needs more than malloc of the C library, and returns more (decision 018)",
    ),
    (
        "memory: bridge, session without stream",
        "each client has its own session and connection at a legacy HTTP server; behind a modern one it is 15 KiB",
    ),
    (
        "server, HTTP, legacy, 1 open",
        "not profiled; probably both wait for the kernel",
    ),
    (
        "server, HTTP, modern, 1 open",
        "not profiled; probably both wait for the kernel",
    ),
];
