//! What the log hears of the negotiations of a client.

use mcpact_engine::client::TransportKind;
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::transcript::{Transcript, TranscriptEvent};
use mcpact_transport::stdio::child::Masks;

use super::witness::Asking;

/// Writes down the negotiations of whoever drives the client machine, as the library's own client does.
#[derive(Debug)]
pub struct Diary {
    transport_id: String,
    masks: Masks,
    open: Option<Page>,
}

/// A negotiation that goes on, and how much of its trail was told.
#[derive(Debug)]
struct Page {
    asking: Asking,
    told: usize,
}

impl Diary {
    /// For a client on this kind of carrier.
    #[must_use]
    pub fn new(carrier: TransportKind) -> Self {
        let kind = match carrier {
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

    /// The same, in which nobody reads these values, even if the server repeats them.
    #[must_use]
    pub fn covering(self, masks: Masks) -> Self {
        Self { masks, ..self }
    }

    /// A negotiation begins, or goes on with a carrier that was opened anew.
    pub fn begin(&mut self, server: &str) {
        self.open.get_or_insert_with(|| Page {
            asking: Asking::new(&self.transport_id, server, self.masks.clone()),
            told: 0,
        });
    }

    /// Tells what is new on the trail, and how it ended.
    pub fn follow(&mut self, trail: &Transcript, ended: Option<Box<Negotiation>>) {
        let Some(page) = &mut self.open else {
            return;
        };
        let events = trail.events();
        for event in events.get(page.told..).unwrap_or_default() {
            if let TranscriptEvent::Probed { saw, concluded } = event {
                page.asking.step(saw, concluded);
            }
        }
        page.told = events.len();
        if let Some(negotiation) = ended
            && let Some(page) = self.open.take()
        {
            page.asking.end(&negotiation);
        }
    }
}
