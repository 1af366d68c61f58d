//! What waits to be written.

use std::collections::HashSet;

/// How many bytes may wait to be written before callers wait, too.
const BACKLOG: usize = 4 * 1024 * 1024;

/// The messages that nobody has written yet.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    texts: Vec<String>,
    /// Which of them are calls: where they stand, and their numbers.
    calls: Vec<(usize, i64)>,
    bytes: usize,
    /// Whether the server has ended its side, so that nothing is written until that is told.
    is_held: bool,
    is_closed: bool,
}

impl Outgoing {
    /// Whether nobody has to wait before it is given another one.
    pub(super) const fn has_room(&self) -> bool {
        self.is_closed || (!self.is_held && self.bytes < BACKLOG)
    }

    /// Takes a message, with its number if it is a call; whether it was still taken.
    pub(super) fn push(&mut self, call: Option<i64>, text: String) -> bool {
        if self.is_closed {
            return false;
        }
        self.bytes += text.len();
        self.calls
            .extend(call.map(|number| (self.texts.len(), number)));
        self.texts.push(text);
        true
    }

    /// Everything that waits, for whoever writes it, and whether these are the last.
    pub(super) fn take(&mut self) -> (Vec<String>, bool) {
        if self.is_held && !self.is_closed {
            return (Vec::new(), false);
        }
        self.bytes = 0;
        self.calls.clear();
        (std::mem::take(&mut self.texts), self.is_closed)
    }

    /// Keeps what waits until it is closed: nobody could hear an answer.
    pub(super) const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Takes nothing any more. The calls that have not been written, and will not be.
    pub(super) fn close(&mut self) -> HashSet<i64> {
        self.is_closed = true;
        for (at, _) in self.calls.iter().rev() {
            self.texts.remove(*at);
        }
        self.calls.drain(..).map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that nobody has written is known to be unseen; what else waits is still written.
    #[test]
    fn calls_that_were_not_written_are_known() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.push(Some(1), String::from("one")));
        assert_eq!(outgoing.take(), (vec![String::from("one")], false));
        for (call, text) in [(Some(2), "two"), (None, "note"), (Some(3), "three")] {
            assert!(outgoing.push(call, text.to_owned()));
        }
        assert_eq!(outgoing.close(), HashSet::from([2, 3]));
        assert!(!outgoing.push(Some(4), String::from("four")));
        assert_eq!(outgoing.take(), (vec![String::from("note")], true));
        assert_eq!(outgoing.close(), HashSet::new());
    }

    /// What was not written when the server ended its side never is, and whoever comes then waits for the end.
    #[test]
    fn nothing_is_written_to_a_server_that_has_ended_its_side() {
        let mut outgoing = Outgoing::default();
        assert!(outgoing.push(Some(1), String::from("one")));
        outgoing.hold();
        assert!(!outgoing.has_room());
        assert_eq!(outgoing.take(), (Vec::new(), false));
        assert_eq!(outgoing.close(), HashSet::from([1]));
        assert!(outgoing.has_room(), "nobody waits any more");
        assert!(!outgoing.push(Some(2), String::from("two")));
        assert_eq!(outgoing.take(), (Vec::new(), true));
    }
}
