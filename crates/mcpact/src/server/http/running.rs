//! The calls of a session that run, and whether anybody waits for them.

use std::collections::HashMap;

use futures_util::future::AbortHandle;
use mcpact_wire::id::Id;

/// The calls of a session that can be cancelled. Several may have the same id.
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) calls: HashMap<u64, Call>,
    last: u64,
    /// Whether calls end with the clients that wait for them.
    is_resting: bool,
}

/// A call that runs.
#[derive(Debug)]
pub(super) struct Call {
    id: Id,
    pub(super) abort: AbortHandle,
    /// Whether its client has gone, and cannot come back for the answer.
    is_left: bool,
}

impl Running {
    /// Notes a call; the number that it has here.
    pub(super) fn add(&mut self, id: Id, abort: AbortHandle) -> u64 {
        self.last += 1;
        let is_left = false;
        self.calls.insert(self.last, Call { id, abort, is_left });
        self.last
    }

    /// Nobody will have the answer of a call.
    pub(super) fn leave(&mut self, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.is_left = true;
            if self.is_resting {
                call.abort.abort();
            }
        }
    }

    /// From here on nothing runs that nobody waits for.
    pub(super) fn rest(&mut self) {
        self.is_resting = true;
        let left = self.calls.values().filter(|call| call.is_left);
        left.for_each(|call| call.abort.abort());
    }

    pub(super) fn cancel(&mut self, id: &Id) {
        let named = self.calls.extract_if(|_, call| call.id == *id);
        for (_, call) in named {
            call.abort.abort();
        }
    }
}
