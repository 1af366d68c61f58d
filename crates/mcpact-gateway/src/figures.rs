//! What happened, in numbers.
//!
//! A gateway owns one [`Figures`] and hands it down; there is nothing global. What every call passes is
//! counted by atomics in arrays (`meter`), everything rarer in small tables (`tally`). Every label has few
//! values: revisions, methods that a revision defines, and words of ours. No name that a client or a server
//! chooses is one. How it is written down is in `exposition`.

mod exposition;
mod meter;
mod tally;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcpact::server::Watch;
use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_spec::{Method, Revision};
use mcpact_translate::plan::Plan;

pub(crate) use self::exposition::{CONTENT_TYPE, Exposition};
use self::meter::{Calls, Crossings};
pub(crate) use self::meter::{KINDS, Outcome, Routed};
use self::tally::Tally;
use crate::stable::{DropReason, Reason, ReloadOutcome};

/// What a gateway counts.
#[derive(Debug, Default)]
pub struct Figures {
    negotiations: Tally<Agreement>,
    denials: Tally<(&'static str, &'static str)>,
    withheld: Tally<(&'static str, &'static str)>,
    dropped: Tally<&'static str>,
    reloads: Tally<&'static str>,
    servers: Mutex<BTreeMap<Box<str>, Arc<ServerFigures>>>,
}

/// What is counted about one server.
#[derive(Debug, Default)]
pub struct ServerFigures {
    calls: Calls,
    crossings: Crossings,
    negotiations: Tally<Agreement>,
    starts: Tally<&'static str>,
    restarts: AtomicU64,
    stops: Tally<&'static str>,
    failures: Tally<&'static str>,
    dropped: Tally<&'static str>,
    lists_kept: AtomicU64,
    lists_fetched: AtomicU64,
}

/// Who has agreed on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Agreement {
    client: &'static str,
    server: &'static str,
    era: &'static str,
    outcome: &'static str,
}

impl Agreement {
    fn of(negotiation: &Negotiation) -> Self {
        let client = match negotiation.requested.as_deref().map(Revision::parse) {
            Some(Some(revision)) => revision.as_str(),
            Some(None) => "other",
            None => "none",
        };
        let agreed = negotiation.revision();
        Self {
            client,
            server: agreed.map_or("none", Revision::as_str),
            era: agreed.map_or("none", |revision| revision.era().as_str()),
            outcome: negotiation.status(),
        }
    }
}

/// A method as a label.
fn label(method: Option<Method>) -> &'static str {
    method.map_or("other", Method::as_str)
}

impl Figures {
    /// What is counted about a server of this name; it goes on counting when the server is configured anew.
    pub(crate) fn server(&self, name: &str) -> Arc<ServerFigures> {
        let mut servers = self.servers();
        if let Some(known) = servers.get(name) {
            return Arc::clone(known);
        }
        let new = Arc::<ServerFigures>::default();
        servers.insert(Box::from(name), Arc::clone(&new));
        new
    }

    fn servers(&self) -> std::sync::MutexGuard<'_, BTreeMap<Box<str>, Arc<ServerFigures>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the servers that are not among these.
    pub(crate) fn keep_only(&self, is_served: impl Fn(&str) -> bool) {
        self.servers().retain(|name, _| is_served(name));
    }

    /// Another config was taken, or not.
    pub(crate) fn reloaded(&self, outcome: ReloadOutcome) {
        self.reloads.add(outcome.as_str());
    }

    /// Nothing that is served has the name or address that a request is about.
    pub(crate) fn unrouted(&self, method: Method) {
        self.denials
            .add((method.as_str(), Reason::UnknownName.as_str()));
    }

    /// A filter has refused a request or its result, or could not be asked about it.
    pub(crate) fn filtered(&self, method: Option<Method>, reason: Reason) {
        self.denials.add((label(method), reason.as_str()));
    }

    /// Writes everything down that was counted.
    pub(crate) fn write(&self, out: &mut Exposition) {
        let servers = self.servers().clone();
        self.write_agreements(out, &servers);
        let mut family = out.counter(
            "denials_total",
            "Client requests refused by the gateway or a filter, by reason",
        );
        for ((method, reason), count) in self.denials.all() {
            family.row(&[("method", method), ("reason", reason)], count);
        }
        let mut family = out.counter("withheld_total", "Messages not sent to clients, by reason");
        for ((method, reason), count) in self.withheld.all() {
            family.row(&[("method", method), ("reason", reason)], count);
        }
        let mut family = out.counter(
            "dropped_total",
            "Received messages not forwarded, by side and reason",
        );
        for (reason, count) in self.dropped.all() {
            let labels = [("side", "client"), ("server", ""), ("reason", reason)];
            family.row(&labels, count);
        }
        for (name, server) in &servers {
            for (reason, count) in server.dropped.all() {
                let labels = [("side", "server"), ("server", name), ("reason", reason)];
                family.row(&labels, count);
            }
        }
        let mut family = out.counter("reloads_total", "Config reloads, by outcome");
        for (outcome, count) in self.reloads.all() {
            family.row(&[("outcome", outcome)], count);
        }
        write_calls(out, &servers);
        write_lists(out, &servers);
        write_lives(out, &servers);
    }

    fn write_agreements(
        &self,
        out: &mut Exposition,
        servers: &BTreeMap<Box<str>, Arc<ServerFigures>>,
    ) {
        let mut family = out.counter(
            "negotiations_total",
            "Negotiations with clients and servers, by requested and negotiated revision and outcome",
        );
        let with_clients = self.negotiations.all().into_iter();
        let with_clients = with_clients.map(|(agreement, count)| ("client", "", agreement, count));
        let with_servers = servers.iter().flat_map(|(name, server)| {
            let all = server.negotiations.all().into_iter();
            all.map(move |(agreement, count)| ("server", &**name, agreement, count))
        });
        for (with, server, agreement, count) in with_clients.chain(with_servers) {
            let labels = [
                ("with", with),
                ("server", server),
                ("client_revision", agreement.client),
                ("server_revision", agreement.server),
                ("era", agreement.era),
                ("outcome", agreement.outcome),
            ];
            family.row(&labels, count);
        }
    }
}

fn write_calls(out: &mut Exposition, servers: &BTreeMap<Box<str>, Arc<ServerFigures>>) {
    let mut family = out.counter(
        "translations_total",
        "Requests translated between revisions, by kind",
    );
    for (name, server) in servers {
        for crossing in server.crossings.all() {
            let labels = [
                ("server", &**name),
                ("client_revision", crossing.down.as_str()),
                ("server_revision", crossing.up.as_str()),
                ("kind", crossing.kind),
            ];
            family.row(&labels, crossing.count);
        }
    }
    let mut family = out.counter("requests_total", "Requests to servers, by outcome");
    for (name, server) in servers {
        for (method, outcome, count) in server.calls.outcomes() {
            let labels = [
                ("server", &**name),
                ("method", label(method)),
                ("outcome", outcome),
            ];
            family.row(&labels, count);
        }
    }
    let mut family = out.histogram(
        "request_duration_seconds",
        "Duration of requests to servers, including gateway overhead",
    );
    for (name, server) in servers {
        for (method, latency) in server.calls.latencies() {
            family.spread(&[("server", &**name), ("method", label(method))], &latency);
        }
    }
}

fn write_lists(out: &mut Exposition, servers: &BTreeMap<Box<str>, Arc<ServerFigures>>) {
    let mut family = out.counter(
        "list_requests_total",
        "List requests to servers, by cache hit or miss",
    );
    for (name, server) in servers {
        let counts = [("hit", &server.lists_kept), ("miss", &server.lists_fetched)];
        for (cache, count) in counts {
            let labels = [("server", &**name), ("cache", cache)];
            family.row(&labels, count.load(Ordering::Relaxed));
        }
    }
}

/// What is counted rarely about a server, in a table.
struct Kept {
    name: &'static str,
    help: &'static str,
    of: fn(&ServerFigures) -> &Tally<&'static str>,
}

const LIVES: [Kept; 3] = [
    Kept {
        name: "instance_starts_total",
        help: "Server instances started, by cause",
        of: |server| &server.starts,
    },
    Kept {
        name: "instance_stops_total",
        help: "Server instances stopped, by cause",
        of: |server| &server.stops,
    },
    Kept {
        name: "instance_failures_total",
        help: "Failed starts, failed negotiations and lost server instances, by cause",
        of: |server| &server.failures,
    },
];

fn write_lives(out: &mut Exposition, servers: &BTreeMap<Box<str>, Arc<ServerFigures>>) {
    for Kept { name, help, of } in LIVES {
        let mut family = out.counter(name, help);
        for (server, figures) in servers {
            for (cause, count) in of(figures).all() {
                family.row(&[("server", server), ("cause", cause)], count);
            }
        }
    }
    let mut family = out.counter(
        "instance_restarts_total",
        "Server instances started after a failure",
    );
    for (server, figures) in servers {
        let count = figures.restarts.load(Ordering::Relaxed);
        family.row(&[("server", server)], count);
    }
}

impl Watch for Figures {
    fn negotiated(&self, negotiation: &Negotiation) {
        self.negotiations.add(Agreement::of(negotiation));
    }

    fn refused(&self, refused: Refused) {
        self.denials.add((label(refused.method), refused.reason));
    }

    fn withheld(&self, misuse: &ApiMisuse) {
        self.withheld.add((label(misuse.method()), misuse.reason()));
    }

    fn dropped(&self, why: DropCause) {
        self.dropped.add(why.as_str());
    }

    fn missed(&self, method: Method) {
        self.withheld
            .add((method.as_str(), Reason::ClientTooSlow.as_str()));
    }
}

impl ServerFigures {
    /// A request begins.
    pub(crate) fn routed(&self, method: Option<Method>) -> Routed<'_> {
        self.calls.routed(method)
    }

    /// What becomes of a request.
    pub(crate) fn crosses(&self, down: Revision, up: Revision, plan: Plan) {
        self.crossings.add(down, up, plan);
    }

    /// A negotiation with the server has ended.
    pub(crate) fn negotiated(&self, negotiation: &Negotiation) {
        self.negotiations.add(Agreement::of(negotiation));
    }

    /// An instance is started.
    pub(crate) fn started(&self, cause: &'static str, is_again: bool) {
        self.starts.add(cause);
        if is_again {
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An instance was stopped.
    pub(crate) fn stopped(&self, cause: &'static str) {
        self.stops.add(cause);
    }

    /// An instance failed.
    pub(crate) fn failed(&self, cause: Reason) {
        self.failures.add(cause.as_str());
    }

    /// A list of the server was needed.
    pub(crate) fn list_needed(&self, is_kept: bool) {
        let count = if is_kept {
            &self.lists_kept
        } else {
            &self.lists_fetched
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Something that the server sent was not passed on.
    pub(crate) fn dropped(&self, why: DropReason) {
        self.dropped.add(why.as_str());
    }
}

#[cfg(test)]
mod tests;
