//! `/metrics`: counters and current gauges for Prometheus.

use http::header::CONTENT_TYPE;
use mcpact_transport::http::server::HttpResponse;

use super::stable_strings::SERVER_STATES;
use super::{Gateway, State};
use crate::metrics::{self, Exposition};
use crate::supervisor::{InstanceStatus, ServerState, ServerStatus};

/// States of a running instance.
const RUNNING: [&str; 5] = ["starting", "handshaking", "ready", "busy", "draining"];

/// Current values of one server.
struct ServerSample<'a> {
    name: &'a str,
    status: ServerStatus,
    parked: usize,
    revision: Option<mcpact_spec::Revision>,
}

/// Name, help text and value of a gauge per server.
type Gauge = (&'static str, &'static str, fn(&ServerSample<'_>) -> usize);

const GAUGES: [Gauge; 4] = [
    ("in_flight", "Calls in flight at servers", |server| {
        let instances = server.status.instances.iter();
        instances.map(|instance| instance.in_flight).sum()
    }),
    ("queue_length", "Calls queued for an instance", |server| {
        server.status.queued
    }),
    (
        "parked_calls",
        "Calls suspended until the client provides input",
        |server| server.parked,
    ),
    (
        "recent_failures",
        "Recent failures that count towards suspension, plus consecutive undelivered calls",
        |server| server.status.failures,
    ),
];

/// Returns the response to `/metrics`.
pub(super) fn response(gateway: &Gateway, state: &State) -> HttpResponse {
    let mut out = Exposition::default();
    write_self(gateway, &mut out, state);
    let servers: Vec<ServerSample<'_>> = state
        .servers
        .iter()
        .map(|(name, served)| {
            let mut status = served.entry.server().status();
            status.instances.extend(state.draining_instances(name));
            ServerSample {
                name: name.as_str(),
                status,
                parked: served.entry.server().parked(),
                revision: served.entry.report().revision,
            }
        })
        .collect();
    write_servers(&mut out, &servers);
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
    out.gauge(
        "sessions",
        "Client sessions and persistent connections, by endpoint",
    );
    let single = state.servers.values();
    let single = single.map(|served| served.route.session_count());
    let tagged = state.selections.values();
    let tagged = tagged.map(|selection| selection.route.session_count());
    for (address, count) in [
        ("/mcp", gateway.route.session_count()),
        ("stdio", gateway.stdio_clients()),
        ("/servers", single.sum()),
        ("/tags", tagged.sum()),
    ] {
        out.row(&[("address", address)], count);
    }
}

fn write_servers(out: &mut Exposition, servers: &[ServerSample<'_>]) {
    out.gauge("server_info", "Negotiated revision of a server; always 1");
    for server in servers {
        let revision = server.revision;
        let labels = [
            ("server", server.name),
            ("revision", revision.map_or("none", |it| it.as_str())),
            ("era", revision.map_or("none", |it| it.era().as_str())),
        ];
        out.row(&labels, 1);
    }
    out.gauge("server_state", "Server state: 1 for the current state");
    for server in servers {
        let now = server.status.state.as_str();
        for state in SERVER_STATES.map(ServerState::as_str) {
            let labels = [("server", server.name), ("state", state)];
            out.row(&labels, u8::from(state == now));
        }
    }
    out.gauge("instances", "Server instances, by state");
    for server in servers {
        for state in RUNNING {
            let is_in = |instance: &&InstanceStatus| instance.state.as_str() == state;
            let count = server.status.instances.iter().filter(is_in).count();
            out.row(&[("server", server.name), ("state", state)], count);
        }
    }
    for (name, help, value) in GAUGES {
        out.gauge(name, help);
        for server in servers {
            out.row(&[("server", server.name)], value(server));
        }
    }
}
