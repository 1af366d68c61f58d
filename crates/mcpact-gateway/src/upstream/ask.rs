//! What a server asks, and the way back to it.

use bytestring::ByteString;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::Outcome;
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::model::error;

use super::{http, lines};

/// What a server is told whose question nobody can answer any more.
const OVER: &str = "nobody can answer this any more: the request during which it was asked is over";

/// A request of the server.
///
/// A server may wait for the answer before it does anything else, so that every question gets one: whoever
/// drops it refuses it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) id: Id,
    /// None for a method that no revision knows.
    pub(crate) method: Option<Method>,
    pub(crate) params: ByteString,
    /// None where no answer is due.
    back: Option<WayBack>,
}

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum WayBack {
    Lines(lines::WayBack),
    Http(http::WayBack),
}

impl Ask {
    /// A question to which no answer is due yet.
    pub(super) const fn new(id: Id, method: Option<Method>, params: ByteString) -> Self {
        Self {
            id,
            method,
            params,
            back: None,
        }
    }

    /// The same, to be answered there.
    pub(super) fn due(mut self, back: WayBack) -> Self {
        self.back = Some(back);
        self
    }

    /// Answers it.
    pub(crate) async fn answer(mut self, outcome: &Outcome) {
        let text = match outcome {
            Outcome::Result(result) => codec::result(self.id.as_ref(), result),
            Outcome::Error(error) => codec::error(Some(self.id.as_ref()), error),
        };
        match &self.back {
            Some(WayBack::Lines(back)) => {
                // Whoever stops waiting for room has said nothing, and refuses it.
                back.send(text).await;
                self.back = None;
            }
            Some(WayBack::Http(back)) => {
                let posting = back.post(text);
                self.back = None;
                if let Some(posting) = posting {
                    // It goes on whether or not it is waited for.
                    let _ = posting.await;
                }
            }
            None => {}
        }
    }

    /// The server has taken it back, and wants no answer.
    pub(crate) fn taken_back(mut self) {
        self.back = None;
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        let Some(back) = self.back.take() else {
            return;
        };
        let refusal = error::encode(ErrorCode::InternalError.code(), OVER, None);
        let text = codec::error(Some(self.id.as_ref()), &refusal);
        match back {
            WayBack::Lines(back) => back.push(text),
            WayBack::Http(back) => drop(back.post(text)),
        }
    }
}
