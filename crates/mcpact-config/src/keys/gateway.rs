//! Keys of the gateway.

use mcpact_spec::Revision;

use super::{Key, choice, choices, flag, seconds, table, text, text_or, texts};

/// Keys of `[gateway]`.
pub const GATEWAY: &[Key] = &[
    text_or(
        "listen",
        "127.0.0.1:6272",
        "Listen address for HTTP clients; port 0 picks a free port. Beyond loopback it needs approval, unless the config is passed with `--config`.",
    ),
    text(
        "token",
        "Bearer token required from clients, at least 16 visible ASCII characters. Prefer `${VAR}` or `${file:PATH}` over a literal.",
    ),
    flag(
        "allow_remote",
        false,
        "Allow listening beyond loopback without a token: everyone who can connect can use the gateway. Needs approval, unless the config is passed with `--config`.",
    ),
    texts(
        "allow_hosts",
        "Accepted host names, besides the listen address. Needs approval, unless the config is passed with `--config`.",
    ),
    texts(
        "allow_origins",
        "Origins of web pages that may call, such as `https://app.example`. Needs approval, unless the config is passed with `--config`.",
    ),
    text(
        "tls_cert",
        "PEM file with the certificate chain; enables TLS.",
    ),
    text(
        "tls_key",
        "PEM file with the private key of the certificate.",
    ),
    flag("sse", false, "Also serve clients of 2024-11-05 on `/sse`."),
    flag(
        "websocket",
        false,
        "Also serve clients on a WebSocket at `/ws`.",
    ),
    text(
        "control",
        "Path of the control socket for `mcpact status`. Default: in the runtime folder of the user.",
    ),
    choice(
        "names",
        &["prefix", "flat"],
        "prefix",
        "Naming of tools and prompts: with the server name as `prefix`, or `flat`. With `flat`, the later of two equal names gets a hash suffix.",
    ),
    text_or(
        "separator",
        "__",
        "Separator between server name and tool name: one to four ASCII letters, digits, `-`, `_` or `.`.",
    ),
    flag(
        "watch",
        true,
        "Reload the config when it or a file it refers to changes.",
    ),
    seconds(
        "drain_seconds",
        [0.0, 3600.0],
        10.0,
        "Time for running calls to finish when the gateway stops.",
    ),
    seconds(
        "list_seconds",
        [0.05, 3600.0],
        10.0,
        "Time a list of all servers waits for each of them. Late servers are left out; clients are notified when they are ready.",
    ),
    choices(
        "revisions",
        &Revision::NAMES,
        "Revisions clients may use, such as `2025-11-25`. Empty means all.",
    ),
    choice(
        "profile",
        &["spec", "mcpv-strict", "erlmcp"],
        "spec",
        "Profile for choices that the specification leaves open: `spec` is lenient; `mcpv-strict` accepts only 2025-11-25 and is strict; `erlmcp` accepts only 2025-03-26 and 2025-06-18, and requires client capabilities for some methods.",
    ),
    flag(
        "strict",
        false,
        "Reject the negotiation if a capability has the wrong type.",
    ),
    flag(
        "lenient",
        false,
        "Skip invalid servers and serve the others; otherwise the whole config is rejected.",
    ),
    choice(
        "undeclared",
        &["drop", "warn", "error", "disconnect"],
        "drop",
        "Treatment of notifications that were not negotiated: `drop` them, also log a warning (`warn`) or an error (`error`), or log an error and `disconnect`.",
    ),
    flag(
        "announce_extras",
        false,
        "Also send vendor extras in the capabilities.",
    ),
    texts(
        "require",
        "Capabilities required from clients, such as `elicitation`.",
    ),
    choice(
        "missing_variables",
        &["refuse", "keep"],
        "refuse",
        "Treatment of unset variables in servers: reject the config (`refuse`), or keep the text as written (`keep`).",
    ),
    table(
        "answers",
        ANSWERS,
        "Default answers for clients that do not declare the capability.",
    ),
    table("commands", COMMANDS, "Rules for programs."),
];

/// Keys of `[gateway.commands]`.
pub const COMMANDS: &[Key] = &[
    texts(
        "allow",
        "Allowed programs: names such as `npx`, or folders ending with `/`. Empty means every program that is not refused.",
    ),
    choice(
        "shells",
        &["refuse", "warn"],
        "refuse",
        "Treatment of shell scripts in arguments, such as `sh -c …`: reject the config (`refuse`), or start with a warning (`warn`). The script itself is not checked.",
    ),
];

/// Keys of `[gateway.answers]` and `[servers.NAME.answers]`.
pub const ANSWERS: &[Key] = &[
    choice(
        "elicitation",
        &["nobody", "decline", "cancel"],
        "nobody",
        "Answer to elicitation requests: `decline`, `cancel`, or none (`nobody`).",
    ),
    text(
        "sampling",
        "Error text for sampling requests. Default: no answer.",
    ),
    texts(
        "roots",
        "Roots, such as `file:///home/ann/work`. Default: no answer.",
    ),
];
