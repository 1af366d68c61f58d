//! The event stream format as MCP uses it.
//!
//! The grammar is WHATWG HTML's
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>), with
//! three differences: an event without data is reported if it has an id or a retry time, because
//! `2025-11-25 basic/transports#sending-messages-to-the-server` primes streams with such events;
//! invalid UTF-8 is an error instead of replacement characters, because a message must not be
//! altered silently; and events have a size limit.

#[cfg(test)]
mod tests;
mod write;

use alloc::string::String;
use core::{fmt, mem};

use super::backlog::Backlog;

pub use write::{EventParts, UnwritableField, write_comment, write_event};

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The id that this event itself carries; an empty one resets the last event id.
    pub id: Option<String>,
    /// The event type, unless it is the default one.
    pub name: Option<String>,
    /// The data lines, joined with line feeds; empty in an event that only carries an id or a
    /// retry time.
    pub data: String,
    /// Milliseconds to wait before a reconnection.
    pub retry: Option<u64>,
}

/// Reason why an event was lost; reading continues with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The lines of the event have more bytes than the reader accepts.
    #[error("event is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A field of the event is not UTF-8.
    #[error("event is not valid UTF-8")]
    InvalidUtf8,
}

/// Cuts a byte stream into events.
///
/// Call [`push`](Self::push), then [`next_event`](Self::next_event) until it gives `None`. An owner
/// that does so makes the reader hold at most the limit plus one chunk of raw bytes, and the fields
/// of one event. The work is linear in the number of bytes, however they are cut into chunks.
#[derive(Debug)]
pub struct EventReader {
    backlog: Backlog,
    block: Block,
    limit: usize,
    after_carriage_return: bool,
    skipping: bool,
    last_event_id: String,
    comments: u64,
}

/// The lines since the last blank one.
#[derive(Default)]
struct Block {
    id: Option<String>,
    name: Option<String>,
    data: Option<String>,
    retry: Option<u64>,
    size: usize,
}

impl EventReader {
    /// A reader that refuses events with more than `limit` bytes of lines, without line ends and
    /// comments.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            backlog: Backlog::new(limit),
            block: Block {
                id: None,
                name: None,
                data: None,
                retry: None,
                size: 0,
            },
            limit,
            after_carriage_return: false,
            skipping: false,
            last_event_id: String::new(),
            comments: 0,
        }
    }

    /// Takes bytes as they arrived, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        self.backlog.push(chunk);
    }

    /// The next complete event, or the error that took its place.
    pub fn next_event(&mut self) -> Option<Result<Event, EventError>> {
        loop {
            // A line feed right after a carriage return belongs to the same line end.
            if self.after_carriage_return && !self.backlog.pending().is_empty() {
                self.after_carriage_return = false;
                self.backlog.take_byte(b'\n');
            }
            let Some((range, end)) = self
                .backlog
                .take_until(|byte| byte == b'\n' || byte == b'\r')
            else {
                return self.check_unfinished_line().map(Err);
            };
            self.after_carriage_return = end == b'\r';
            let line = self.backlog.slice(&range);
            match line.first() {
                None => {
                    let block = mem::take(&mut self.block);
                    self.skipping = false;
                    if let Some(event) = block.into_event() {
                        if let Some(id) = &event.id {
                            self.last_event_id.clone_from(id);
                        }
                        return Some(Ok(event));
                    }
                }
                Some(b':') => self.comments = self.comments.saturating_add(1),
                Some(_) if self.skipping => {}
                Some(_) if self.block.size + line.len() > self.limit => {
                    return Some(Err(self.skip(EventError::TooLong { limit: self.limit })));
                }
                Some(_) => match str::from_utf8(line) {
                    Ok(line) => self.block.field(line),
                    Err(_) => return Some(Err(self.skip(EventError::InvalidUtf8))),
                },
            }
        }
    }

    /// Ends the stream and tells whether an unfinished event was discarded.
    ///
    /// Call it after [`next_event`](Self::next_event) gave `None`. An event that was already reported
    /// as an error does not count. The reader is then ready for a new stream, with the last event id
    /// and the comment count of this one.
    pub fn finish(&mut self) -> bool {
        let rest = self.backlog.take_pending();
        let line = self.backlog.slice(&rest);
        let line_lost = !line.is_empty() && !line.starts_with(b":");
        let lost = !self.skipping && (self.block.size > 0 || line_lost);
        self.backlog = Backlog::new(self.limit);
        self.block = Block::default();
        self.after_carriage_return = false;
        self.skipping = false;
        lost
    }

    /// Number of bytes of the unfinished event.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.block.size + self.backlog.pending().len()
    }

    /// Value of `Last-Event-ID` for a reconnection.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Number of comment lines read; a peer that sends them is alive.
    #[must_use]
    pub const fn comments(&self) -> u64 {
        self.comments
    }

    fn check_unfinished_line(&mut self) -> Option<EventError> {
        let line = self.backlog.pending();
        let too_long = self.block.size + line.len() > self.limit;
        let comment = line.starts_with(b":");
        let error = (too_long && !comment && !self.skipping)
            .then(|| self.skip(EventError::TooLong { limit: self.limit }));
        if comment || self.skipping {
            // One byte tells that the line is not blank, and whether it is a comment.
            self.backlog.truncate_pending(1);
        }
        error
    }

    /// Drops the event up to its blank line.
    fn skip(&mut self, error: EventError) -> EventError {
        self.skipping = true;
        self.block = Block::default();
        error
    }
}

impl Block {
    fn field(&mut self, line: &str) {
        self.size += line.len();
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.into()),
            },
            "event" => self.name = Some(value.into()),
            "id" if !value.contains('\0') => self.id = Some(value.into()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // Empty or beyond u64: as if the line were absent.
                self.retry = value.parse().ok().or(self.retry);
            }
            _ => {}
        }
    }

    fn into_event(self) -> Option<Event> {
        if self.data.is_none() && self.id.is_none() && self.retry.is_none() {
            return None;
        }
        Some(Event {
            id: self.id,
            name: self.name.filter(|name| !name.is_empty()),
            data: self.data.unwrap_or_default(),
            retry: self.retry,
        })
    }
}

/// Shows the size only: the contents belong to the peers.
impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
