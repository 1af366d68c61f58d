//! Every key of the config: its kind, its limits, its default and what it does.
//!
//! The reader takes limits and defaults from here, the JSON Schema and the manual are made from it.

/// A key of the config.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What may stand behind it.
    pub kind: Kind,
    /// What it does, in one sentence.
    pub about: &'static str,
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text {
        /// The text when the key is not there.
        default: Option<&'static str>,
    },
    /// A list of texts, empty when the key is not there.
    Texts,
    /// A table of texts, empty when the key is not there.
    TextTable,
    /// True or false.
    Flag {
        /// When the key is not there.
        default: bool,
    },
    /// A whole number.
    Count {
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
        /// When the key is not there.
        default: u32,
    },
    /// A duration in seconds, fractions allowed.
    Seconds {
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
        /// When the key is not there.
        default: f64,
    },
    /// One of a few words.
    Choice {
        /// The words.
        of: &'static [&'static str],
        /// When the key is not there.
        default: &'static str,
    },
    /// A list of a few words, empty when the key is not there.
    Choices {
        /// The words.
        of: &'static [&'static str],
    },
    /// A table with keys of its own.
    Table {
        /// Its keys.
        keys: &'static [Key],
    },
    /// A table of tables, whose names are chosen by whoever writes it.
    Named {
        /// The keys of each.
        keys: &'static [Key],
    },
}

const DAY: f64 = 86_400.0;

const REVISIONS: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

const ERAS: &[&str] = &[
    "auto",
    "legacy",
    "modern",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

const fn text(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::Text { default: None };
    Key { name, kind, about }
}

const fn text_or(name: &'static str, default: &'static str, about: &'static str) -> Key {
    let kind = Kind::Text {
        default: Some(default),
    };
    Key { name, kind, about }
}

const fn texts(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::Texts;
    Key { name, kind, about }
}

const fn text_table(name: &'static str, about: &'static str) -> Key {
    let kind = Kind::TextTable;
    Key { name, kind, about }
}

const fn flag(name: &'static str, default: bool, about: &'static str) -> Key {
    let kind = Kind::Flag { default };
    Key { name, kind, about }
}

const fn count(name: &'static str, range: [u32; 2], default: u32, about: &'static str) -> Key {
    let [least, most] = range;
    let kind = Kind::Count {
        least,
        most,
        default,
    };
    Key { name, kind, about }
}

const fn seconds(name: &'static str, range: [f64; 2], default: f64, about: &'static str) -> Key {
    let [least, most] = range;
    let kind = Kind::Seconds {
        least,
        most,
        default,
    };
    Key { name, kind, about }
}

const fn choice(
    name: &'static str,
    of: &'static [&'static str],
    default: &'static str,
    about: &'static str,
) -> Key {
    let kind = Kind::Choice { of, default };
    Key { name, kind, about }
}

const fn choices(name: &'static str, of: &'static [&'static str], about: &'static str) -> Key {
    let kind = Kind::Choices { of };
    Key { name, kind, about }
}

const fn table(name: &'static str, keys: &'static [Key], about: &'static str) -> Key {
    let kind = Kind::Table { keys };
    Key { name, kind, about }
}

/// The keys of a whole config.
pub const ROOT: &[Key] = &[
    text(
        "$schema",
        "The address of the JSON Schema, for editors; mcpact does not read it.",
    ),
    table("gateway", GATEWAY, "The gateway itself."),
    Key {
        name: "servers",
        kind: Kind::Named { keys: SERVER },
        about: "The servers behind it, each in a table of its own, such as `[servers.files]`.",
    },
];

/// The keys of `[gateway]`.
pub const GATEWAY: &[Key] = &[
    text_or(
        "listen",
        "127.0.0.1:6272",
        "The address that HTTP clients come to; port 0 picks a free one.",
    ),
    text(
        "token",
        "The bearer token that clients must show, at least 16 visible ASCII characters; better `${VAR}` or `${file:PATH}` than the token itself.",
    ),
    flag(
        "allow_remote",
        false,
        "Listen beyond loopback without a token: whoever reaches the gateway can use it.",
    ),
    texts(
        "allow_hosts",
        "Host names that the gateway answers to, besides those of its address.",
    ),
    texts(
        "allow_origins",
        "Origins whose pages may call, such as `https://app.example`.",
    ),
    text(
        "tls_cert",
        "A PEM file with the certificate and its chain; TLS is spoken with it.",
    ),
    text(
        "tls_key",
        "A PEM file with the private key of the certificate.",
    ),
    flag("sse", false, "Serve clients of 2024-11-05 on `/sse`, too."),
    flag(
        "websocket",
        false,
        "Serve clients on a WebSocket at `/ws`, too.",
    ),
    text(
        "control",
        "The private Unix socket that `mcpact status` talks to; without it one in the runtime folder of the user.",
    ),
    choice(
        "names",
        &["prefix", "flat"],
        "prefix",
        "Whether names of tools and prompts start with the name of their server always (`prefix`), or only where two servers use the same name (`flat`).",
    ),
    text_or(
        "separator",
        "__",
        "What stands between the name of the server and the name of the tool: one to four of the letters, digits, `-`, `_` and `.`.",
    ),
    flag("watch", true, "Read the config anew when its file changes."),
    seconds(
        "drain_seconds",
        [0.0, 3600.0],
        10.0,
        "How long running calls may take to end when the gateway stops.",
    ),
    choices(
        "revisions",
        REVISIONS,
        "The revisions that clients may speak; empty means all.",
    ),
    choice(
        "profile",
        &["spec", "mcpv-strict", "erlmcp"],
        "spec",
        "The named set of choices where the specification leaves room.",
    ),
    flag(
        "strict",
        false,
        "Forgive nothing: a wrongly typed capability refuses the negotiation.",
    ),
    choice(
        "undeclared",
        &["drop", "warn", "error", "disconnect"],
        "drop",
        "What happens to a notification that was not negotiated.",
    ),
    flag(
        "announce_extras",
        false,
        "Send vendor extras in the capabilities, too.",
    ),
    texts(
        "require",
        "Capabilities that a client must have, such as `elicitation`.",
    ),
    table("commands", COMMANDS, "Which programs may be started."),
];

/// The keys of `[gateway.commands]`.
pub const COMMANDS: &[Key] = &[
    texts(
        "allow",
        "The only programs that may be started: names such as `npx`, or folders that end with `/`; empty means every program that is not refused.",
    ),
    choice(
        "shells",
        &["refuse", "warn"],
        "refuse",
        "What happens to a server that is started by way of a shell, such as `sh -c …`.",
    ),
];

const STRATEGIES: &[&str] = &["stateless", "stateful", "persistent", "singleton"];

/// The keys of `[servers.NAME]`.
pub const SERVER: &[Key] = &[
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
    text("url", "The address of a server that is reached by HTTP."),
    text_table("headers", "Headers that go with every request."),
    text(
        "builtin",
        "The name of a server that is part of mcpact, such as `everything`.",
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
        "The only tools that are served; `*` stands for anything. Empty means all.",
    ),
    texts(
        "hidden_tools",
        "Tools that are not served; `*` stands for anything.",
    ),
    choice(
        "era",
        ERAS,
        "auto",
        "How it is spoken to: `auto` asks the server, `legacy` shakes hands, `modern` does not, a revision insists on it.",
    ),
    texts(
        "require",
        "Capabilities that it must have, such as `tools`.",
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
        "How long an instance waits for its client to come back; with `stateful` only.",
    ),
    text_or(
        "health",
        "auto",
        "How an instance is asked whether it is well: `auto`, `off`, `ping`, `discover`, `tool:NAME` or `resource:URI`.",
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
        "The pause before a failed server is started again; it doubles each time.",
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
        "How long a suspended server is left alone before it is tried once more.",
    ),
];

/// The key with this name.
#[must_use]
pub fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use mcpact_engine::policy::Profile;
    use mcpact_spec::Revision;

    use super::*;

    fn words(keys: &'static [Key], name: &str) -> &'static [&'static str] {
        match find(keys, name).unwrap().kind {
            Kind::Choice { of, .. } | Kind::Choices { of } => of,
            _ => panic!("{name} is no choice"),
        }
    }

    #[test]
    fn the_words_are_those_of_the_engine() {
        assert_eq!(
            words(GATEWAY, "revisions"),
            Revision::ALL.map(Revision::as_str)
        );
        assert_eq!(
            words(SERVER, "era")[3..],
            Revision::ALL.map(Revision::as_str)
        );
        assert_eq!(words(GATEWAY, "profile"), Profile::ALL.map(Profile::as_str));
    }

    /// K10: every key says what it does, and its default is within its limits.
    #[test]
    fn every_key_is_described_and_its_default_is_possible() {
        for key in ROOT.iter().chain(GATEWAY).chain(COMMANDS).chain(SERVER) {
            assert!(key.about.ends_with('.'), "{}", key.name);
            match key.kind {
                Kind::Count {
                    least,
                    most,
                    default,
                } => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Seconds {
                    least,
                    most,
                    default,
                } => {
                    assert!((least..=most).contains(&default), "{}", key.name);
                }
                Kind::Choice { of, default } => assert!(of.contains(&default), "{}", key.name),
                _ => {}
            }
        }
    }
}
