use alloc::{string::ToString as _, vec::Vec};

use super::Event;

/// Parts of an event for [`write_event`]; absent parts get no line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventParts<'a> {
    /// The event id.
    pub id: Option<&'a str>,
    /// The event type.
    pub name: Option<&'a str>,
    /// The data; `Some("")` with an id primes a stream.
    pub data: Option<&'a str>,
    /// Milliseconds to wait before a reconnection.
    pub retry: Option<u64>,
}

/// A value that an event stream cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnwritableField {
    /// The id has a line break or a NUL.
    #[error("event id contains a line break or NUL")]
    Id,
    /// The event type has a line break.
    #[error("event type contains a line break")]
    Name,
}

impl Event {
    /// The same event, borrowed for writing.
    #[must_use]
    pub fn parts(&self) -> EventParts<'_> {
        EventParts {
            id: self.id.as_deref(),
            name: self.name.as_deref(),
            data: Some(&self.data),
            retry: self.retry,
        }
    }
}

/// Appends an event and its blank line.
///
/// Each line of the data gets its own field, so that a reader gets the data back with all line
/// breaks as line feeds.
///
/// # Errors
///
/// A value that would break out of its line; nothing is appended then.
pub fn write_event(out: &mut Vec<u8>, event: &EventParts<'_>) -> Result<(), UnwritableField> {
    if event.id.is_some_and(|id| id.contains(['\n', '\r', '\0'])) {
        return Err(UnwritableField::Id);
    }
    if event.name.is_some_and(|name| name.contains(['\n', '\r'])) {
        return Err(UnwritableField::Name);
    }
    if let Some(id) = event.id {
        write_field(out, "id: ", id);
    }
    if let Some(name) = event.name {
        write_field(out, "event: ", name);
    }
    if let Some(retry) = event.retry {
        write_field(out, "retry: ", &retry.to_string());
    }
    if let Some(data) = event.data {
        write_lines(out, "data: ", data);
    }
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which keeps a connection alive and is no event, and a blank line.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, ": ", text);
    out.push(b'\n');
}

fn write_lines(out: &mut Vec<u8>, prefix: &str, text: &str) {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once(['\n', '\r']) {
        write_field(out, prefix, line);
        let crlf = rest.as_bytes().get(line.len()) == Some(&b'\r');
        rest = after.strip_prefix('\n').filter(|_| crlf).unwrap_or(after);
    }
    write_field(out, prefix, rest);
}

fn write_field(out: &mut Vec<u8>, prefix: &str, value: &str) {
    out.reserve(prefix.len() + value.len() + 1);
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}
