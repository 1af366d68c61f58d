//! Metrics of a gateway.
//!
//! A gateway owns one [`Metrics`] and passes it down; nothing is global. Metrics of every call are atomics in arrays
//! (`calls`), rarer events are counted in small tables ([`LabelCounter`]). Every label has few values: revisions, methods
//! that a revision defines, stable strings and configured server names. Clients and servers cannot choose label values.
//! `exposition` writes the Prometheus text format.

mod calls;
mod exposition;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpact::server::DecisionObserver;
use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_spec::{Method, Revision};
use mcpact_translate::plan::Plan;

use self::calls::{CallMetrics, LabelCounter, TranslationCounters};
pub(crate) use self::calls::{CallTimer, KINDS, Outcome};
pub(crate) use self::exposition::{CONTENT_TYPE, Exposition};
use crate::stable::{Reason, ReloadOutcome};
use crate::sync::lock;

/// Metrics of servers by name.
type Servers = BTreeMap<Box<str>, Arc<ServerMetrics>>;

/// Metrics of a gateway and its servers.
#[derive(Debug, Default)]
pub struct Metrics {
    negotiations: LabelCounter<NegotiationLabels>,
    denials: LabelCounter<(&'static str, &'static str)>,
    withheld: LabelCounter<(&'static str, &'static str)>,
    dropped: LabelCounter<&'static str>,
    reloads: LabelCounter<&'static str>,
    servers: Mutex<Servers>,
}

/// Metrics of one server.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    calls: CallMetrics,
    translations: TranslationCounters,
    negotiations: LabelCounter<NegotiationLabels>,
    starts: LabelCounter<&'static str>,
    restarts: AtomicU64,
    stops: LabelCounter<&'static str>,
    failures: LabelCounter<&'static str>,
    dropped: LabelCounter<&'static str>,
    list_hits: AtomicU64,
    list_misses: AtomicU64,
}

/// Labels of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NegotiationLabels {
    client: &'static str,
    server: &'static str,
    era: &'static str,
    outcome: &'static str,
}

impl NegotiationLabels {
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

/// Returns the label value of a method.
fn label(method: Option<Method>) -> &'static str {
    method.map_or("other", Method::as_str)
}

impl Metrics {
    /// Returns the metrics of a server; they survive a config change of the server.
    pub(crate) fn server(&self, name: &str) -> Arc<ServerMetrics> {
        Arc::clone(lock(&self.servers).entry(Box::from(name)).or_default())
    }

    /// Removes the metrics of all servers but these.
    pub(crate) fn keep_only(&self, is_served: impl Fn(&str) -> bool) {
        lock(&self.servers).retain(|name, _| is_served(name));
    }

    /// Counts a reload.
    pub(crate) fn reloaded(&self, outcome: ReloadOutcome) {
        self.reloads.add(outcome.as_str());
    }

    /// Counts a request for a name or URI that no server has.
    pub(crate) fn unrouted(&self, method: Method) {
        self.filtered(Some(method), Reason::UnknownName);
    }

    /// Counts a request that a filter denied or did not answer for.
    pub(crate) fn filtered(&self, method: Option<Method>, reason: Reason) {
        self.denials.add((label(method), reason.as_str()));
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, out: &mut Exposition) {
        let servers = lock(&self.servers).clone();
        self.write_negotiations(out, &servers);
        let refusals = [
            (
                "denials_total",
                "Client requests refused by the gateway or a filter, by reason",
                &self.denials,
            ),
            (
                "withheld_total",
                "Messages not sent to clients, by reason",
                &self.withheld,
            ),
        ];
        for (name, help, counter) in refusals {
            let mut family = out.counter(name, help);
            for ((method, reason), count) in counter.all() {
                family.row(&[("method", method), ("reason", reason)], count);
            }
        }
        let mut family = out.counter(
            "dropped_total",
            "Received messages not forwarded, by side and reason",
        );
        for (side, server, counter) in by_side(&self.dropped, &servers, |server| &server.dropped) {
            for (reason, count) in counter.all() {
                let labels = [("side", side), ("server", server), ("reason", reason)];
                family.row(&labels, count);
            }
        }
        let mut family = out.counter("reloads_total", "Config reloads, by outcome");
        for (outcome, count) in self.reloads.all() {
            family.row(&[("outcome", outcome)], count);
        }
        write_calls(out, &servers);
        write_lists(out, &servers);
        write_instances(out, &servers);
    }

    fn write_negotiations(&self, out: &mut Exposition, servers: &Servers) {
        let mut family = out.counter(
            "negotiations_total",
            "Negotiations with clients and servers, by requested and negotiated revision and outcome",
        );
        let counters = by_side(&self.negotiations, servers, |server| &server.negotiations);
        for (with, server, counter) in counters {
            for (negotiation, count) in counter.all() {
                let labels = [
                    ("with", with),
                    ("server", server),
                    ("client_revision", negotiation.client),
                    ("server_revision", negotiation.server),
                    ("era", negotiation.era),
                    ("outcome", negotiation.outcome),
                ];
                family.row(&labels, count);
            }
        }
    }
}

/// Returns the counter of the clients, then those of the servers, each with the side and the name of the server.
fn by_side<'a, K>(
    clients: &'a LabelCounter<K>,
    servers: &'a Servers,
    of_server: fn(&ServerMetrics) -> &LabelCounter<K>,
) -> impl Iterator<Item = (&'static str, &'a str, &'a LabelCounter<K>)> {
    let servers = servers
        .iter()
        .map(move |(name, server)| ("server", &**name, of_server(server)));
    std::iter::once(("client", "", clients)).chain(servers)
}

fn write_calls(out: &mut Exposition, servers: &Servers) {
    let mut family = out.counter(
        "translations_total",
        "Requests translated between revisions, by kind",
    );
    for (name, server) in servers {
        for (down, up, kind, count) in server.translations.all() {
            let labels = [
                ("server", &**name),
                ("client_revision", down.as_str()),
                ("server_revision", up.as_str()),
                ("kind", kind),
            ];
            family.row(&labels, count);
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
        for (method, durations) in server.calls.durations() {
            family.histogram(
                &[("server", &**name), ("method", label(method))],
                &durations,
            );
        }
    }
}

fn write_lists(out: &mut Exposition, servers: &Servers) {
    let mut family = out.counter(
        "list_requests_total",
        "List requests to servers, by cache hit or miss",
    );
    for (name, server) in servers {
        let counts = [("hit", &server.list_hits), ("miss", &server.list_misses)];
        for (cache, count) in counts {
            let labels = [("server", &**name), ("cache", cache)];
            family.row(&labels, count.load(Ordering::Relaxed));
        }
    }
}

fn write_instances(out: &mut Exposition, servers: &Servers) {
    type Counter = fn(&ServerMetrics) -> &LabelCounter<&'static str>;
    let counters: [(&str, &str, Counter); 3] = [
        (
            "instance_starts_total",
            "Server instances started, by cause",
            |server| &server.starts,
        ),
        (
            "instance_stops_total",
            "Server instances stopped, by cause",
            |server| &server.stops,
        ),
        (
            "instance_failures_total",
            "Failed starts, failed negotiations and lost server instances, by cause",
            |server| &server.failures,
        ),
    ];
    for (name, help, counter) in counters {
        let mut family = out.counter(name, help);
        for (server, metrics) in servers {
            for (cause, count) in counter(metrics).all() {
                family.row(&[("server", server), ("cause", cause)], count);
            }
        }
    }
    let mut family = out.counter(
        "instance_restarts_total",
        "Server instances started after a failure",
    );
    for (server, metrics) in servers {
        let count = metrics.restarts.load(Ordering::Relaxed);
        family.row(&[("server", server)], count);
    }
}

impl DecisionObserver for Metrics {
    fn negotiated(&self, negotiation: &Negotiation) {
        self.negotiations.add(NegotiationLabels::of(negotiation));
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

impl ServerMetrics {
    /// Starts the measurement of a request.
    pub(crate) fn start_call(&self, method: Option<Method>) -> CallTimer<'_> {
        self.calls.start(method)
    }

    /// Counts the translation of a request.
    pub(crate) fn translated(&self, down: Revision, up: Revision, plan: Plan) {
        self.translations.add(down, up, plan);
    }

    /// Counts a completed negotiation with the server.
    pub(crate) fn negotiated(&self, negotiation: &Negotiation) {
        self.negotiations.add(NegotiationLabels::of(negotiation));
    }

    /// Counts the start of an instance.
    pub(crate) fn started(&self, cause: &'static str, is_restart: bool) {
        self.starts.add(cause);
        if is_restart {
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the stop of an instance.
    pub(crate) fn stopped(&self, cause: &'static str) {
        self.stops.add(cause);
    }

    /// Counts the failure of an instance.
    pub(crate) fn failed(&self, cause: Reason) {
        self.failures.add(cause.as_str());
    }

    /// Counts a use of a list of the server.
    pub(crate) fn list_requested(&self, is_cached: bool) {
        let count = if is_cached {
            &self.list_hits
        } else {
            &self.list_misses
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message of the server that was not forwarded.
    pub(crate) fn dropped(&self, reason: &'static str) {
        self.dropped.add(reason);
    }
}

#[cfg(test)]
mod tests;
