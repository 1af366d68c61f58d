//! Queue of messages to write.

use std::collections::{HashSet, VecDeque};

/// Queued bytes above which callers wait.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Size of the unread answers to a server above which nothing more is read from it.
const MAX_ANSWERS: usize = 1024 * 1024;

/// Bytes that are written at once.
const BATCH: usize = 64 * 1024;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Request with this id.
    Call(i64),
    /// Response to a request of the server.
    Answer,
    Notification,
}

#[derive(Debug)]
struct Queued {
    kind: Kind,
    text: String,
}

/// Messages that are not written yet.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    queued: VecDeque<Queued>,
    bytes: usize,
    /// Size of the answers that are queued or being written.
    answers: usize,
    /// Size of the answers that are being written.
    answers_in_write: usize,
    /// The server has closed its side: nothing is written until the queue is closed.
    is_paused: bool,
    is_closed: bool,
}

/// Messages to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) texts: Vec<String>,
    /// Nothing follows.
    pub(super) is_last: bool,
}

impl WriteQueue {
    /// Returns true if callers need not wait.
    pub(super) const fn has_space(&self) -> bool {
        self.is_closed || (!self.is_paused && self.bytes < MAX_BYTES)
    }

    /// Returns true if the server has too many unread answers.
    pub(super) const fn has_unread_answers(&self) -> bool {
        !self.is_closed && self.answers >= MAX_ANSWERS
    }

    /// Adds a message. Returns false if the queue is closed.
    pub(super) fn push(&mut self, kind: Kind, text: String) -> bool {
        if self.is_closed {
            return false;
        }
        self.bytes += text.len();
        if kind == Kind::Answer {
            self.answers += text.len();
        }
        self.queued.push_back(Queued { kind, text });
        true
    }

    /// Removes a call that is not written yet. Returns false if there is none.
    pub(super) fn withdraw(&mut self, call: i64) -> bool {
        let is_call = |queued: &Queued| queued.kind == Kind::Call(call);
        let position = self.queued.iter().position(is_call);
        let withdrawn = position.and_then(|at| self.queued.remove(at));
        self.bytes -= withdrawn.as_ref().map_or(0, |queued| queued.text.len());
        withdrawn.is_some()
    }

    /// Takes the next messages to write. The previous ones are written.
    pub(super) fn take(&mut self) -> Batch {
        self.answers -= std::mem::take(&mut self.answers_in_write);
        let mut texts = Vec::new();
        let mut bytes = 0;
        while (!self.is_paused || self.is_closed) && bytes < BATCH {
            let Some(Queued { kind, text }) = self.queued.pop_front() else {
                break;
            };
            bytes += text.len();
            if kind == Kind::Answer {
                self.answers_in_write += text.len();
            }
            texts.push(text);
        }
        self.bytes -= bytes;
        Batch {
            texts,
            is_last: self.is_closed && self.queued.is_empty(),
        }
    }

    /// Pauses writing until the queue is closed: the server could not answer.
    pub(super) const fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Closes the queue. Returns the ids of calls that were not written and never will be.
    pub(super) fn close(&mut self) -> HashSet<i64> {
        self.is_closed = true;
        let mut unwritten = HashSet::new();
        self.queued.retain(|queued| match queued.kind {
            Kind::Call(id) => {
                self.bytes -= queued.text.len();
                unwritten.insert(id);
                false
            }
            Kind::Answer | Kind::Notification => true,
        });
        unwritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(texts: &[&str], is_last: bool) -> Batch {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Batch { texts, is_last }
    }

    /// Closing drops unwritten calls; other messages are still written.
    #[test]
    fn close_returns_unwritten_calls() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Kind::Call(1), String::from("one")));
        assert_eq!(queue.take(), batch(&["one"], false));
        for (kind, text) in [
            (Kind::Call(2), "two"),
            (Kind::Notification, "note"),
            (Kind::Call(3), "three"),
        ] {
            assert!(queue.push(kind, text.to_owned()));
        }
        assert_eq!(queue.close(), HashSet::from([2, 3]));
        assert!(!queue.push(Kind::Call(4), String::from("four")));
        assert_eq!(queue.take(), batch(&["note"], true));
        assert_eq!(queue.close(), HashSet::new());
    }

    /// Nothing is written after the server closed its side; new callers wait until the queue is closed.
    #[test]
    fn paused_queue_writes_nothing() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Kind::Call(1), String::from("one")));
        queue.pause();
        assert!(!queue.has_space());
        assert_eq!(queue.take(), batch(&[], false));
        assert_eq!(queue.close(), HashSet::from([1]));
        assert!(queue.has_space(), "no caller waits");
        assert!(!queue.push(Kind::Call(2), String::from("two")));
        assert_eq!(queue.take(), batch(&[], true));
    }

    #[test]
    fn withdrawn_call_is_not_written() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Kind::Call(1), String::from("one")));
        assert!(queue.push(Kind::Call(2), String::from("two")));
        assert!(queue.withdraw(1) && !queue.withdraw(1));
        assert_eq!(queue.take(), batch(&["two"], false));
        assert!(!queue.withdraw(2), "it is written");
    }

    /// Answers count until they are written; calls do not count as answers.
    #[test]
    fn answers_are_limited() {
        let mut queue = WriteQueue::default();
        assert!(queue.push(Kind::Call(1), "c".repeat(2 * MAX_ANSWERS)));
        assert!(!queue.has_unread_answers());
        assert!(queue.push(Kind::Answer, "a".repeat(MAX_ANSWERS)));
        assert!(queue.has_unread_answers());
        assert_eq!(queue.take().texts.len(), 1, "a batch is bounded");
        assert_eq!(queue.take().texts.len(), 1);
        assert!(queue.has_unread_answers(), "being written");
        assert_eq!(queue.take(), batch(&[], false));
        assert!(!queue.has_unread_answers());
    }
}
