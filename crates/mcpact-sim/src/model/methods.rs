//! All methods: kind, sender per revision, and required capabilities.
//!
//! The columns are the five revisions, oldest first. A request that is only embedded in a result is not a message.

use mcpact_spec::{Kind, Side};

/// Sender of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Neither,
    Client,
    Server,
    Both,
}

/// Required capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Of(Side, &'static str),
    PromptsOrResources,
    OfReceiver(&'static str),
    OfSender(&'static str),
    TasksExtension,
}

pub(super) struct Row {
    pub(super) method: &'static str,
    pub(super) kind: Kind,
    pub(super) by: [By; 5],
    pub(super) needs: [Needs; 5],
}

use By::{Both as B, Client as C, Neither as N, Server as S};
use Kind::{Notification as Note, Request as Ask};

const FREE: [Needs; 5] = [Needs::Nothing; 5];

const fn server(path: &'static str) -> [Needs; 5] {
    [Needs::Of(Side::Server, path); 5]
}

const fn client(path: &'static str) -> [Needs; 5] {
    [Needs::Of(Side::Client, path); 5]
}

const fn receiver(path: &'static str) -> [Needs; 5] {
    let then = Needs::OfReceiver(path);
    [then, then, then, then, Needs::TasksExtension]
}

const fn row(method: &'static str, kind: Kind, by: [By; 5], needs: [Needs; 5]) -> Row {
    Row {
        method,
        kind,
        by,
        needs,
    }
}

/// `2024-11-05` has completion without a capability of its own; the later ones have one.
const COMPLETION: [Needs; 5] = {
    let own = Needs::Of(Side::Server, "completions");
    [Needs::PromptsOrResources, own, own, own, own]
};

pub(super) const TABLE: &[Row] = &[
    row("initialize", Ask, [C, C, C, C, N], FREE),
    row("notifications/initialized", Note, [C, C, C, C, N], FREE),
    row("server/discover", Ask, [N, N, N, N, C], FREE),
    row("ping", Ask, [B, B, B, B, N], FREE),
    row("tools/list", Ask, [C; 5], server("tools")),
    row("tools/call", Ask, [C; 5], server("tools")),
    row(
        "notifications/tools/list_changed",
        Note,
        [S; 5],
        server("tools.listChanged"),
    ),
    row("prompts/list", Ask, [C; 5], server("prompts")),
    row("prompts/get", Ask, [C; 5], server("prompts")),
    row(
        "notifications/prompts/list_changed",
        Note,
        [S; 5],
        server("prompts.listChanged"),
    ),
    row("resources/list", Ask, [C; 5], server("resources")),
    row("resources/templates/list", Ask, [C; 5], server("resources")),
    row("resources/read", Ask, [C; 5], server("resources")),
    row(
        "resources/subscribe",
        Ask,
        [C, C, C, C, N],
        server("resources.subscribe"),
    ),
    row(
        "resources/unsubscribe",
        Ask,
        [C, C, C, C, N],
        server("resources.subscribe"),
    ),
    row(
        "notifications/resources/list_changed",
        Note,
        [S; 5],
        server("resources.listChanged"),
    ),
    row(
        "notifications/resources/updated",
        Note,
        [S; 5],
        server("resources.subscribe"),
    ),
    row("completion/complete", Ask, [C; 5], COMPLETION),
    row("logging/setLevel", Ask, [C, C, C, C, N], server("logging")),
    row("notifications/message", Note, [S; 5], server("logging")),
    row("subscriptions/listen", Ask, [N, N, N, N, C], FREE),
    row(
        "notifications/subscriptions/acknowledged",
        Note,
        [N, N, N, N, S],
        FREE,
    ),
    row("roots/list", Ask, [S, S, S, S, N], client("roots")),
    row(
        "notifications/roots/list_changed",
        Note,
        [C, C, C, C, N],
        client("roots.listChanged"),
    ),
    row(
        "sampling/createMessage",
        Ask,
        [S, S, S, S, N],
        client("sampling"),
    ),
    row(
        "elicitation/create",
        Ask,
        [N, N, S, S, N],
        client("elicitation"),
    ),
    row(
        "notifications/elicitation/complete",
        Note,
        [N, N, N, S, N],
        client("elicitation.url"),
    ),
    row("notifications/progress", Note, [B, B, B, B, S], FREE),
    row("notifications/cancelled", Note, [B; 5], FREE),
    row("tasks/get", Ask, [N, N, N, B, C], receiver("tasks")),
    row("tasks/result", Ask, [N, N, N, B, N], receiver("tasks")),
    row(
        "tasks/cancel",
        Ask,
        [N, N, N, B, C],
        receiver("tasks.cancel"),
    ),
    row("tasks/list", Ask, [N, N, N, B, N], receiver("tasks.list")),
    row(
        "tasks/update",
        Ask,
        [N, N, N, N, C],
        [Needs::TasksExtension; 5],
    ),
    row(
        "notifications/tasks/status",
        Note,
        [N, N, N, B, N],
        [Needs::OfSender("tasks"); 5],
    ),
    row(
        "notifications/tasks",
        Note,
        [N, N, N, N, S],
        [Needs::TasksExtension; 5],
    ),
];
