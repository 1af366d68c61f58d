//! Queue of messages to write.

use std::collections::HashSet;

/// Queued bytes above which callers wait.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Messages that are not written yet.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    texts: Vec<String>,
    /// Index and id of the messages that are calls.
    calls: Vec<(usize, i64)>,
    bytes: usize,
    /// The server has closed its side: nothing is written until the queue is closed.
    is_paused: bool,
    is_closed: bool,
}

impl WriteQueue {
    /// Returns true if callers need not wait.
    pub(super) const fn has_space(&self) -> bool {
        self.is_closed || (!self.is_paused && self.bytes < MAX_BYTES)
    }

    /// Adds a message, with its id if it is a call. Returns false if the queue is closed.
    pub(super) fn push(&mut self, call: Option<i64>, text: String) -> bool {
        if self.is_closed {
            return false;
        }
        self.bytes += text.len();
        self.calls.extend(call.map(|id| (self.texts.len(), id)));
        self.texts.push(text);
        true
    }

    /// Takes all messages to write, and whether they are the last.
    pub(super) fn take(&mut self) -> (Vec<String>, bool) {
        if self.is_paused && !self.is_closed {
            return (Vec::new(), false);
        }
        self.bytes = 0;
        self.calls.clear();
        (std::mem::take(&mut self.texts), self.is_closed)
    }

    /// Pauses writing until the queue is closed: the server could not answer.
    pub(super) const fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Closes the queue. Returns the ids of calls that were not written and never will be.
    pub(super) fn close(&mut self) -> HashSet<i64> {
        self.is_closed = true;
        for (at, _) in self.calls.iter().rev() {
            self.texts.remove(*at);
        }
        self.calls.drain(..).map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closing drops unwritten calls; other messages are still written.
    #[test]
    fn close_returns_unwritten_calls() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Some(1), String::from("one")));
        assert_eq!(queue.take(), (vec![String::from("one")], false));
        for (call, text) in [(Some(2), "two"), (None, "note"), (Some(3), "three")] {
            assert!(queue.push(call, text.to_owned()));
        }
        assert_eq!(queue.close(), HashSet::from([2, 3]));
        assert!(!queue.push(Some(4), String::from("four")));
        assert_eq!(queue.take(), (vec![String::from("note")], true));
        assert_eq!(queue.close(), HashSet::new());
    }

    /// Nothing is written after the server closed its side; new callers wait until the queue is closed.
    #[test]
    fn paused_queue_writes_nothing() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Some(1), String::from("one")));
        queue.pause();
        assert!(!queue.has_space());
        assert_eq!(queue.take(), (Vec::new(), false));
        assert_eq!(queue.close(), HashSet::from([1]));
        assert!(queue.has_space(), "no caller waits");
        assert!(!queue.push(Some(2), String::from("two")));
        assert_eq!(queue.take(), (Vec::new(), true));
    }
}
