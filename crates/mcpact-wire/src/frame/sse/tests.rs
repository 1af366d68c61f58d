use alloc::{string::String, vec, vec::Vec};

use proptest::prelude::*;

use super::{
    Event, EventError, EventParts, EventReader, UnwritableField, write_comment, write_event,
};

const LIMIT: usize = 1024;

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    events: Vec<Result<Event, EventError>>,
    comments: u64,
    last_event_id: Option<String>,
    discarded: bool,
}

fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Seen {
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

fn event(data: &str) -> Event {
    Event {
        data: data.into(),
        ..Event::default()
    }
}

fn with_id(id: &str, event: Event) -> Event {
    Event {
        id: Some(id.into()),
        ..event
    }
}

fn with_name(name: &str, event: Event) -> Event {
    Event {
        name: Some(name.into()),
        ..event
    }
}

fn with_retry(retry: u64, event: Event) -> Event {
    Event {
        retry: Some(retry),
        ..event
    }
}

#[test]
fn streams() {
    let sheet: &[(&str, &[u8], &[Event])] = &[
        ("nothing", b"", &[]),
        ("blank lines", b"\n\r\n\r\r\n\n", &[]),
        ("lf", b"data: {}\n\n", &[event("{}")]),
        ("crlf", b"data: {}\r\n\r\n", &[event("{}")]),
        ("cr", b"data: {}\r\r", &[event("{}")]),
        (
            "mixed line ends",
            b"data:a\rdata:b\r\ndata:c\n\r\n",
            &[event("a\nb\nc")],
        ),
        ("no space", b"data:{}\n\n", &[event("{}")]),
        ("only one space goes", b"data:  x \n\n", &[event(" x ")]),
        ("colon in the value", b"data: a: b\n\n", &[event("a: b")]),
        ("bom", b"\xEF\xBB\xBFdata: x\n\n", &[event("x")]),
        ("bom later", b"\n\xEF\xBB\xBFdata: x\n\n", &[]),
        (
            "field without colon",
            b"data\n\ndata\ndata\n\ndata:",
            &[event(""), event("\n")],
        ),
        (
            "comment in an event",
            b"data: a\n: hello\ndata: b\n\n",
            &[event("a\nb")],
        ),
        ("comments only", b": hello\n\n:\n\n", &[]),
        (
            "unknown field",
            b"data: a\nfoo: b\nDATA: c\n data: d\n\n",
            &[event("a")],
        ),
        (
            "all fields",
            b"id: 7\nevent: message\nretry: 1500\ndata: {}\n\n",
            &[with_retry(
                1500,
                with_id("7", with_name("message", event("{}"))),
            )],
        ),
        (
            "priming event",
            b"id: 1\ndata: \n\n",
            &[with_id("1", event(""))],
        ),
        (
            "priming event without data",
            b"id: 1\n\n",
            &[with_id("1", event(""))],
        ),
        ("retry only", b"retry: 10\n\n", &[with_retry(10, event(""))]),
        ("name only", b"event: ping\n\ndata: x\n\n", &[event("x")]),
        ("empty name", b"event\ndata: x\n\n", &[event("x")]),
        (
            "id with nul",
            b"id: a\0b\n\nid: a\0b\ndata: x\n\n",
            &[event("x")],
        ),
        ("empty id", b"id\ndata: x\n\n", &[with_id("", event("x"))]),
        (
            "last field wins",
            b"id: 1\nid: 2\nevent: a\nevent: b\ndata: x\n\n",
            &[with_id("2", with_name("b", event("x")))],
        ),
        (
            "bad retry",
            b"retry: 1s\n\nretry: -1\n\nretry:\n\nretry: 99999999999999999999999\n\nretry:  1\n\n",
            &[],
        ),
        (
            "bad retry after a good one",
            b"retry: 5\nretry: x\nretry: \n\n",
            &[with_retry(5, event(""))],
        ),
        (
            "text",
            "data: h\u{e9}llo \u{1F600}\n\n".as_bytes(),
            &[event("h\u{e9}llo \u{1F600}")],
        ),
        ("unterminated", b"data: a\n\ndata: b\n", &[event("a")]),
    ];
    for (name, stream, expected) in sheet {
        let expected: Vec<_> = expected.iter().cloned().map(Ok).collect();
        assert_eq!(
            read(LIMIT, [*stream]).events,
            expected,
            "{name}, in one piece"
        );
        assert_eq!(
            read(LIMIT, stream.chunks(1)).events,
            expected,
            "{name}, by bytes"
        );
        assert_eq!(model(LIMIT, stream).events, expected, "{name}, model");
    }
}

#[test]
fn event_is_there_before_the_line_feed_of_its_last_crlf() {
    let mut reader = EventReader::new(LIMIT);
    reader.push(b"data: a\r\n\r");
    assert_eq!(reader.next_event(), Some(Ok(event("a"))));
    reader.push(b"\n");
    assert_eq!(reader.next_event(), None);
    reader.push(b"data: b\r\n\r\n");
    assert_eq!(reader.next_event(), Some(Ok(event("b"))));
    assert_eq!(reader.next_event(), None);
    assert!(!reader.finish());
}

#[test]
fn errors_cost_one_event() {
    let long = Err(EventError::TooLong { limit: 10 });
    let broken = Err(EventError::InvalidUtf8);
    let ok = |data: &str| Ok(event(data));
    #[expect(clippy::type_complexity, reason = "a sheet: name, stream, events")]
    let sheet: &[(&str, &[u8], &[Result<Event, EventError>])] = &[
        (
            "invalid data",
            b"data:\xFF\ndata:a\n\ndata:b\n\n",
            &[broken.clone(), ok("b")],
        ),
        (
            "invalid id",
            b"id:\xC3\n\ndata:b\n\n",
            &[broken.clone(), ok("b")],
        ),
        (
            "two invalid lines",
            b"data:\xFF\ndata:\xFF\n\n",
            core::slice::from_ref(&broken),
        ),
        ("invalid comment", b":\xFF\ndata:a\n\n", &[ok("a")]),
        ("at the limit", b"data:12345\n\n", &[ok("12345")]),
        (
            "long line",
            b"data:123456\n\ndata:b\n\n",
            &[long.clone(), ok("b")],
        ),
        (
            "long event",
            b"data:1\ndata:2\nid:3\n\ndata:b\n\n",
            &[long.clone(), ok("b")],
        ),
        (
            "long twice",
            b"data:123456\ndata:123456\r\n\r\ndata:b\n\n",
            &[long.clone(), ok("b")],
        ),
        (
            "long unknown field",
            b"x:123456789\n\n",
            core::slice::from_ref(&long),
        ),
        (
            "long comment",
            b":1234567890\n: and another\ndata:a\n\n",
            &[ok("a")],
        ),
        (
            "long and unterminated",
            b"data:123456",
            core::slice::from_ref(&long),
        ),
        (
            "long and invalid",
            b"data:12345\xFF\n\n",
            core::slice::from_ref(&long),
        ),
    ];
    for (name, stream, expected) in sheet {
        assert_eq!(
            read(10, [*stream]).events,
            *expected,
            "{name}, in one piece"
        );
        assert_eq!(
            read(10, stream.chunks(1)).events,
            *expected,
            "{name}, by bytes"
        );
        assert_eq!(model(10, stream).events, *expected, "{name}, model");
    }
}

#[test]
fn last_event_id_sticks() {
    let sheet: &[(&[u8], Option<&str>)] = &[
        (b"data: a\n\n", None),
        (b"id: 1\ndata: a\n\ndata: b\n\n", Some("1")),
        (b"id: 1\n\nid: 2\n\n", Some("2")),
        (b"id: 1\n\nid: 2\n", Some("1")),
        (b"id: 1\n\nid: 2\ndata: \xFF\n\n", Some("1")),
        (b"id: 1\n\nid: \0\n\n", Some("1")),
        (b"id: 1\n\nid\n\n", None),
    ];
    for (stream, expected) in sheet {
        assert_eq!(read(LIMIT, [*stream]).last_event_id.as_deref(), *expected);
    }
}

#[test]
fn finish_tells_what_was_lost() {
    let sheet: &[(&[u8], bool)] = &[
        (b"", false),
        (b"data: a\n\n", false),
        (b"data: a\r\n\r\n", false),
        (b"data: a\n", true),
        (b"dat", true),
        (b"\xEF\xBB", true),
        (b"\xEF\xBB\xBF", false),
        (b": comment", false),
        (b": comment\n", false),
        (b"data: \xFF\n", false),
        (b"data: \xFF\n\nid", true),
    ];
    for (stream, expected) in sheet {
        assert_eq!(read(LIMIT, [*stream]).discarded, *expected, "{stream:?}");
    }
}

#[test]
fn finished_reader_reads_the_next_stream() {
    let mut reader = EventReader::new(LIMIT);
    reader.push(b"id: 1\n\n: alive\ndata: lost\r");
    assert_eq!(reader.next_event(), Some(Ok(with_id("1", event("")))));
    assert_eq!(reader.next_event(), None);
    assert!(reader.finish());
    reader.push(b"\xEF\xBB\xBFdata: new\n\n");
    assert_eq!(reader.next_event(), Some(Ok(event("new"))));
    assert_eq!(reader.last_event_id(), Some("1"));
    assert_eq!(reader.comments(), 1);
}

#[test]
fn long_event_is_not_buffered() {
    for prefix in ["data: ", ": ", "data: \u{e9}\ndata", "data: a\n:"] {
        let (limit, chunk) = (1000, [b'x'; 64]);
        let mut reader = EventReader::new(limit);
        let mut reports = 0;
        reader.push(prefix.as_bytes());
        for _ in 0..10_000 {
            reader.push(&chunk);
            assert!(reader.backlog.capacity() <= limit + chunk.len());
            while let Some(event) = reader.next_event() {
                assert_eq!(event, Err(EventError::TooLong { limit }));
                reports += 1;
            }
        }
        let comment = prefix.ends_with(':') || prefix.starts_with(':');
        assert_eq!(reports, if comment { 0 } else { 1 }, "{prefix}");
        reader.push(b"\n\ndata: b\n\n");
        let events: Vec<_> = core::iter::from_fn(|| reader.next_event()).collect();
        assert_eq!(events.last(), Some(&Ok(event("b"))), "{prefix}");
    }
}

#[test]
fn event_of_many_lines_is_bounded() {
    let mut reader = EventReader::new(1000);
    let mut errors = 0;
    for _ in 0..10_000 {
        reader.push(b"data: 0123456789\n");
        while let Some(event) = reader.next_event() {
            assert!(event.is_err());
            errors += 1;
        }
        assert!(reader.block.data.as_ref().map_or(0, String::capacity) <= 2000);
    }
    assert_eq!(errors, 1);
}

#[test]
fn debug_does_not_show_contents() {
    let mut reader = EventReader::new(LIMIT);
    reader.push(b"data: secret\nda");
    assert_eq!(reader.next_event(), None);
    let shown = alloc::format!("{reader:?}");
    assert!(
        shown.contains("size: 12") && !shown.contains("secret"),
        "{shown}"
    );
}

#[test]
fn written_events() {
    let parts = EventParts::default;
    let sheet = [
        (
            EventParts {
                data: Some("{}"),
                ..parts()
            },
            "data: {}\n\n",
        ),
        (
            EventParts {
                id: Some("7"),
                name: Some("message"),
                data: Some("{}"),
                retry: Some(3),
            },
            "id: 7\nevent: message\nretry: 3\ndata: {}\n\n",
        ),
        (
            EventParts {
                id: Some("7"),
                data: Some(""),
                ..parts()
            },
            "id: 7\ndata: \n\n",
        ),
        (
            EventParts {
                retry: Some(0),
                ..parts()
            },
            "retry: 0\n\n",
        ),
        (
            EventParts {
                data: Some("a\nb\r\nc\rd\n\n"),
                ..parts()
            },
            "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n",
        ),
        (
            EventParts {
                data: Some("\r\r\n"),
                ..parts()
            },
            "data: \ndata: \ndata: \n\n",
        ),
    ];
    for (parts, expected) in sheet {
        let mut out = Vec::new();
        assert_eq!(write_event(&mut out, &parts), Ok(()));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn unwritable_fields_leave_no_trace() {
    let mut out = b"before".to_vec();
    for text in ["a\nb", "a\rb"] {
        let name = EventParts {
            name: Some(text),
            id: Some("1"),
            ..EventParts::default()
        };
        assert_eq!(write_event(&mut out, &name), Err(UnwritableField::Name));
    }
    for text in ["a\nb", "a\rb", "a\0b"] {
        let id = EventParts {
            id: Some(text),
            ..EventParts::default()
        };
        assert_eq!(write_event(&mut out, &id), Err(UnwritableField::Id));
    }
    assert_eq!(out, b"before");
}

#[test]
fn written_comments() {
    for (text, expected) in [
        ("", ": \n\n"),
        ("a", ": a\n\n"),
        ("a\r\ndata: b", ": a\n: data: b\n\n"),
    ] {
        let mut out = Vec::new();
        write_comment(&mut out, text);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

/// The same rules, written for a stream that is there as a whole.
fn model(limit: usize, stream: &[u8]) -> Seen {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines = vec![Vec::new()];
    let mut previous = 0;
    for &byte in stream {
        match byte {
            b'\n' if previous == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().unwrap().push(byte),
        }
        previous = byte;
    }
    let tail = lines.pop().unwrap();
    let mut seen = Seen {
        events: Vec::new(),
        comments: lines.iter().filter(|line| line.starts_with(b":")).count() as u64,
        last_event_id: None,
        discarded: false,
    };
    if b"\xEF\xBB".starts_with(stream) {
        seen.discarded = !stream.is_empty();
        return seen;
    }
    let mut blocks: Vec<Vec<&[u8]>> = vec![Vec::new()];
    for line in &lines {
        match line.first() {
            None => blocks.push(Vec::new()),
            Some(b':') => {}
            Some(_) => blocks.last_mut().unwrap().push(line),
        }
    }
    let last = blocks.len() - 1;
    let unfinished = !tail.is_empty() && !tail.starts_with(b":");
    blocks[last].extend(unfinished.then_some(tail.as_slice()));
    for (index, block) in blocks.into_iter().enumerate() {
        let parsed = model_event(limit, &block, index == last && unfinished);
        match parsed {
            Err(error) => seen.events.push(Err(error)),
            Ok(_) if index == last => seen.discarded = !block.is_empty(),
            Ok(None) => {}
            Ok(Some(event)) => {
                let id = event.id.clone();
                seen.last_event_id = id.or(seen.last_event_id);
                seen.events.push(Ok(event));
            }
        }
    }
    seen.last_event_id = seen.last_event_id.filter(|id| !id.is_empty());
    seen
}

fn model_event(
    limit: usize,
    block: &[&[u8]],
    unfinished: bool,
) -> Result<Option<Event>, EventError> {
    let mut size = 0;
    let (mut data, mut found, mut reported) = (Vec::new(), Event::default(), false);
    for (index, line) in block.iter().enumerate() {
        size += line.len();
        if size > limit {
            return Err(EventError::TooLong { limit });
        }
        let line = match core::str::from_utf8(line) {
            Ok(line) => line,
            // Half a character at the end may still be completed.
            Err(_) if unfinished && index + 1 == block.len() => break,
            Err(_) => return Err(EventError::InvalidUtf8),
        };
        let (name, value) = match line.find(':') {
            Some(colon) if line[colon + 1..].starts_with(' ') => {
                (&line[..colon], &line[colon + 2..])
            }
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, ""),
        };
        match name {
            "data" => data.push(value),
            "event" => found.name = (!value.is_empty()).then(|| value.into()),
            "id" if !value.contains('\0') => found.id = Some(value.into()),
            "retry"
                if value.chars().all(|c| c.is_ascii_digit()) && value.parse::<u64>().is_ok() =>
            {
                found.retry = value.parse().ok();
            }
            _ => {}
        }
        reported = !data.is_empty() || found.id.is_some() || found.retry.is_some();
    }
    found.data = data.join("\n");
    Ok(reported.then_some(found))
}

fn cut<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    places.sort_unstable();
    places.push(stream.len());
    let mut from = 0;
    places
        .into_iter()
        .map(|to| &stream[core::mem::replace(&mut from, to)..to])
        .collect()
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\n\r\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
        6 => prop::sample::select(vec!["data: ", "data:", "data", "id: ", "id:1", "event: ", "retry: ", "retry:7", ":", ": ping", "x: "])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::sample::select(vec![" ", "\u{FEFF}", "\0", "é", "😀", "{}", "12"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn any_event() -> impl Strategy<Value = Event> {
    (
        prop::option::of("[^\r\n\0]{0,8}"),
        prop::option::of("[^\r\n]{1,8}"),
        "[^\r]{0,40}",
        prop::option::of(any::<u64>()),
    )
        .prop_map(|(id, name, data, retry)| Event {
            id,
            name,
            data,
            retry,
        })
}

proptest! {
    #[test]
    fn chunking_does_not_matter(
        stream in stream(),
        limit in 0_usize..60,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        prop_assert_eq!(read(limit, cut(&stream, &cuts)), model(limit, &stream));
    }

    #[test]
    fn memory_is_bounded(
        stream in stream(),
        limit in 0_usize..60,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut reader = EventReader::new(limit);
        let mut largest = 0;
        for chunk in cut(&stream, &cuts) {
            reader.push(chunk);
            largest = largest.max(chunk.len());
            while reader.next_event().is_some() {}
            prop_assert!(reader.backlog.capacity() <= (limit.max(3) + largest).max(8));
        }
    }

    #[test]
    fn written_events_are_read_back(
        events in prop::collection::vec(any_event(), 0..8),
        comment in any::<String>(),
        size in 1_usize..20,
    ) {
        let mut out = Vec::new();
        for event in &events {
            write_comment(&mut out, &comment);
            prop_assert_eq!(write_event(&mut out, &event.parts()), Ok(()));
        }
        let seen = read(LIMIT * LIMIT, out.chunks(size));
        let expected: Vec<_> = events.into_iter().map(Ok).collect();
        prop_assert_eq!(seen.events, expected);
        prop_assert!(!seen.discarded);
    }

    #[test]
    fn any_data_is_one_event(data in any::<String>()) {
        let mut out = Vec::new();
        let parts = EventParts { data: Some(&data), ..EventParts::default() };
        prop_assert_eq!(write_event(&mut out, &parts), Ok(()));
        let normalised = data.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(read(LIMIT * LIMIT, [out.as_slice()]).events, vec![Ok(event(&normalised))]);
    }
}
