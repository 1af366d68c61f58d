use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, EnvelopeError, Outcome};
use mcpact_wire::layout::Layout;
use mcpact_wire::scan;

/// Reading a message never panics, is the same by every way, and survives being written again.
///
/// # Panics
/// An invariant is broken.
pub fn envelope(data: &[u8]) {
    let alone = Envelope::parse(data);
    if let Ok(text) = scan::utf8(data) {
        two_looks(text, &alone);
    }
    match (Frame::parse(data), &alone) {
        (Ok(Frame::Single(framed)), alone) => assert_eq!(shown(&Ok(framed)), shown(alone)),
        (Ok(Frame::Batch(all)), alone) => {
            assert!(alone.is_err());
            for member in all.iter().flatten() {
                round_trip(member);
            }
        }
        (Err(framed), Err(alone)) => same_blame(data, &framed, alone),
        (Err(framed), Ok(_)) => panic!("a message, but no frame: {framed}"),
    }
    if let Ok(envelope) = &alone {
        round_trip(envelope);
    }
}

/// Two values are the same when they show the same: neither borrowing nor addresses are shown.
fn shown(parsed: &Result<Envelope<'_>, EnvelopeError>) -> String {
    format!("{parsed:?}")
}

/// A frame is rejected for the same reason as a message, unless it is an array: that is not a message, but a frame with
/// possibly invalid members.
fn same_blame(data: &[u8], framed: &EnvelopeError, alone: &EnvelopeError) {
    let is_array = data.trim_ascii_start().starts_with(b"[");
    match alone {
        EnvelopeError::Shape { .. } if is_array => {}
        EnvelopeError::Json(_) if is_array => {
            assert!(
                matches!(framed, EnvelopeError::Json(_)),
                "{framed} / {alone}"
            );
        }
        EnvelopeError::Shape { .. } | EnvelopeError::Json(_) => assert_eq!(framed, alone),
    }
}

/// A layout can be looked at as often as one likes.
fn two_looks(text: &str, alone: &Result<Envelope<'_>, EnvelopeError>) {
    let Ok(layout) = Layout::parse(text) else {
        return assert!(alone.is_err());
    };
    let copy = layout;
    let first = shown(&Envelope::view(text, &layout));
    assert_eq!(first, shown(&Envelope::view(text, &copy)));
    assert_eq!(first, shown(alone));
}

/// A message composed from the parts of another has the same parts.
fn round_trip(envelope: &Envelope<'_>) {
    let text = match envelope {
        Envelope::Request(request) => {
            codec::call(Some(request.id), &request.method, request.params.raw)
        }
        Envelope::Notification(note) => codec::call(None, &note.method, note.params.raw),
        Envelope::Response(response) => match (&response.outcome, response.id) {
            (Outcome::Result(body), Some(id)) => codec::result(id, body.raw),
            (Outcome::Result(_), None) => panic!("a result without an id"),
            (Outcome::Error(raw), Some(id)) => codec::error(Some(id), raw),
            (Outcome::Error(raw), None) => codec::error_with_null_id(raw),
        },
    };
    let again = Envelope::parse(text.as_bytes());
    assert_eq!(shown(&again), format!("Ok({envelope:?})"), "{text}");
}
