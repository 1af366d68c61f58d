use mcpact_wire::frame::sse::{Event, EventError, EventReader, write_comment, write_event};

use crate::chunks;

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    events: Vec<Result<Event, EventError>>,
    comments: u64,
    last_event_id: Option<String>,
    discarded: bool,
}

/// Events do not depend on how the stream is cut, none is longer than the limit, and what was read
/// can be written and read again.
///
/// The first byte is the limit, the second chooses the cuts, the rest is the stream.
///
/// # Panics
/// An invariant is broken.
pub fn sse(data: &[u8]) {
    let Some((limit, cuts, stream)) = chunks::split(data) else {
        return;
    };
    let seen = read(limit, &chunks::cut(stream, cuts));
    assert_eq!(seen, read(limit, &[stream]));
    let events: Vec<&Event> = seen.events.iter().flatten().collect();
    for event in &events {
        assert!(size(event) <= limit, "{event:?}");
    }
    written(&events);
}

fn read(limit: usize, chunks: &[&[u8]]) -> Seen {
    let mut reader = EventReader::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        while let Some(event) = reader.next_event() {
            events.push(event);
        }
    }
    Seen {
        events,
        comments: reader.comments(),
        discarded: reader.finish(),
        last_event_id: reader.last_event_id().map(Into::into),
    }
}

fn size(event: &Event) -> usize {
    let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
    event.data.len() + text(&event.id) + text(&event.name)
}

fn written(events: &[&Event]) {
    let mut out = Vec::new();
    for event in events {
        write_comment(&mut out, &event.data);
        assert_eq!(write_event(&mut out, &event.parts()), Ok(()));
    }
    let again = read(out.len(), &[&out]);
    assert!(!again.discarded);
    assert_eq!(
        again.events.iter().flatten().collect::<Vec<_>>(),
        events,
        "{out:?}"
    );
}
