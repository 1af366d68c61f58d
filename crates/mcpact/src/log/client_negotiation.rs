//! Log of a client's negotiations.

use mcpact_engine::client::TransportKind;
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::transcript::{Transcript, TranscriptEvent};
use mcpact_transport::stdio::child::Masks;

use super::negotiation::OngoingNegotiation;

/// Logs the negotiations of a client, such as [`Client`](crate::client::Client) or a gateway's upstream connection.
#[derive(Debug)]
pub struct NegotiationLog {
    transport_id: String,
    masks: Masks,
    open: Option<OpenNegotiation>,
}

/// Open negotiation and the number of transcript events already logged.
#[derive(Debug)]
struct OpenNegotiation {
    negotiation: OngoingNegotiation,
    logged: usize,
}

impl NegotiationLog {
    /// Creates the log of a client on this transport.
    #[must_use]
    pub fn new(transport: TransportKind) -> Self {
        let kind = match transport {
            TransportKind::Child => "child",
            TransportKind::Stream => "stream",
            TransportKind::Http => "http",
        };
        Self {
            transport_id: super::transport_id(kind),
            masks: Masks::default(),
            open: None,
        }
    }

    /// Masks these values in the log, even if the server repeats them.
    #[must_use]
    pub fn with_masks(self, masks: Masks) -> Self {
        Self { masks, ..self }
    }

    /// Starts a negotiation, or continues it on a reopened transport.
    pub fn begin(&mut self, server: &str) {
        self.open.get_or_insert_with(|| OpenNegotiation {
            negotiation: OngoingNegotiation::new(&self.transport_id, server, self.masks.clone()),
            logged: 0,
        });
    }

    /// Logs new transcript events, and the result if the negotiation ended.
    pub fn record(&mut self, transcript: &Transcript, ended: Option<Box<Negotiation>>) {
        let Some(open) = &mut self.open else {
            return;
        };
        let events = transcript.events();
        for event in events.get(open.logged..).unwrap_or_default() {
            if let TranscriptEvent::Probed { saw, concluded } = event {
                open.negotiation.step(saw, concluded);
            }
        }
        open.logged = events.len();
        if let Some(negotiation) = ended
            && let Some(open) = self.open.take()
        {
            open.negotiation.end(&negotiation);
        }
    }
}
