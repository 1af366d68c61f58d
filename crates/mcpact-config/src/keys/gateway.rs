//! The gateway itself.

use mcpact_spec::Revision;

use super::{ANSWERS, Key, choice, choices, flag, seconds, table, text, text_or, texts};

/// The keys of `[gateway]`.
pub const GATEWAY: &[Key] = &[
    text_or(
        "listen",
        "127.0.0.1:6272",
        "The address that HTTP clients come to; port 0 picks a free one. Beyond loopback it needs approval unless the config is named.",
    ),
    text(
        "token",
        "The bearer token that clients must show, at least 16 visible ASCII characters; better `${VAR}` or `${file:PATH}` than the token itself.",
    ),
    flag(
        "allow_remote",
        false,
        "Listen beyond loopback without a token: whoever reaches the gateway can use it. It needs approval unless the config is named.",
    ),
    texts(
        "allow_hosts",
        "Host names that the gateway answers to, besides those of its address. They need approval unless the config is named.",
    ),
    texts(
        "allow_origins",
        "Origins whose pages may call, such as `https://app.example`. They need approval unless the config is named.",
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
        "Whether names of tools and prompts start with the name of their server (`prefix`), or stay as they are (`flat`); where two servers use the same name then, the later one is marked with a hash.",
    ),
    text_or(
        "separator",
        "__",
        "What stands between the name of the server and the name of the tool: one to four of the ASCII letters, digits, `-`, `_` and `.`.",
    ),
    flag(
        "watch",
        true,
        "Read the config anew when its file changes, or one that it takes values from.",
    ),
    seconds(
        "drain_seconds",
        [0.0, 3600.0],
        10.0,
        "How long running calls may take to end when the gateway stops.",
    ),
    seconds(
        "list_seconds",
        [0.05, 3600.0],
        10.0,
        "How long a list of all servers waits for one of them; whoever is late is left out, and clients are told when it comes.",
    ),
    choices(
        "revisions",
        &Revision::NAMES,
        "Revisions that clients may use, such as `2025-11-25`; empty means all.",
    ),
    choice(
        "profile",
        &["spec", "mcpv-strict", "erlmcp"],
        "spec",
        "The named set of choices where the specification leaves room: `spec` reads it as kindly as it can be read, `mcpv-strict` speaks 2025-11-25 only and forgives nothing, `erlmcp` speaks 2025-03-26 and 2025-06-18 only and serves some methods only to clients that declare a capability of the same name.",
    ),
    flag(
        "strict",
        false,
        "Forgive nothing: a wrongly typed capability refuses the negotiation.",
    ),
    flag(
        "lenient",
        false,
        "Leave out the servers that are wrong in this config and serve the others; without it the config is refused as a whole.",
    ),
    choice(
        "undeclared",
        &["drop", "warn", "error", "disconnect"],
        "drop",
        "What happens to a notification that was not negotiated: it is dropped (`drop`), also told in the log as a warning (`warn`) or as an error (`error`), or told as an error and the connection ends (`disconnect`).",
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
    choice(
        "missing_variables",
        &["refuse", "keep"],
        "refuse",
        "What happens to a variable in the config of a server that is not set: the config is refused (`refuse`), or the text stays as it is written (`keep`).",
    ),
    table(
        "answers",
        ANSWERS,
        "What is answered in the place of clients that did not declare that they can be asked.",
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
        "Treatment of a shell that runs a script from its arguments, such as `sh -c …`: the config is refused (`refuse`), or the server starts with a warning (`warn`). The script itself is not checked.",
    ),
];
