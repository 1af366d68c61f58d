//! Streams of messages, cut as a pipe or a socket cuts them.

use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, LineReader, write_line};
use mcpact_wire::frame::sse::{EventParts, EventReader, write_event};

use crate::messages::legacy_call;

/// How many bytes arrive at once.
pub const CHUNK: usize = 64 * 1024;

const STREAM_LENGTH: usize = 1024 * 1024;

/// 1 MiB of small messages, one per line.
#[must_use]
pub fn line_stream() -> Vec<u8> {
    let message = legacy_call();
    let mut out = Vec::new();
    while out.len() < STREAM_LENGTH {
        write_line(&mut out, &message);
    }
    out
}

/// 1 MiB of small messages, one per event.
#[must_use]
pub fn event_stream() -> Vec<u8> {
    let message = legacy_call();
    let mut out = Vec::new();
    while out.len() < STREAM_LENGTH {
        let id = out.len().to_string();
        let parts = EventParts {
            id: Some(&id),
            name: Some("message"),
            data: Some(&message),
            retry: None,
        };
        if write_event(&mut out, &parts).is_err() {
            break;
        }
    }
    out
}

/// Reads a stream of lines to its end.
#[must_use]
pub fn count_lines(stream: &[u8]) -> usize {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    let mut count = 0;
    for chunk in stream.chunks(CHUNK) {
        reader.push(chunk);
        while reader.next_line().is_some() {
            count += 1;
        }
    }
    count
}

/// Reads a stream of events to its end.
#[must_use]
pub fn count_events(stream: &[u8]) -> usize {
    let mut reader = EventReader::new(DEFAULT_LINE_LIMIT);
    let mut count = 0;
    for chunk in stream.chunks(CHUNK) {
        reader.push(chunk);
        while let Some(Ok(_)) = reader.next_event() {
            count += 1;
        }
    }
    count
}
