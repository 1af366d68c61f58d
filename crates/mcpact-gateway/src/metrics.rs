//! Metrics of a gateway.
//!
//! A gateway owns one [`Metrics`] and passes it down; nothing is global. Metrics of every call are atomics in arrays
//! (`calls`), rarer events are counted in small tables ([`LabelCounter`]). Every label has few values: revisions, methods
//! that a revision defines, stable strings and configured server names. Clients and servers cannot choose label values.
//! `exposition` writes the Prometheus text format.

mod calls;
mod exposition;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpact::server::DecisionObserver;
use mcpact_config::shortened;
use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_spec::{Method, Revision, Side};
use mcpact_translate::plan::Plan;
use mcpact_wire::model::implementation::Implementation;

use self::calls::{CallMetrics, LabelCounter, TranslationCounters};
pub(crate) use self::calls::{CallTimer, KINDS, Outcome};
pub(crate) use self::exposition::{CONTENT_TYPE, Exposition};
use crate::reason::{Reason, ReloadOutcome};
use crate::sync::lock;

/// Labels of a negotiation.
const NEGOTIATION_LABELS: [&str; 4] = ["client_revision", "server_revision", "era", "outcome"];

/// Metrics of servers by name.
type Servers = BTreeMap<Box<str>, Arc<ServerMetrics>>;

/// Metrics of a gateway and its servers.
#[derive(Debug, Default)]
pub struct Metrics {
    negotiations: LabelCounter<4>,
    denials: LabelCounter<2>,
    withheld: LabelCounter<2>,
    dropped: LabelCounter<1>,
    reloads: LabelCounter<1>,
    servers: Mutex<Servers>,
    /// Latest clients with wrongly typed capabilities, for the status.
    ignored: Mutex<VecDeque<String>>,
}

/// Metrics of one server.
#[derive(Debug, Default)]
pub struct ServerMetrics {
    calls: CallMetrics,
    translations: TranslationCounters,
    negotiations: LabelCounter<4>,
    starts: LabelCounter<1>,
    restarts: AtomicU64,
    stops: LabelCounter<1>,
    failures: LabelCounter<1>,
    dropped: LabelCounter<1>,
    list_hits: AtomicU64,
    list_misses: AtomicU64,
}

/// Number of clients with wrongly typed capabilities that are remembered.
const MAX_IGNORED: usize = 8;

/// Returns the values of [`NEGOTIATION_LABELS`].
fn negotiation_labels(negotiation: &Negotiation) -> [&'static str; 4] {
    let client = match negotiation.requested.as_deref().map(Revision::parse) {
        Some(Some(revision)) => revision.as_str(),
        Some(None) => "other",
        None => "none",
    };
    let agreed = negotiation.revision();
    let server = agreed.map_or("none", Revision::as_str);
    let era = agreed.map_or("none", |revision| revision.era().as_str());
    [client, server, era, negotiation.status()]
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
        self.reloads.add([outcome.as_str()]);
    }

    /// Counts a request for a name or URI that no server has.
    pub(crate) fn unrouted(&self, method: Method) {
        self.filtered(Some(method), Reason::UnknownName);
    }

    /// Counts a request that a filter denied or did not answer for.
    pub(crate) fn filtered(&self, method: Option<Method>, reason: Reason) {
        self.denials.add([label(method), reason.as_str()]);
    }

    /// Returns the latest clients with wrongly typed capabilities, and the capabilities.
    pub(crate) fn ignored(&self) -> Vec<String> {
        lock(&self.ignored).iter().cloned().collect()
    }

    fn note_ignored(&self, negotiation: &Negotiation) {
        let Some(fault) = negotiation.ignored(Side::Client).first() else {
            return;
        };
        let info = negotiation.info(Side::Client);
        let name = info.map_or("a client without a name", Implementation::name);
        let line = format!("{}: {}", shortened(name), shortened(&fault.to_string()));
        let mut ignored = lock(&self.ignored);
        ignored.retain(|known| *known != line);
        if ignored.len() >= MAX_IGNORED {
            ignored.pop_front();
        }
        ignored.push_back(line);
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, out: &mut Exposition) {
        let servers = lock(&self.servers).clone();
        out.counter(
            "negotiations_total",
            "Negotiations with clients and servers, by requested and negotiated revision and outcome",
        );
        let clients = [("with", "client"), ("server", "")];
        self.negotiations.write(out, &clients, NEGOTIATION_LABELS);
        for (name, server) in &servers {
            let labels = [("with", "server"), ("server", &**name)];
            server.negotiations.write(out, &labels, NEGOTIATION_LABELS);
        }
        out.counter(
            "denials_total",
            "Client requests refused by the gateway or a filter, by reason",
        );
        self.denials.write(out, &[], ["method", "reason"]);
        out.counter("withheld_total", "Messages not sent to clients, by reason");
        self.withheld.write(out, &[], ["method", "reason"]);
        out.counter(
            "dropped_total",
            "Received messages not forwarded, by side and reason",
        );
        let clients = [("side", "client"), ("server", "")];
        self.dropped.write(out, &clients, ["reason"]);
        for (name, server) in &servers {
            let labels = [("side", "server"), ("server", &**name)];
            server.dropped.write(out, &labels, ["reason"]);
        }
        out.counter("reloads_total", "Config reloads, by outcome");
        self.reloads.write(out, &[], ["outcome"]);
        write_calls(out, &servers);
        write_lists(out, &servers);
        write_instances(out, &servers);
    }
}

fn write_calls(out: &mut Exposition, servers: &Servers) {
    out.counter(
        "translations_total",
        "Requests translated between revisions, by kind",
    );
    for (name, server) in servers {
        server.translations.write(out, name);
    }
    out.counter("requests_total", "Requests to servers, by outcome");
    for (name, server) in servers {
        server.calls.write_outcomes(out, name);
    }
    out.histogram(
        "request_duration_seconds",
        "Duration of requests to servers, including gateway overhead",
    );
    for (name, server) in servers {
        server.calls.write_durations(out, name);
    }
}

fn write_lists(out: &mut Exposition, servers: &Servers) {
    out.counter(
        "list_requests_total",
        "List requests to servers, by cache hit or miss",
    );
    for (name, server) in servers {
        let counts = [("hit", &server.list_hits), ("miss", &server.list_misses)];
        for (cache, count) in counts {
            let labels = [("server", &**name), ("cache", cache)];
            out.row(&labels, count.load(Ordering::Relaxed));
        }
    }
}

fn write_instances(out: &mut Exposition, servers: &Servers) {
    out.counter(
        "instance_starts_total",
        "Server instances started, by cause",
    );
    for (server, metrics) in servers {
        metrics.starts.write(out, &[("server", server)], ["cause"]);
    }
    out.counter("instance_stops_total", "Server instances stopped, by cause");
    for (server, metrics) in servers {
        metrics.stops.write(out, &[("server", server)], ["cause"]);
    }
    out.counter(
        "instance_failures_total",
        "Failed starts, failed negotiations and lost server instances, by cause",
    );
    for (server, metrics) in servers {
        metrics
            .failures
            .write(out, &[("server", server)], ["cause"]);
    }
    out.counter(
        "instance_restarts_total",
        "Server instances started after a failure",
    );
    for (server, metrics) in servers {
        let count = metrics.restarts.load(Ordering::Relaxed);
        out.row(&[("server", server)], count);
    }
}

impl DecisionObserver for Metrics {
    fn negotiated(&self, negotiation: &Negotiation) {
        self.negotiations.add(negotiation_labels(negotiation));
        self.note_ignored(negotiation);
    }

    fn refused(&self, refused: Refused) {
        self.denials.add([label(refused.method), refused.reason]);
    }

    fn withheld(&self, misuse: &ApiMisuse) {
        self.withheld.add([label(misuse.method()), misuse.reason()]);
    }

    fn dropped(&self, why: DropCause) {
        self.dropped.add([why.as_str()]);
    }

    fn missed(&self, method: Method) {
        self.withheld
            .add([method.as_str(), Reason::ClientTooSlow.as_str()]);
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
        self.negotiations.add(negotiation_labels(negotiation));
    }

    /// Counts the start of an instance.
    pub(crate) fn started(&self, cause: &'static str, is_restart: bool) {
        self.starts.add([cause]);
        if is_restart {
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the stop of an instance.
    pub(crate) fn stopped(&self, cause: &'static str) {
        self.stops.add([cause]);
    }

    /// Counts the failure of an instance.
    pub(crate) fn failed(&self, cause: Reason) {
        self.failures.add([cause.as_str()]);
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
        self.dropped.add([reason]);
    }
}

#[cfg(test)]
mod tests;
