//! Skips servers whose URL is this gateway, for example because a client config that the gateway reads contains it.

use std::net::SocketAddr;

use mcpact::server::backend::date;
use mcpact_config::Catalog;

use super::Gateway;
use crate::event_history::LogEntryKind;
use crate::stable::LogEvent;

const ITSELF: &str = LogEvent::ServerIsItself.as_str();

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
        tracing::warn!(event = ITSELF, server = %name, %address, "server skipped: its URL is this gateway");
        let text = format!("server `{name}` skipped: its URL is this gateway");
        let log = gateway.event_history.gateway_log();
        log.write(date(), None, LogEntryKind::Event(ITSELF), &text);
        if let Some(server) = catalog.servers.get_mut(&name) {
            server.enabled = false;
        }
    }
}
