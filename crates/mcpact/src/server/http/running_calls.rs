//! Running calls of a session.

use std::collections::HashMap;

use futures_util::future::AbortHandle;
use mcpact_wire::id::Id;

/// Cancellable calls of a session. Ids may repeat.
#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    pub(super) calls: HashMap<u64, Call>,
    last: u64,
    /// `true` if abandoned calls are aborted.
    is_draining: bool,
}

/// Running call.
#[derive(Debug)]
pub(super) struct Call {
    id: Id,
    pub(super) abort: AbortHandle,
    /// `true` if the client has disconnected and cannot reconnect for the response.
    is_abandoned: bool,
}

impl RunningCalls {
    /// Adds a call and returns its number.
    pub(super) fn add(&mut self, id: Id, abort: AbortHandle) -> u64 {
        self.last += 1;
        let is_abandoned = false;
        self.calls.insert(
            self.last,
            Call {
                id,
                abort,
                is_abandoned,
            },
        );
        self.last
    }

    /// Marks a call as abandoned by its client.
    pub(super) fn abandon(&mut self, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.is_abandoned = true;
            if self.is_draining {
                call.abort.abort();
            }
        }
    }

    /// Aborts abandoned calls, now and later.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
        let abandoned = self.calls.values().filter(|call| call.is_abandoned);
        abandoned.for_each(|call| call.abort.abort());
    }

    pub(super) fn cancel(&mut self, id: &Id) {
        let named = self.calls.extract_if(|_, call| call.id == *id);
        for (_, call) in named {
            call.abort.abort();
        }
    }
}
