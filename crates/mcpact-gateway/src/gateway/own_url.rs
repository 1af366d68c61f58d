//! Skips servers whose URL is this gateway, for example because a client config that the gateway reads contains it.

use std::net::SocketAddr;

use mcpact::server::backend::date;
use mcpact_config::Catalog;

use super::Gateway;
use crate::event_history::LogEntryKind;
use crate::stable::LogEvent;

const ITSELF: &str = LogEvent::ServerIsItself.as_str();

impl Gateway {
    /// Records the listen address, and skips servers with the URL of this gateway.
    pub(super) fn set_address(&self, address: SocketAddr) {
        // The address is set once.
        let _ = self.address.set(address);
        let catalog = self.state().catalog.clone();
        if catalog.with_url_of(address).is_empty() {
            return;
        }
        // Servers are only removed, so this cannot fail.
        let _ = self.apply(catalog);
        self.prune_metrics();
    }

    /// Disables servers with the URL of this gateway.
    pub(super) fn skip_own_url(&self, catalog: &mut Catalog) {
        let Some(address) = self.address.get() else {
            return;
        };
        for name in catalog.with_url_of(*address) {
            tracing::warn!(event = ITSELF, server = %name, %address, "server skipped: its URL is this gateway");
            let text = format!("server `{name}` skipped: its URL is this gateway");
            let log = self.event_history.gateway_log();
            log.write(date(), None, LogEntryKind::Event(ITSELF), &text);
            if let Some(server) = catalog.servers.get_mut(&name) {
                server.enabled = false;
            }
        }
    }
}
