//! A gateway does not serve itself.

use std::net::SocketAddr;

use mcpact::server::backend::date;
use mcpact_config::Catalog;

use super::Gateway;
use crate::event_history::LogEntryKind;
use crate::stable::LogEvent;

const ITSELF: &str = LogEvent::ServerIsItself.as_str();

impl Gateway {
    /// From here on it is known where the gateway listens, and what leads back there is served no longer.
    pub(super) fn listens_on(&self, address: SocketAddr) {
        // It listens once.
        let _ = self.address.set(address);
        let catalog = self.state().catalog.clone();
        if catalog.leading_back_to(address).is_empty() {
            return;
        }
        // Nothing is made anew, so that nothing can fail which did not fail before.
        let _ = self.apply(catalog);
        self.prune_metrics();
    }

    /// Switches off what leads back here: each of its lists would be one of ours and change with it.
    pub(super) fn leave_out_itself(&self, catalog: &mut Catalog) {
        let Some(address) = self.address.get() else {
            return;
        };
        for name in catalog.leading_back_to(*address) {
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
