//! Reopening of lost change streams: the delays, and notifications of changes that may have been missed.

use std::time::Duration;

use mcpact::connection::{Call, CallEvent, ServerNotification};
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_translate::input::Backoff;
use mcpact_wire::raw::ObjectWriter;
use tokio::time::Instant;

/// Notifications of list changes.
pub(crate) const LIST_CHANGES: [Method; 3] = [
    Method::ToolsListChanged,
    Method::PromptsListChanged,
    Method::ResourcesListChanged,
];

const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(60),
};

/// Delays before a lost stream is opened again. A stream that outlived the longest delay resets them.
#[derive(Debug)]
pub(crate) struct ReopenDelay {
    losses: u32,
    /// Time of the last attempt to open the stream.
    opened: Instant,
}

impl ReopenDelay {
    /// Starts with the first attempt to open the stream.
    pub(crate) fn new() -> Self {
        Self {
            losses: 0,
            opened: Instant::now(),
        }
    }

    /// Records an attempt to open the stream.
    pub(crate) fn reopen(&mut self) {
        self.opened = Instant::now();
    }

    /// Resets the delays, for a stream to another server.
    pub(crate) const fn reset(&mut self) {
        self.losses = 0;
    }

    /// Returns the delay after a loss.
    pub(crate) fn next(&mut self) -> Duration {
        if self.opened.elapsed() > BACKOFF.longest {
            self.reset();
        }
        let delay = BACKOFF.pause(self.losses);
        self.losses = self.losses.saturating_add(1);
        delay
    }
}

/// Returns the next notification of a stream; none after its end.
pub(crate) async fn next_notification(call: &mut Call) -> Option<ServerNotification> {
    loop {
        match call.next().await {
            CallEvent::Notification(note) => return Some(note),
            CallEvent::Request(_) => {}
            CallEvent::Response(_) | CallEvent::Failed(_) => return None,
        }
    }
}

/// Returns the notifications of all lists and resources of a filter, which may have changed while no stream was open.
pub(crate) fn possible_changes(filter: &ListenFilter) -> impl Iterator<Item = (Method, String)> {
    let lists = LIST_CHANGES.into_iter();
    let lists = lists.filter(|method| filter.wants(*method, None));
    let uris = filter.uris.iter();
    lists
        .map(|method| (method, String::from("{}")))
        .chain(uris.map(|uri| (Method::ResourcesUpdated, uri_params(uri))))
}

/// Returns parameters that consist of a resource URI.
pub(crate) fn uri_params(uri: &str) -> String {
    ObjectWriter::new().text("uri", uri).finish()
}

/// Returns the parameters of `subscriptions/listen`.
pub(crate) fn listen_params(filter: &ListenFilter) -> String {
    ObjectWriter::new()
        .raw("notifications", &filter.encode())
        .finish()
}
