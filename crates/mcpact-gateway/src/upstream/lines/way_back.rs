//! Where a server on lines hears what it asked.

use std::sync::Arc;

use super::Shared;
use crate::upstream::ask::{self, Ask};

/// The way back to a server that asks.
#[derive(Debug)]
pub(in crate::upstream) struct WayBack(Arc<Shared>);

impl WayBack {
    /// The question, to be answered there.
    pub(super) fn of(shared: &Arc<Shared>, ask: Ask) -> Ask {
        ask.due(ask::WayBack::Lines(Self(Arc::clone(shared))))
    }

    /// Answers, once there is room for it.
    pub(in crate::upstream) async fn send(&self, text: String) {
        // Whoever has gone needs to hear nothing.
        let _ = self.0.send(None, text).await;
    }

    /// Answers at once.
    pub(in crate::upstream) fn push(&self, text: String) {
        self.0.push(text);
    }
}
