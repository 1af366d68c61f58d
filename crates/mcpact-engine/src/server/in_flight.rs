//! The requests that the owner is serving.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;

use mcpact_spec::{LogLevel, Revision};
use mcpact_wire::id::{Id, IdRef};

use super::listen::ListenFilter;
use crate::refusal::{Misbehaviour, Refusal};

/// A request that the owner is serving.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) revision: Revision,
    pub(super) log_level: Option<LogLevel>,
    /// In a box, so that a map of requests stays small: most of them do not listen.
    pub(super) listen: Option<Box<ListenFilter>>,
    /// The resource that it subscribes to, and the client was not subscribed to before.
    pub(super) subscribes: Option<Box<str>>,
    pub(super) cancelled: bool,
}

/// Path of an answer to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponsePath {
    /// A shared stream: only the id relates the answer to its request.
    Shared,
    /// Alone, in reply to the request.
    Own,
}

/// Everything in flight, by id.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    requests: BTreeMap<Id, SameId>,
    count: usize,
    limit: usize,
}

/// Requests with the same id, of which only the first says more: the others are of the same session.
#[derive(Clone, Debug)]
struct SameId {
    first: InFlight,
    count: usize,
}

impl Serving {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            requests: BTreeMap::new(),
            count: 0,
            limit,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, id: &Id) -> Option<&InFlight> {
        self.requests.get(id).map(|same_id| &same_id.first)
    }

    /// Remembers a request.
    ///
    /// `2025-11-25 basic#requests` forbids a client to use an id twice. One that does is refused where its
    /// answers could not be told apart, and served where each has a way of its own. While requests with
    /// this id are cancelled, another one could not be told from them.
    pub(super) fn take(
        &mut self,
        id: IdRef<'_>,
        request: InFlight,
        answers: ResponsePath,
    ) -> Result<(), Refusal> {
        let limit = self.limit;
        if self.count >= limit {
            let what = "requests in flight";
            return Err(Misbehaviour::TooMany { limit, what }.into());
        }
        match self.requests.entry(id.to_id()) {
            Entry::Vacant(free) => {
                free.insert(SameId {
                    first: request,
                    count: 1,
                });
            }
            Entry::Occupied(mut same_id)
                if answers == ResponsePath::Own && !same_id.get().first.cancelled =>
            {
                same_id.get_mut().count += 1;
            }
            Entry::Occupied(_) => {
                return Err(Misbehaviour::DuplicateId(Box::from(id.raw())).into());
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Forgets a request that is answered.
    pub(super) fn release(&mut self, id: &Id) -> Option<InFlight> {
        let SameId { first, count } = self.requests.remove(id)?;
        self.count = self.count.saturating_sub(1);
        if count > 1 {
            let others = SameId {
                first: first.clone(),
                count: count - 1,
            };
            self.requests.insert(id.clone(), others);
        }
        Some(first)
    }

    /// Marks a request as cancelled and returns whether it exists. Of several with the same id all are
    /// cancelled: the client cannot have meant one of them.
    pub(super) fn cancel(&mut self, id: &Id) -> bool {
        let same_id = self.requests.get_mut(id);
        same_id
            .map(|same_id| same_id.first.cancelled = true)
            .is_some()
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.count = 0;
    }
}
