//! Proxy loops: refuses requests that would return to this gateway, and skips servers whose URL is this gateway, for
//! example because a client config that the gateway reads contains it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use http::Method as Verb;
use mcpact::server::backend::date;
use mcpact::server::router::{HttpRoute, RouteDecision};
use mcpact_config::Catalog;
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;
use mcpact_transport::http::server::HttpRequest;
use mcpact_wire::raw::ObjectWriter;

use super::Gateway;
use crate::aggregate::server_entry::ServerEntry;
use crate::gateway::routing::refused;
use crate::loop_detection::{LOOP_DETECTED, Route, Via};
use crate::reason::{LogEvent, Reason};

/// Cause and remedy, for the gateway that sent the request.
const MESSAGE: &str = "proxy loop detected: this request would come back to the gateway that sent it; remove one of the \
                       gateways from the config of the other, or use the URL of a single server (`/servers/NAME/mcp`) \
                       that does not lead back";

/// Passes a request on to the backend of these servers, unless it would return to one of them. `is_for_all` says that the
/// endpoint also serves servers that are added later.
pub(super) fn through<'m>(
    gateway: &Gateway,
    route: &HttpRoute,
    entries: impl IntoIterator<Item = &'m Arc<ServerEntry>>,
    is_for_all: bool,
    request: &HttpRequest,
) -> RouteDecision {
    let Some(via) = Via::parse(&request.headers) else {
        return RouteDecision::To(route.clone());
    };
    let entries = entries.into_iter();
    let routes: Vec<&Arc<Route>> = entries
        .filter_map(|entry| entry.server().route.as_ref())
        .collect();
    // The end of a session leads to no request upstream.
    if request.verb != Verb::DELETE {
        if gateway.loops.closes_loop(&via, routes.iter().copied()) {
            let event = LogEvent::ServersInACircle;
            let text = "proxy loop detected; request refused";
            tracing::warn!(event = event.as_str(), "{text}");
            gateway.record(date(), event, text);
            let data = ObjectWriter::new().text("reason", Reason::ServersInACircle.as_str());
            let error = WireError {
                code: ErrorCode::InvalidRequest.code(),
                message: String::from(MESSAGE),
                data: Some(data.finish()),
                http_status: LOOP_DETECTED,
            };
            return RouteDecision::Respond(refused(&error, request));
        }
        let servers = if is_for_all {
            vec![None]
        } else {
            let servers = routes.iter().map(|route| Some(route.server.clone()));
            servers.collect()
        };
        gateway.loops.record(&via, servers, Instant::now());
    }
    RouteDecision::To(route.clone())
}

/// Records the listen address, and skips servers with the URL of this gateway.
pub(super) fn set_address(gateway: &Gateway, address: SocketAddr) {
    // The address is set once.
    let _ = gateway.address.set(address);
    let catalog = gateway.state().catalog.clone();
    if catalog.with_url_of(address).is_empty() {
        return;
    }
    // Servers are only removed, so this cannot fail.
    let _ = gateway.apply(catalog);
    gateway.prune_metrics();
}

/// Disables servers with the URL of this gateway.
pub(super) fn skip_own_url(gateway: &Gateway, catalog: &mut Catalog) {
    let Some(address) = gateway.address.get() else {
        return;
    };
    for name in catalog.with_url_of(*address) {
        let event = LogEvent::ServerIsItself;
        tracing::warn!(event = event.as_str(), server = %name, %address, "server skipped: its URL is this gateway");
        let text = format!("server `{name}` skipped: its URL is this gateway");
        gateway.record(date(), event, &text);
        if let Some(server) = catalog.servers.get_mut(&name) {
            server.enabled = false;
        }
    }
}
