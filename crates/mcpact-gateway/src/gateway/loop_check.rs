//! Refuses requests that would come back to this gateway.

use std::sync::Arc;
use std::time::Instant;

use http::Method as Verb;
use mcpact::server::backend::date;
use mcpact::server::router::{HttpRoute, RouteDecision};
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;
use mcpact_transport::http::server::HttpRequest;
use mcpact_wire::raw::ObjectWriter;

use super::Gateway;
use crate::aggregate::server_entry::ServerEntry;
use crate::event_history::LogEntryKind;
use crate::gateway::routing::refused;
use crate::loop_detection::{LOOP_DETECTED, Route, Via};
use crate::stable::{LogEvent, Reason};

const EVENT: &str = LogEvent::ServersInACircle.as_str();

/// Cause and remedy, for the gateway that sent the request.
const MESSAGE: &str = "proxy loop detected: this request would come back to the gateway that sent it; remove one of the \
                       gateways from the config of the other, or use the URL of a single server (`/servers/NAME/mcp`) \
                       that does not lead back";

/// Servers behind an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All servers, also those that are added later.
    All,
    /// Only those listed.
    Listed,
}

/// Passes a request on to the backend of these servers, unless it would come back to one of them.
pub(super) fn through<'m>(
    gateway: &Gateway,
    door: &HttpRoute,
    entries: impl IntoIterator<Item = &'m Arc<ServerEntry>>,
    scope: Scope,
    arrival: &HttpRequest,
) -> RouteDecision {
    let Some(via) = Via::parse(&arrival.headers) else {
        return RouteDecision::To(door.clone());
    };
    let entries = entries.into_iter();
    let routes: Vec<&Arc<Route>> = entries
        .filter_map(|entry| entry.server().route.as_ref())
        .collect();
    // The end of a session leads to no request upstream.
    if arrival.verb != Verb::DELETE {
        if gateway.loops.closes_loop(&via, routes.iter().copied()) {
            report_loop(gateway);
            return RouteDecision::Respond(refused(&loop_error(), arrival));
        }
        let servers = match scope {
            Scope::All => vec![None],
            Scope::Listed => routes
                .iter()
                .map(|route| Some(route.server().clone()))
                .collect(),
        };
        gateway.loops.record(&via, servers, Instant::now());
    }
    RouteDecision::To(door.clone())
}

/// Reports a loop to the operators of this gateway.
fn report_loop(gateway: &Gateway) {
    tracing::warn!(event = EVENT, "proxy loop detected; request refused");
    let log = gateway.event_history.gateway_log();
    let text = "proxy loop detected; request refused";
    log.write(date(), None, LogEntryKind::Event(EVENT), text);
}

fn loop_error() -> WireError {
    let data = ObjectWriter::new().text("reason", Reason::ServersInACircle.as_str());
    WireError {
        code: ErrorCode::InvalidRequest.code(),
        message: String::from(MESSAGE),
        data: Some(data.finish()),
        http_status: LOOP_DETECTED,
    }
}
