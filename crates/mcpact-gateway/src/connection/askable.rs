//! Which calls of modern clients can be asked something.
//!
//! A server on HTTP may ask on the stream of the call that it is about, or on one that belongs to no
//! call. There it is the question of the one call that can have caused it, if there is just one.

use crate::sync::lock;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::mpsc;

use mcpact::connection::ServerRequest;

/// How many questions wait for one call; the rest is refused.
const WAITING: usize = 16;

/// The calls on one connection.
#[derive(Debug, Default)]
pub(crate) struct AskableCalls {
    calls: Mutex<Vec<mpsc::Sender<ServerRequest>>>,
}

impl AskableCalls {
    /// The calls that have not ended.
    fn calls(&self) -> MutexGuard<'_, Vec<mpsc::Sender<ServerRequest>>> {
        let mut calls = lock(&self.calls);
        calls.retain(|call| !call.is_closed());
        calls
    }

    /// One more call, until what is given back is dropped; the questions that are put to it.
    pub(crate) fn enter(&self) -> mpsc::Receiver<ServerRequest> {
        let (questions, asked) = mpsc::channel(WAITING);
        self.calls().push(questions);
        asked
    }

    /// Puts a question to the one call that there is; gives it back where there is none or another.
    pub(crate) fn put(&self, ask: ServerRequest) -> Option<ServerRequest> {
        match self.calls().as_slice() {
            [only] => only.try_send(ask).err().map(|full| full.into_inner()),
            _ => Some(ask),
        }
    }
}
