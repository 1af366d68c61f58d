//! What a call is told that a server has no room for.

use std::time::Duration;

/// How many calls a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Whether every client has an instance for itself.
    pub is_own: bool,
    /// Whether calls take turns at an instance, because it may ask their clients something.
    pub is_of_turns: bool,
    /// `max_instances`.
    pub instances: usize,
    /// `max_concurrent`.
    pub calls: usize,
    /// `queue`.
    pub queue: usize,
}

/// Why calls take turns.
const TURNS: &str = "calls of clients that can be asked something take turns, because the server does not say which call \
                     its questions belong to";

impl Room {
    pub(super) fn full(self, state: &str) -> String {
        let waiting = count(self.queue, "call");
        if self.is_of_turns {
            let more = self.more();
            return format!(
                "{TURNS}, and {waiting} may wait; try again later, or raise {more}`queue`"
            );
        }
        if self.is_own {
            let taken = self.taken();
            return format!(
                "{taken}, and {waiting} may wait; try again when another client has gone, or raise \
                 `max_instances` or `queue`"
            );
        }
        let (instances, calls) = (count(self.instances, "instance"), count(self.calls, "call"));
        let each = if self.instances == 1 { "" } else { " each" };
        format!(
            "the server is {state}: {instances} may take {calls}{each}, and {waiting} may wait; try again \
             later, or raise `max_instances`, `max_concurrent` or `queue`"
        )
    }

    pub(super) fn late(self, state: &str, waited: Duration) -> String {
        if self.is_of_turns {
            let more = self.more();
            return format!(
                "{TURNS}, and its turn did not come within {waited:?}; try again later, or raise \
                 {more}`queue_seconds`"
            );
        }
        if self.is_own {
            let taken = self.taken();
            return format!(
                "{taken}, and none became free within {waited:?}; try again when another client has gone, or \
                 raise `max_instances` or `queue_seconds`"
            );
        }
        format!(
            "the server is {state}, and no instance took the call within {waited:?}; try again later, or raise \
             `max_instances`, `max_concurrent` or `queue_seconds`"
        )
    }

    /// What lets turns come sooner: whoever has an instance for itself gets no other.
    const fn more(self) -> &'static str {
        if self.is_own {
            ""
        } else {
            "`max_instances` or "
        }
    }

    fn taken(self) -> String {
        let taken = match self.instances {
            1 => String::from("only one that may run is"),
            number => format!("{number} instances that may run are"),
        };
        format!("every client has an instance of the server for itself, and the {taken} taken")
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
    use crate::error::Trouble;

    /// Who has to wait is told for what, in numbers that fit.
    #[test]
    fn a_server_without_room_is_told_with_its_limits() {
        let room = Room {
            is_own: false,
            is_of_turns: false,
            instances: 1,
            calls: 8,
            queue: 1,
        };
        let state = "busy";
        let full = Trouble::Busy { state, room }.to_string();
        let expected = "the server is busy: 1 instance may take 8 calls, and 1 call may wait;";
        assert!(full.starts_with(expected), "{full}");
        let room = Room {
            is_own: true,
            instances: 2,
            ..room
        };
        let waited = Duration::from_secs(30);
        let (full, late) = (
            Trouble::Busy { state, room }.to_string(),
            Trouble::Late {
                state,
                room,
                waited,
            }
            .to_string(),
        );
        let taken = "every client has an instance of the server for itself, and the 2 instances that may run are taken";
        assert!(
            full.starts_with(taken) && late.starts_with(taken),
            "{full} {late}"
        );
        assert!(late.contains("none became free within 30s"), "{late}");
        let room = Room {
            instances: 1,
            ..room
        };
        let full = Trouble::Busy { state, room }.to_string();
        let taken = "and the only one that may run is taken, and 1 call may wait;";
        assert!(full.contains(taken), "{full}");
        let in_turn = Trouble::Busy { state, room }.in_turn().to_string();
        let expected = "and 1 call may wait; try again later, or raise `queue`";
        assert!(
            in_turn.starts_with("calls of clients that can be asked")
                && in_turn.ends_with(expected),
            "{in_turn}"
        );
    }
}
