//! Decides whether a failed attempt of a request is sent again, and where. Pure.
//!
//! A request that a server may have run is never sent again. Input rounds and waiting for a free instance are not
//! retries; they are not decided here.

use mcpact::connection::Delivery;
use mcpact_spec::Revision;

/// Cause of a failed attempt, as far as a retry depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server left the config, or was replaced by a reload.
    Retired,
    /// The server does not know the session, or its connection closed before the request was written.
    ConnectionStale,
    /// The server speaks another revision than the request was translated for.
    RevisionChanged,
    /// The refusal may mean that another server answers at this URL, or concern this request only.
    Ambiguous,
    /// Anything else, including every error response of the server and the lost state of a stateful client.
    Other,
}

/// One failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) cause: Cause,
    pub(crate) delivery: Delivery,
    /// Another server has replaced this one.
    pub(crate) has_successor: bool,
    /// Number of retries of the same kind before this attempt.
    pub(crate) retries: usize,
}

impl Attempt {
    /// First attempt that failed with this cause.
    pub(crate) const fn new(cause: Cause, delivery: Delivery) -> Self {
        Self {
            cause,
            delivery,
            has_successor: false,
            retries: 0,
        }
    }

    /// Decides what happens after this attempt.
    pub(crate) const fn decide(self) -> Retry {
        let retries = self.retries;
        match (self.cause, self.delivery) {
            (Cause::Retired, Delivery::NotSent) if self.has_successor && retries < SUCCESSORS => {
                Retry::Successor
            }
            (Cause::ConnectionStale, Delivery::NotSent | Delivery::RefusedUnread)
                if retries < FRESH_CONNECTIONS =>
            {
                Retry::FreshConnection
            }
            // An ambiguous refusal counts as unread only if another server turns out to answer.
            (Cause::RevisionChanged, Delivery::NotSent | Delivery::RefusedUnread)
            | (Cause::Ambiguous, _)
                if retries < RENEGOTIATIONS =>
            {
                Retry::IfServerChanged
            }
            _ => Retry::No,
        }
    }
}

/// Reason to doubt that the server is still the one negotiated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerDoubt {
    /// The request was not sent, or refused unread, because the connection belongs to a former server.
    NotSent,
    /// The server refuses this revision, to which it agreed. It has not processed the request.
    RefusesRevision(Revision),
    /// Either the server is no longer of the modern era, or it processed the request and rejects just this one.
    Ambiguous,
}

impl ServerDoubt {
    /// Returns the failed attempt, as input of the retry policy.
    pub(crate) const fn attempt(self) -> Attempt {
        match self {
            Self::NotSent => Attempt::new(Cause::RevisionChanged, Delivery::NotSent),
            Self::RefusesRevision(_) => {
                Attempt::new(Cause::RevisionChanged, Delivery::RefusedUnread)
            }
            Self::Ambiguous => Attempt::new(Cause::Ambiguous, Delivery::Unknown),
        }
    }
}

/// Decision about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Send on a fresh connection to the same server.
    FreshConnection,
    /// Negotiate again, and send only if another server answers.
    IfServerChanged,
    /// Send to the server that replaced this one.
    Successor,
    /// Report the failure.
    No,
}

/// Maximum number of retries on a fresh connection.
const FRESH_CONNECTIONS: usize = 1;
/// Maximum number of retries after a new negotiation. Several connections to a replaced server can turn out to be
/// stale one after the other.
const RENEGOTIATIONS: usize = 4;
/// Maximum number of retries at a successor.
const SUCCESSORS: usize = 2;

/// Retries of one request so far.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    /// Number of moves to a successor.
    pub(crate) moves: usize,
    renegotiations: usize,
}

impl Retries {
    /// Decides what happens after a failed attempt, and counts it.
    pub(crate) fn decide(&mut self, attempt: Attempt) -> Retry {
        let counter = match attempt.cause {
            Cause::Retired => &mut self.moves,
            _ => &mut self.renegotiations,
        };
        let retries = *counter;
        *counter += 1;
        Attempt { retries, ..attempt }.decide()
    }
}

#[cfg(test)]
mod tests {
    use super::Cause::{Ambiguous, ConnectionStale, Other, Retired, RevisionChanged};
    use super::Retry::{FreshConnection, IfServerChanged, No, Successor};
    use super::*;
    use Delivery::{NotSent, RefusedUnread, Unknown};

    const CAUSES: [Cause; 5] = [Retired, ConnectionStale, RevisionChanged, Ambiguous, Other];
    const DELIVERIES: [Delivery; 3] = [NotSent, RefusedUnread, Unknown];

    fn attempts() -> impl Iterator<Item = Attempt> {
        CAUSES.into_iter().flat_map(|cause| {
            DELIVERIES.into_iter().flat_map(move |delivery| {
                (0..16).map(move |bits| Attempt {
                    cause,
                    delivery,
                    has_successor: bits & 1 != 0,
                    retries: bits >> 1,
                })
            })
        })
    }

    #[test]
    fn decisions_follow_the_table() {
        // cause, delivery, successor, retries before, decision
        let rows = [
            (Retired, NotSent, true, 0, Successor),
            (Retired, NotSent, true, 1, Successor),
            (Retired, NotSent, true, 2, No),
            (Retired, NotSent, false, 0, No),
            (Retired, RefusedUnread, true, 0, No),
            (Retired, Unknown, true, 0, No),
            (ConnectionStale, NotSent, false, 0, FreshConnection),
            (ConnectionStale, RefusedUnread, false, 0, FreshConnection),
            (ConnectionStale, RefusedUnread, true, 1, No),
            (ConnectionStale, Unknown, true, 0, No),
            (RevisionChanged, NotSent, false, 0, IfServerChanged),
            (RevisionChanged, RefusedUnread, false, 3, IfServerChanged),
            (RevisionChanged, RefusedUnread, false, 4, No),
            (RevisionChanged, Unknown, false, 0, No),
            (Ambiguous, Unknown, false, 0, IfServerChanged),
            (Ambiguous, Unknown, false, 4, No),
            (Other, NotSent, true, 0, No),
            (Other, RefusedUnread, true, 0, No),
            (Other, Unknown, true, 0, No),
        ];
        for (cause, delivery, has_successor, retries, decision) in rows {
            let attempt = Attempt {
                has_successor,
                retries,
                ..Attempt::new(cause, delivery)
            };
            assert_eq!(attempt.decide(), decision, "{attempt:?}");
        }
    }

    #[test]
    fn request_that_may_have_run_is_never_sent_to_the_same_server_again() {
        for attempt in attempts().filter(|attempt| attempt.delivery == Unknown) {
            let decision = attempt.decide();
            let is_safe = matches!(decision, No | IfServerChanged);
            assert!(is_safe, "{attempt:?} {decision:?}");
        }
    }

    #[test]
    fn retries_end() {
        for attempt in attempts().filter(|attempt| attempt.retries >= 4) {
            assert_eq!(attempt.decide(), No, "{attempt:?}");
        }
    }
}
