//! A gateway does not serve itself.

use std::fmt::Write as _;
use std::net::SocketAddr;

use mcpact::server::backend::date;
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;
use mcpact_transport::http::server::Arrival;
use mcpact_wire::raw::ObjectWriter;

use super::Gateway;
use crate::catalog::Catalog;
use crate::chronicle::EntryKind;
use crate::target::{Target, VIA};

/// What is told of a server that is the gateway itself.
const ITSELF: &str = "server_is_itself";

/// What tells requests of a gateway from those of everybody else.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// One that no other gateway has.
    pub(super) fn random() -> Self {
        let mut bytes = [0; 16];
        // Without randomness all gateways would be alike, and have no mark.
        let is_random = getrandom::fill(&mut bytes).is_ok();
        let mut text = String::new();
        for byte in bytes.iter().filter(|_| is_random) {
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Puts it on everything that is sent there: an address does not tell where it leads.
    pub(super) fn put_on(&self, target: &mut Target) {
        if let Target::Url { settings, .. } = target
            && !self.0.is_empty()
        {
            // Name and value can always be sent.
            let _ = settings.headers.insert(VIA, &self.0);
        }
    }

    /// Refuses what this very gateway sent.
    pub(super) fn refuse_own(&self, arrival: &Arrival) -> Result<(), WireError> {
        let mut marks = arrival.headers.get_all(VIA).iter();
        if self.0.is_empty() || !marks.any(|mark| mark.as_bytes() == self.0.as_bytes()) {
            return Ok(());
        }
        let data = ObjectWriter::new().text("reason", ITSELF);
        Err(WireError {
            code: ErrorCode::InvalidRequest.code(),
            message: String::from(
                "this server is the gateway itself, which does not serve itself; take it out of the config, or let its `url` lead elsewhere",
            ),
            data: Some(data.finish()),
            http_status: 508,
        })
    }
}

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
        self.forget_figures();
    }

    /// Whoever asked sees the status alone, and the words are for its owner, who is ours.
    pub(super) fn tell_of_itself(&self, why: &str) {
        tracing::warn!(
            event = ITSELF,
            why,
            "a request of this gateway came back to it"
        );
        let text = format!("a request of this gateway came back to it, and was refused: {why}");
        let journal = self.chronicle.own_journal();
        journal.write(date(), None, EntryKind::Event(ITSELF), &text);
    }

    /// Switches off what leads back here: each of its lists would be one of ours and change with it.
    pub(super) fn leave_out_itself(&self, catalog: &mut Catalog) {
        let Some(address) = self.address.get() else {
            return;
        };
        for name in catalog.leading_back_to(*address) {
            tracing::warn!(event = ITSELF, server = %name, %address, "a server is this gateway itself, and is left out");
            let text = format!("`{name}` is this gateway itself, and is left out");
            let journal = self.chronicle.own_journal();
            journal.write(date(), None, EntryKind::Event(ITSELF), &text);
            if let Some(server) = catalog.servers.get_mut(&name) {
                server.enabled = false;
            }
        }
    }
}
