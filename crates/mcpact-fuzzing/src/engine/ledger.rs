//! Responses and requests due on one side, tracked independently of the machine.

use std::collections::{BTreeMap, BTreeSet};

use mcpact_engine::refusal::WireError;
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::{Envelope, EnvelopeError};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::scan;

/// The requests of both directions.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Number of responses due per id.
    owed: BTreeMap<Id, usize>,
    /// Number of errors without id due.
    nameless: usize,
    /// Number of requests passed to the owner per id.
    serving: BTreeMap<Id, usize>,
    /// Own requests that have not ended.
    asked: BTreeSet<Id>,
    /// Every id that was ever asked under.
    used: BTreeSet<Id>,
    /// The last number that the owner used.
    number: i64,
}

impl Ledger {
    /// Books what a frame makes due; gives the id of a single request.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Option<Id> {
        self.nameless = 0;
        match Frame::parse(bytes) {
            Ok(Frame::Single(Envelope::Request(request))) => {
                let id = request.id.to_id();
                self.owe(id.clone());
                return Some(id);
            }
            Ok(Frame::Single(Envelope::Notification(_) | Envelope::Response(_))) => {}
            Ok(Frame::Batch(all)) => {
                // A batch that is refused as a whole gets one error.
                self.nameless = 1;
                for member in all {
                    match member {
                        Ok(Envelope::Request(request)) => self.owe(request.id.to_id()),
                        Ok(Envelope::Notification(_) | Envelope::Response(_)) => {}
                        Err(error) => self.owe_error(error),
                    }
                }
            }
            Err(error) => self.owe_error(error),
        }
        None
    }

    fn owe(&mut self, id: Id) {
        *self.owed.entry(id).or_default() += 1;
    }

    fn owe_error(&mut self, error: EnvelopeError) {
        match error {
            EnvelopeError::Shape { id: Some(id), .. } => self.owe(id),
            EnvelopeError::Shape { id: None, .. } | EnvelopeError::Json(_) => self.nameless += 1,
        }
    }

    /// An answer was written: it must be one, to something that is due.
    pub(super) fn replied(&mut self, text: &str, id: Option<&Id>) {
        let Ok(Envelope::Response(response)) = Envelope::parse(text.as_bytes()) else {
            panic!("no answer: {text}");
        };
        assert_eq!(response.id.map(IdRef::to_id).as_ref(), id, "{text}");
        let due = match id {
            Some(id) => self.owed.get_mut(id),
            None => Some(&mut self.nameless),
        };
        match due {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => panic!("an unexpected response: {text}"),
        }
    }

    /// The owner was told to serve a request.
    pub(super) fn serve(&mut self, id: &Id) {
        assert!(!self.serving.contains_key(id), "{id} is served twice");
        self.serve_on_own_path(id);
    }

    /// The same for a request whose answer has a path of its own: it may share its id with others (decision 009).
    pub(super) fn serve_on_own_path(&mut self, id: &Id) {
        assert!(
            self.owed.get(id).is_some_and(|count| *count > 0),
            "{id} was never asked"
        );
        *self.serving.entry(id.clone()).or_default() += 1;
    }

    /// The request that a byte chooses among those that are served.
    pub(super) fn choose(&self, choice: u8) -> Id {
        let index = usize::from(choice) % self.serving.len().max(1);
        self.serving
            .keys()
            .nth(index)
            .cloned()
            .unwrap_or_else(|| Id::text("unknown"))
    }

    /// The owner has answered; without a reply, because the peer gave the request up.
    pub(super) fn answered(&mut self, id: &Id, replies: usize) {
        let Some(serving) = self.serving.get_mut(id) else {
            return;
        };
        *serving -= 1;
        if *serving == 0 {
            self.serving.remove(id);
        }
        if replies == 0
            && let Some(count) = self.owed.get_mut(id)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// Clears the requests being served.
    pub(super) fn forget_serving(&mut self) {
        self.serving.clear();
    }

    pub(super) fn serving(&self) -> usize {
        self.serving.values().sum()
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// The number for a request of the owner's; with `!` one that may have been used.
    pub(super) fn next_number(&mut self, choice: u8) -> i64 {
        if choice != b'!' {
            self.number += 1;
        }
        self.number
    }

    /// A request was written: its id is new.
    pub(super) fn ask(&mut self, id: IdRef<'_>) {
        assert!(self.used.insert(id.to_id()), "id {} again", id.raw());
    }

    /// A request of the owner's now waits.
    pub(super) fn wait_for(&mut self, id: IdRef<'_>) {
        self.asked.insert(id.to_id());
    }

    /// A request of the owner's has ended.
    pub(super) fn settle(&mut self, id: &Id) {
        assert!(self.asked.remove(id), "{id} ends, but does not wait");
    }
}

/// The result that an owner gives: what the script says if it is JSON.
pub(super) fn result(raw: &[u8]) -> String {
    core::str::from_utf8(raw)
        .ok()
        .filter(|text| scan::check(text).is_ok())
        .unwrap_or("{}")
        .to_owned()
}

/// The error that an owner gives.
pub(super) fn failure() -> WireError {
    WireError {
        code: -32603,
        message: "failed".to_owned(),
        data: None,
        http_status: 200,
    }
}
