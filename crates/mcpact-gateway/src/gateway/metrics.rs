//! Everything that is counted, and how everything is at this moment, for Prometheus.

use std::sync::atomic::Ordering;

use http::header::CONTENT_TYPE;
use mcpact_transport::http::server::Answer;

use super::{Gateway, State};
use crate::figures::{self, Exposition};
use crate::supervisor::{InstanceStatus, ServerStatus};

/// The states of an instance that has not ended.
const RUNNING: [&str; 5] = ["starting", "handshaking", "ready", "busy", "draining"];

/// The states of a server.
const STATES: [&str; 6] = [
    "asleep",
    "starting",
    "ready",
    "busy",
    "pausing",
    "suspended",
];

/// What is asked of a server at this moment.
struct Gauge {
    name: &'static str,
    help: &'static str,
    of: fn(&Moment<'_>) -> usize,
}

/// One server at this moment.
struct Moment<'a> {
    name: &'a str,
    status: ServerStatus,
    parked: usize,
    revision: Option<mcpact_spec::Revision>,
}

const GAUGES: [Gauge; 4] = [
    Gauge {
        name: "in_flight",
        help: "Calls in flight at servers",
        of: |moment| {
            let instances = moment.status.instances.iter();
            instances.map(|instance| instance.in_flight).sum()
        },
    },
    Gauge {
        name: "queue_length",
        help: "Calls queued for an instance",
        of: |moment| moment.status.queued,
    },
    Gauge {
        name: "parked_calls",
        help: "Calls suspended until the client provides input",
        of: |moment| moment.parked,
    },
    Gauge {
        name: "recent_failures",
        help: "Recent failures that count towards suspension, plus consecutive undelivered calls",
        of: |moment| moment.status.failures,
    },
];

impl Gateway {
    /// The answer to `/metrics`.
    pub(super) fn metrics(&self, state: &State) -> Answer {
        let mut out = Exposition::default();
        self.write_self(&mut out, state);
        let servers: Vec<Moment<'_>> = state
            .servers
            .iter()
            .map(|(name, served)| {
                let mut status = served.member.bridge().status();
                status.instances.extend(state.leaving(name));
                Moment {
                    name: name.as_str(),
                    status,
                    parked: served.member.bridge().parked(),
                    revision: served.member.report().revision,
                }
            })
            .collect();
        write_servers(&mut out, &servers);
        self.figures.write(&mut out);
        Answer::text(200, out.finish()).with(CONTENT_TYPE, figures::CONTENT_TYPE)
    }

    fn write_self(&self, out: &mut Exposition, state: &State) {
        let version = env!("CARGO_PKG_VERSION");
        out.gauge("build_info", "Version of the gateway; always 1")
            .row(&[("version", version)], 1);
        let is_draining = self.turnstile.is_closed();
        out.gauge("draining", "1 while the gateway is shutting down")
            .row(&[], u8::from(is_draining));
        let mut family = out.gauge(
            "sessions",
            "Client sessions and persistent connections, by endpoint",
        );
        family.row(&[("address", "/mcp")], self.door.guests());
        let on_lines = self.on_lines.load(Ordering::Relaxed);
        family.row(&[("address", "stdio")], on_lines);
        let alone = state.servers.values().map(|served| served.door.guests());
        family.row(&[("address", "/servers")], alone.sum::<usize>());
        let tagged = state.selections.values();
        let tagged = tagged.map(|selection| selection.door.guests());
        family.row(&[("address", "/tags")], tagged.sum::<usize>());
    }
}

fn write_servers(out: &mut Exposition, servers: &[Moment<'_>]) {
    let mut family = out.gauge("server_info", "Negotiated revision of a server; always 1");
    for server in servers {
        let revision = server.revision;
        let labels = [
            ("server", server.name),
            ("revision", revision.map_or("none", |it| it.as_str())),
            ("era", revision.map_or("none", |it| it.era().as_str())),
        ];
        family.row(&labels, 1);
    }
    let mut family = out.gauge("server_state", "Server state: 1 for the current state");
    for server in servers {
        let now = server.status.state.as_str();
        for state in STATES {
            let labels = [("server", server.name), ("state", state)];
            family.row(&labels, u8::from(state == now));
        }
    }
    let mut family = out.gauge("instances", "Server instances, by state");
    for server in servers {
        for state in RUNNING {
            let is_in = |instance: &&InstanceStatus| instance.state.as_str() == state;
            let count = server.status.instances.iter().filter(is_in).count();
            family.row(&[("server", server.name), ("state", state)], count);
        }
    }
    for Gauge { name, help, of } in GAUGES {
        let mut family = out.gauge(name, help);
        for server in servers {
            family.row(&[("server", server.name)], of(server));
        }
    }
}
