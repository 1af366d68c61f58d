//! `/metrics`: counters and current gauges for Prometheus.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use mcpact_transport::budget::MemoryBudget;
use mcpact_transport::http::server::{HttpResponse, rejections};

use super::stable_strings::SERVER_STATES;
use super::{Gateway, State};
use crate::aggregate::server_entry::ServerEntry;
use crate::metrics::{self, Exposition};
use crate::supervisor::{InstanceStatus, ServerState, ServerStatus};
use crate::upstream::UpstreamServer;

/// States of a running instance.
const RUNNING: [&str; 5] = ["starting", "handshaking", "ready", "busy", "draining"];

/// Value of a gauge of a server.
type Gauge = fn(&UpstreamServer, &ServerStatus) -> usize;

/// Gauges per server: name, help text and value.
const GAUGES: [(&str, &str, Gauge); 4] = [
    ("in_flight", "Calls in flight at servers", |_, status| {
        let instances = status.instances.iter();
        instances.map(|instance| instance.in_flight).sum()
    }),
    (
        "queue_length",
        "Calls queued for an instance",
        |_, status| status.queued,
    ),
    (
        "parked_calls",
        "Calls suspended until the client provides input",
        |server, _| server.parked(),
    ),
    (
        "recent_failures",
        "Recent failures that count towards suspension, plus consecutive undelivered calls",
        |_, status| status.failures,
    ),
];

/// Returns the response to `/metrics`.
pub(super) fn response(gateway: &Gateway, state: &State) -> HttpResponse {
    let mut out = Exposition::default();
    write_self(gateway, &mut out, state);
    write_servers(&mut out, state);
    gateway.metrics.write(&mut out);
    HttpResponse::text(200, out.finish()).with(CONTENT_TYPE, metrics::CONTENT_TYPE)
}

fn write_self(gateway: &Gateway, out: &mut Exposition, state: &State) {
    let version = env!("CARGO_PKG_VERSION");
    out.gauge("build_info", "Version of the gateway; always 1");
    out.row(&[("version", version)], 1);
    let is_draining = gateway.drain_gate.is_closed();
    out.gauge("draining", "1 while the gateway is shutting down");
    out.row(&[], u8::from(is_draining));
    let budget = MemoryBudget::process();
    out.gauge(
        "message_memory_bytes",
        "Memory that large messages take, and its limit `memory_mb`",
    );
    out.row(&[("state", "used")], budget.used());
    out.row(&[("state", "limit")], budget.limit());
    out.counter(
        "memory_refusals_total",
        "Messages refused because the memory for messages was exhausted",
    );
    out.row(&[], budget.refused());
    out.counter(
        "stalled_connections_total",
        "Connections closed because memory was scarce and the client did not continue its transfer",
    );
    out.row(&[], budget.cut());
    out.counter(
        "http_rejections_total",
        "HTTP requests rejected before their message was read, by status",
    );
    for (status, count) in rejections() {
        out.row(&[("status", &status.to_string())], count);
    }
    out.gauge(
        "sessions",
        "Client sessions and persistent connections, by endpoint",
    );
    let single = state.servers.values();
    let single = single.map(|served| served.route.session_count());
    let selections = || state.selections.iter();
    let of_all = selections().filter(|((tags, _), _)| tags.is_empty());
    let of_all = of_all.map(|(_, (_, route))| route.session_count());
    let tagged = selections().filter(|((tags, _), _)| !tags.is_empty());
    let tagged = tagged.map(|(_, (_, route))| route.session_count());
    for (address, count) in [
        (
            "/mcp",
            gateway.route.session_count() + of_all.sum::<usize>(),
        ),
        ("stdio", gateway.stdio_clients()),
        ("/servers", single.sum()),
        ("/tags", tagged.sum()),
    ] {
        out.row(&[("address", address)], count);
    }
}

fn write_servers(out: &mut Exposition, state: &State) {
    let servers = state.servers.iter().map(|(name, served)| {
        let mut status = served.entry.server().status();
        status.instances.extend(state.draining_instances(name));
        (name.as_str(), &served.entry, status)
    });
    let servers: Vec<(&str, &Arc<ServerEntry>, ServerStatus)> = servers.collect();
    out.gauge("server_info", "Negotiated revision of a server; always 1");
    for (name, entry, _) in &servers {
        let revision = entry.report().revision;
        let labels = [
            ("server", *name),
            ("revision", revision.map_or("none", |it| it.as_str())),
            ("era", revision.map_or("none", |it| it.era().as_str())),
        ];
        out.row(&labels, 1);
    }
    out.gauge("server_state", "Server state: 1 for the current state");
    for (name, _, status) in &servers {
        let now = status.state.as_str();
        for state in SERVER_STATES.map(ServerState::as_str) {
            let labels = [("server", *name), ("state", state)];
            out.row(&labels, u8::from(state == now));
        }
    }
    out.gauge("instances", "Server instances, by state");
    for (name, _, status) in &servers {
        for state in RUNNING {
            let is_in = |instance: &&InstanceStatus| instance.state.as_str() == state;
            let count = status.instances.iter().filter(is_in).count();
            out.row(&[("server", name), ("state", state)], count);
        }
    }
    for (gauge, help, value) in GAUGES {
        out.gauge(gauge, help);
        for (name, entry, status) in &servers {
            out.row(&[("server", name)], value(entry.server(), status));
        }
    }
}
