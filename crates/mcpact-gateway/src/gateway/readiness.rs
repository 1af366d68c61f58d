//! `/readyz`: readiness of the gateway and its servers.

use mcpact_transport::http::server::HttpResponse;
use mcpact_wire::raw::ObjectWriter;

use super::{Gateway, ServerRoute, State};
use crate::error::NEXT_START_IN;
use crate::supervisor::{InstanceState, ServerStatus};

/// Readiness of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// It is available, or not tried yet.
    Usable,
    /// It is unavailable.
    Unavailable,
    /// It has fewer instances than `min_ready`.
    BelowMinimum,
}

/// Returns the readiness of a server that must have this number of instances.
fn server_readiness(minimum: usize, status: &ServerStatus, is_missing: bool) -> Readiness {
    let is_open =
        |state: &InstanceState| matches!(state, InstanceState::Ready | InstanceState::Busy { .. });
    let open = status.instances.iter();
    let open = open.filter(|instance| is_open(&instance.state)).count();
    let is_paused = status.state.wait().is_some();
    if open < minimum {
        Readiness::BelowMinimum
    } else if is_missing || is_paused {
        Readiness::Unavailable
    } else {
        Readiness::Usable
    }
}

/// Returns true if the gateway is not draining, no server is below its minimum, and some server is usable.
fn is_ready(is_draining: bool, servers: &[Readiness]) -> bool {
    let is_usable = servers.is_empty() || servers.contains(&Readiness::Usable);
    !is_draining && is_usable && !servers.contains(&Readiness::BelowMinimum)
}

/// Returns the response to `/readyz`.
pub(super) fn response(gateway: &Gateway, state: &State) -> HttpResponse {
    let is_draining = gateway.drain_gate.is_closed();
    let mut readiness = Vec::new();
    let mut servers = ObjectWriter::new();
    for (name, served) in &state.servers {
        let status = served.entry.server().status();
        let failure = served.entry.failure_in_short();
        let minimum = served.entry.server().min_instances();
        let ready = server_readiness(minimum, &status, failure.is_some());
        readiness.push(ready);
        let described = describe(served, ready, &status, failure.as_deref());
        servers = servers.raw(name.as_str(), &described);
    }
    for name in state.catalog.wrong.keys() {
        readiness.push(Readiness::Unavailable);
        servers = servers.raw(name.as_str(), WRONG);
    }
    let is_ready = is_ready(is_draining, &readiness);
    let body = ObjectWriter::new()
        .raw("ready", &is_ready.to_string())
        .raw("draining", &is_draining.to_string())
        .raw("servers", &servers.finish())
        .finish();
    HttpResponse::json(if is_ready { 200 } else { 503 }, format!("{body}\n"))
}

/// Entry of a server with an invalid config; only `mcpact status` shows the cause.
const WRONG: &str =
    r#"{"ready":false,"state":"wrong","why":"invalid config; run `mcpact status` for the cause"}"#;

/// Returns the entry of one server.
fn describe(
    served: &ServerRoute,
    readiness: Readiness,
    status: &ServerStatus,
    failure: Option<&str>,
) -> String {
    let is_ready = readiness == Readiness::Usable;
    let mut out = ObjectWriter::new()
        .raw("ready", &is_ready.to_string())
        .text("state", status.word(failure.is_some()));
    if let Some(revision) = served.entry.report().revision {
        out = out.text("revision", revision.as_str());
    }
    if !is_ready {
        // Without stderr lines, which are for the operator.
        let last = status.last_error.as_ref();
        let last = last.map(|last| last.why.in_short());
        let why = failure.or(last.as_deref()).unwrap_or("starting");
        out = match status.state.wait().filter(|wait| !wait.is_zero()) {
            None => out.text("why", why),
            Some(wait) => out.text("why", &format!("{why}; {NEXT_START_IN}{wait:.1?}")),
        };
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server below its minimum or a draining gateway is not ready; an unavailable server beside others does not matter.
    #[test]
    fn gateway_readiness_depends_on_the_servers() {
        use Readiness::{BelowMinimum, Unavailable, Usable};
        let cells: [(bool, &[Readiness], bool); 7] = [
            (false, &[], true),
            (false, &[Usable, Usable], true),
            (false, &[Usable, Unavailable], true),
            (false, &[Unavailable, Unavailable], false),
            (false, &[Usable, BelowMinimum], false),
            (true, &[Usable], false),
            (true, &[], false),
        ];
        for (is_draining, servers, expected) in cells {
            let found = is_ready(is_draining, servers);
            assert_eq!(found, expected, "{is_draining} {servers:?}");
        }
    }
}
