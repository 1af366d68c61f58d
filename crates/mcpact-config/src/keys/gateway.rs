//! Keys of the gateway.

use mcpact_spec::Revision;

use super::Kind::{Choice, Choices, Count, Flag, Seconds, Table, Text, TextTable, Texts, Users};
use super::{Key, SANDBOXES, key};

/// Keys of `[gateway]`.
pub const GATEWAY: &[Key] = &[
    key(
        "listen",
        Text(Some("127.0.0.1:6272")),
        "Listen address for HTTP clients; port 0 picks a free port; `unix:PATH` is a Unix socket. Beyond loopback it needs approval, unless the config is passed with `--config`.",
    ),
    key(
        "token",
        Text(None),
        "Bearer token required from clients, at least 16 visible ASCII characters. Prefer `${VAR}` or `${file:PATH}` over a literal.",
    ),
    key(
        "tokens",
        TextTable,
        "Bearer tokens by name, such as `{ ada = \"${file:ada.token}\" }`. The holder of each is a client of its own, whose sessions, tasks and states no other can use.",
    ),
    key(
        "allow_remote",
        Flag(false),
        "Allow listening beyond loopback without a token: everyone who can connect can use the gateway. Needs approval, unless the config is passed with `--config`.",
    ),
    key(
        "allow_hosts",
        Texts,
        "Accepted host names, besides the listen address. Needs approval, unless the config is passed with `--config`.",
    ),
    key(
        "allow_origins",
        Texts,
        "Origins of web pages that may call, such as `https://app.example`. Needs approval, unless the config is passed with `--config`.",
    ),
    key(
        "allow_users",
        Users,
        "Other users of this machine that may call without a token, as names or ids, such as `[\"ada\", 1001]`. Needs approval, unless the config is passed with `--config`.",
    ),
    key(
        "tls_cert",
        Text(None),
        "PEM file with the certificate chain; enables TLS.",
    ),
    key(
        "tls_key",
        Text(None),
        "PEM file with the private key of the certificate.",
    ),
    key(
        "sse",
        Flag(false),
        "Also serve clients of 2024-11-05 on `/sse`.",
    ),
    key(
        "websocket",
        Flag(false),
        "Also serve clients on a WebSocket at `/ws`.",
    ),
    key(
        "control",
        Text(None),
        "Path of the control socket for `mcpact status`. Default: in the runtime folder of the user.",
    ),
    key(
        "names",
        Choice(&["prefix", "flat"], "prefix"),
        "Naming of tools and prompts: with the server name as `prefix`, or `flat`. With `flat`, the later of two equal names gets a hash suffix.",
    ),
    key(
        "separator",
        Text(Some("__")),
        "Separator between server name and tool name: one to four ASCII letters, digits, `-`, `_` or `.`.",
    ),
    key(
        "watch",
        Flag(true),
        "Reload the config when it or a file it refers to changes.",
    ),
    key(
        "drain_seconds",
        Seconds([0.0, 3600.0], 10.0),
        "Time for running calls to finish when the gateway stops.",
    ),
    key(
        "list_seconds",
        Seconds([0.05, 3600.0], 10.0),
        "Time a list of all servers waits for each of them. Late servers are left out; clients are notified when they are ready.",
    ),
    key(
        "revisions",
        Choices(&Revision::NAMES),
        "Revisions clients may use, such as `2025-11-25`. Empty means all.",
    ),
    key(
        "version_range",
        Text(None),
        "Dates of the revisions clients may use, such as `2025-01-01..2025-06-18`.",
    ),
    key(
        "unsupported_version",
        Choice(&["counter-offer", "reject"], "counter-offer"),
        "Answer to `initialize` with a version that is not served: the newest one that is (`counter-offer`), or an error (`reject`). The default is that of the profile.",
    ),
    key(
        "missing_version",
        Choice(&["reject", "assume"], "reject"),
        "Answer to `initialize` without a version: an error (`reject`), or the newest version that is served (`assume`). The default is that of the profile.",
    ),
    key(
        "early_requests",
        Choice(&["accept", "reject"], "accept"),
        "Treatment of requests between the result of `initialize` and `notifications/initialized`.",
    ),
    key(
        "unknown_methods",
        Choice(&["reject", "pass"], "reject"),
        "Treatment of methods that no revision defines: reject them, or `pass` them to the server at `/servers/NAME/mcp`.",
    ),
    key(
        "require_client_capability",
        TextTable,
        "Client capability that a method requires, such as `{ \"tools/list\" = \"sampling\" }`.",
    ),
    key(
        "profile",
        Choice(&["spec", "mcpv-strict", "erlmcp"], "spec"),
        "Profile for choices that the specification leaves open: `spec` is lenient; `mcpv-strict` accepts only 2025-11-25 and is strict; `erlmcp` accepts only 2025-03-26 and 2025-06-18, and requires client capabilities for some methods.",
    ),
    key(
        "strict",
        Flag(false),
        "Reject the negotiation if a capability has the wrong type.",
    ),
    key(
        "lenient",
        Flag(false),
        "Skip invalid servers and serve the others; otherwise the whole config is rejected. Configs of other clients are lenient by default.",
    ),
    key(
        "undeclared",
        Choice(&["drop", "warn", "error", "disconnect"], "drop"),
        "Treatment of notifications that were not negotiated: `drop` them, also log a warning (`warn`) or an error (`error`), or log an error and `disconnect`.",
    ),
    key(
        "announce_extras",
        Flag(false),
        "Also send the vendor extras `supportedProtocolVersions`, `maxBatchSize` (where the revision has batches) and `logging.levels` in the capabilities, with the gateway's own values.",
    ),
    key(
        "max_batch_size",
        Count([1, 10_000], 100),
        "Largest number of messages in a batch, which only 2025-03-26 has. A larger batch is rejected as a whole.",
    ),
    key(
        "require",
        Texts,
        "Capabilities required from clients, such as `elicitation`.",
    ),
    key(
        "missing_variables",
        Choice(&["refuse", "keep"], "refuse"),
        "Treatment of unset variables in servers: reject the config (`refuse`), or keep the text as written (`keep`).",
    ),
    key(
        "answers",
        Table(ANSWERS),
        "Default answers for clients that do not declare the capability.",
    ),
    key(
        "tools",
        Table(TOOLS),
        "Tools that clients are shown at `/mcp` and `/tags/…`.",
    ),
    key(
        "sandbox",
        Choice(SANDBOXES, "off"),
        "Sandbox of servers that set none (Linux only): `off`, limited files (`standard`), or limited files and network (`strict`).",
    ),
    key("commands", Table(COMMANDS), "Rules for programs."),
    key("limits", Table(LIMITS), "Limits of the whole gateway."),
];

/// Keys of `[gateway.limits]`.
pub const LIMITS: &[Key] = &[key(
    "memory_mb",
    Count([0, 1_048_576], 0),
    "Memory for messages in MB, at least 96. 0, the default, means a quarter of the memory of the cgroup or machine, at least 256.",
)];

/// Keys of `[gateway.tools]`.
pub const TOOLS: &[Key] = &[
    key(
        "mode",
        Choice(&["all", "search"], "all"),
        "Listed tools: `all`, or the pinned ones and three tools for finding, describing and calling the others (`search`). Clients choose with `Mcpact-Tools` or `?tools=`.",
    ),
    key(
        "pinned",
        Texts,
        "Tools that `search` lists as well, such as `files__read_file`.",
    ),
];

/// Keys of `[gateway]` about the protocol, which `--policy` sets as well.
pub const POLICY: [&str; 13] = [
    "profile",
    "revisions",
    "version_range",
    "unsupported_version",
    "missing_version",
    "early_requests",
    "unknown_methods",
    "undeclared",
    "strict",
    "require",
    "require_client_capability",
    "announce_extras",
    "max_batch_size",
];

/// Keys of `[gateway.commands]`.
pub const COMMANDS: &[Key] = &[
    key(
        "allow",
        Texts,
        "Allowed programs: names such as `npx`, or folders ending with `/`. Empty means every program that is not refused.",
    ),
    key(
        "shells",
        Choice(&["refuse", "warn"], "refuse"),
        "Treatment of shell scripts in arguments, such as `sh -c …`: reject the config (`refuse`), or start with a warning (`warn`). The script itself is not checked.",
    ),
];

/// Keys of `[gateway.answers]` and `[servers.NAME.answers]`.
pub const ANSWERS: &[Key] = &[
    key(
        "elicitation",
        Choice(&["nobody", "decline", "cancel"], "nobody"),
        "Answer to elicitation requests: `decline`, `cancel`, or none (`nobody`).",
    ),
    key(
        "sampling",
        Text(None),
        "Error text for sampling requests. Default: no answer.",
    ),
    key(
        "roots",
        Texts,
        "Roots, such as `file:///home/ann/work`. Default: no answer.",
    ),
];
