//! Texts for calls that find no capacity.

use std::time::Duration;

/// Limits of a server, for error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityLimits {
    /// Every client has its own instance.
    pub is_exclusive: bool,
    /// Calls take turns on an instance, because it may ask their clients for input.
    pub takes_turns: bool,
    /// `max_instances`.
    pub instances: usize,
    /// `max_concurrent`.
    pub calls: usize,
    /// `queue`.
    pub queue: usize,
}

/// Explains calls that take turns.
const TURNS: &str = "calls of clients that accept input requests take turns, because the server does not say which call \
                     a request belongs to";

impl CapacityLimits {
    pub(super) fn queue_full(self, state: &str) -> String {
        let full = format!(
            "and the queue limit of {} is reached",
            count(self.queue, "call")
        );
        if self.takes_turns {
            let keys = self.turn_keys();
            return format!("{TURNS}, {full}; try again later, or raise {keys}`queue`");
        }
        if self.is_exclusive {
            let in_use = self.in_use();
            return format!(
                "{in_use}, {full}; try again when another client has disconnected, or raise \
                 `max_instances` or `queue`"
            );
        }
        let (instances, calls) = (count(self.instances, "instance"), count(self.calls, "call"));
        let each = if self.instances == 1 { "" } else { " each" };
        format!(
            "the server is {state}: the limit is {instances} with {calls}{each}, {full}; try again later, or raise \
             `max_instances`, `max_concurrent` or `queue`"
        )
    }

    pub(super) fn queue_timeout(self, state: &str, waited: Duration) -> String {
        if self.takes_turns {
            let keys = self.turn_keys();
            return format!(
                "{TURNS}, and this call timed out after {waited:?} in the queue; try again later, or raise \
                 {keys}`queue_seconds`"
            );
        }
        if self.is_exclusive {
            let in_use = self.in_use();
            return format!(
                "{in_use}, and none became free within {waited:?}; try again when another client has disconnected, \
                 or raise `max_instances` or `queue_seconds`"
            );
        }
        format!(
            "the server is {state}: no instance was free within {waited:?}; try again later, or raise \
             `max_instances`, `max_concurrent` or `queue_seconds`"
        )
    }

    /// Returns further keys that shorten the wait for a turn. A client with its own instance gets no other.
    const fn turn_keys(self) -> &'static str {
        if self.is_exclusive {
            ""
        } else {
            "`max_instances` or "
        }
    }

    fn in_use(self) -> String {
        match self.instances {
            1 => String::from("the only instance is used by another client"),
            number => format!("all {number} instances are used by other clients"),
        }
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::UpstreamErrorKind::{self, QueueFull, QueueTimeout};

    #[test]
    fn queue_errors_name_the_limits() {
        let shared = CapacityLimits {
            is_exclusive: false,
            takes_turns: false,
            instances: 1,
            calls: 8,
            queue: 1,
        };
        let exclusive = CapacityLimits {
            is_exclusive: true,
            ..shared
        };
        let two = CapacityLimits {
            instances: 2,
            ..exclusive
        };
        let state = "busy";
        let full = |limits| QueueFull { state, limits };
        let late = |limits| QueueTimeout {
            state,
            limits,
            waited: Duration::from_secs(30),
        };
        let cases: [(UpstreamErrorKind, &str); 5] = [
            (
                full(shared),
                "the server is busy: the limit is 1 instance with 8 calls, and the queue limit of 1 call is reached;",
            ),
            (
                full(two),
                "all 2 instances are used by other clients, and the queue limit of 1 call is reached;",
            ),
            (
                late(two),
                "all 2 instances are used by other clients, and none became free within 30s;",
            ),
            (
                full(exclusive),
                "the only instance is used by another client, and the queue",
            ),
            (
                full(exclusive).in_turn(),
                "and the queue limit of 1 call is reached; try again later, or raise `queue`",
            ),
        ];
        for (error, expected) in cases {
            let text = error.to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
