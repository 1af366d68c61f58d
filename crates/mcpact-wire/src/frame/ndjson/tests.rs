use alloc::{string::String, vec, vec::Vec};

use proptest::prelude::*;

use super::{DEFAULT_LINE_LIMIT, KEPT_END, Line, LineReader, write_line};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Json(Vec<u8>),
    Noise(Vec<u8>),
    TooLong(Vec<u8>),
}

fn json(text: &str) -> Seen {
    Seen::Json(text.into())
}

fn noise(text: &str) -> Seen {
    Seen::Noise(text.into())
}

fn too_long(text: &str) -> Seen {
    Seen::TooLong(text.into())
}

fn seen(line: Line<'_>) -> Seen {
    match line {
        Line::Json(bytes) => Seen::Json(bytes.into()),
        Line::Noise(bytes) => Seen::Noise(bytes.into()),
        Line::TooLong { ends, .. } => Seen::TooLong(ends.into()),
    }
}

fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut reader = LineReader::new(limit);
    let mut all = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        while let Some(line) = reader.next_line() {
            all.push(seen(line));
        }
    }
    while let Some(line) = reader.finish() {
        all.push(seen(line));
    }
    all
}

/// The same rules, written for a stream that is there as a whole.
fn model(limit: usize, stream: &[u8]) -> Vec<Seen> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let classify = |line: &[u8]| {
        if line.len() > limit {
            let (first, rest) = line.split_at(line.len().min(KEPT_END));
            let last = &rest[rest.len().saturating_sub(KEPT_END)..];
            return Some(Seen::TooLong([first, last].concat()));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.trim_ascii_start().first()? {
            b'{' | b'[' => Some(Seen::Json(line.into())),
            _ => Some(Seen::Noise(line.into())),
        }
    };
    stream
        .split(|&byte| byte == b'\n')
        .filter_map(classify)
        .collect()
}

/// Cuts a stream at any places, in order, also twice at the same one.
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

#[test]
fn streams() {
    let sheet: &[(&str, &[u8], &[Seen])] = &[
        ("nothing", b"", &[]),
        ("one line", b"{}\n", &[json("{}")]),
        ("batch", b"[{}]\n", &[json("[{}]")]),
        ("two lines", b"{}\n[]\n", &[json("{}"), json("[]")]),
        (
            "crlf",
            b"{\"a\":1}\r\n{}\r\n",
            &[json("{\"a\":1}"), json("{}")],
        ),
        (
            "unterminated",
            b"{}\n{\"b\":2}",
            &[json("{}"), json("{\"b\":2}")],
        ),
        ("unterminated crlf", b"{}\r", &[json("{}")]),
        ("bom", b"\xEF\xBB\xBF{}\n", &[json("{}")]),
        ("only a bom", b"\xEF\xBB\xBF", &[]),
        ("bom on a blank line", b"\xEF\xBB\xBF\n{}\n", &[json("{}")]),
        (
            "bom later",
            b"{}\n\xEF\xBB\xBF{}\n",
            &[json("{}"), noise("\u{FEFF}{}")],
        ),
        (
            "half a bom",
            b"\xEF\xBB{}\n",
            &[Seen::Noise(b"\xEF\xBB{}".to_vec())],
        ),
        ("blank lines", b"\n\r\n \t \n{}\n\n", &[json("{}")]),
        ("leading whitespace", b"  {}\n", &[json("  {}")]),
        ("lone carriage return", b"{\r}\n", &[json("{\r}")]),
        (
            "noise",
            b"ready\n{}\n\"text\"\n42\n",
            &[noise("ready"), json("{}"), noise("\"text\""), noise("42")],
        ),
        (
            "not text",
            b"\xFF\xFE\n",
            &[Seen::Noise(b"\xFF\xFE".to_vec())],
        ),
        (
            "at and over the limit",
            b"{123456}\n{1234567}\n{}\n",
            &[json("{123456}"), too_long("{1234567}"), json("{}")],
        ),
        (
            "over the limit at the end",
            b"{12345678",
            &[too_long("{12345678")],
        ),
        (
            "over the limit and blank",
            b"         \n",
            &[too_long("         ")],
        ),
    ];
    for (name, stream, expected) in sheet {
        assert_eq!(read(8, [*stream]), *expected, "{name}, in one piece");
        assert_eq!(read(8, stream.chunks(1)), *expected, "{name}, by bytes");
        assert_eq!(model(8, stream), *expected, "{name}, model");
    }
}

#[test]
fn finish_gives_complete_lines_first() {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    reader.push(b"{}\n[]\nrest");
    assert_eq!(reader.finish(), Some(Line::Json(b"{}")));
    assert_eq!(reader.finish(), Some(Line::Json(b"[]")));
    assert_eq!(reader.finish(), Some(Line::Noise(b"rest")));
    assert_eq!(reader.finish(), None);
    assert_eq!(reader.finish(), None);
}

#[test]
fn long_line_is_not_buffered() {
    let (limit, chunk) = (1000, [b'x'; 64]);
    let mut reader = LineReader::new(limit);
    for _ in 0..10_000 {
        reader.push(&chunk);
        assert!(reader.backlog.capacity() <= limit + chunk.len());
        assert_eq!(reader.next_line(), None);
        assert!(reader.ends.capacity() <= 4 * KEPT_END);
    }
    reader.push(b"!\n{}\n");
    let ends = [[b'x'; 2 * KEPT_END - 1].as_slice(), b"!"].concat();
    let ends = ends.as_slice();
    assert_eq!(reader.next_line(), Some(Line::TooLong { limit, ends }));
    assert_eq!(reader.next_line(), Some(Line::Json(b"{}")));
}

/// Rescanning or moving the buffer for each byte would take minutes.
#[test]
fn long_line_by_bytes_takes_linear_time() {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    let length = 512 * 1024;
    reader.push(b"{}\n");
    for _ in 0..length {
        reader.push(b"[");
        if let Some(line) = reader.next_line() {
            assert_eq!(line, Line::Json(b"{}"));
        }
    }
    assert_eq!(reader.backlog.pending().len(), length);
}

/// Moving the backlog for each line would take minutes.
#[test]
fn many_lines_in_one_chunk_take_linear_time() {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    reader.push(&b"{}\n".repeat(256 * 1024));
    let mut lines = 0;
    while reader.next_line().is_some() {
        lines += 1;
        reader.push(b"\n");
    }
    assert_eq!(lines, 256 * 1024);
}

#[test]
fn large_message_does_not_pin_its_memory() {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    reader.push(&vec![b'{'; 4 * 1024 * 1024]);
    reader.push(b"\n");
    assert!(matches!(reader.next_line(), Some(Line::Json(_))));
    assert_eq!(reader.next_line(), None);
    assert!(reader.backlog.capacity() < 1024 * 1024);
}

#[test]
fn debug_does_not_show_contents() {
    let mut reader = LineReader::new(DEFAULT_LINE_LIMIT);
    reader.push(b"secret");
    assert_eq!(reader.next_line(), None);
    let shown = alloc::format!("{reader:?}");
    assert!(
        shown.contains("pending: 6") && !shown.contains("115"),
        "{shown}"
    );
}

#[test]
fn written_lines() {
    let sheet = [
        ("{}", "{}\n"),
        ("{\n  \"a\": \"b\\n\"\r\n}", "{   \"a\": \"b\\n\"  }\n"),
        ("{\"a\":\"\u{2028}é\"}", "{\"a\":\"\u{2028}é\"}\n"),
        ("", "\n"),
    ];
    for (message, line) in sheet {
        let mut out = b"before\n".to_vec();
        write_line(&mut out, message);
        assert_eq!(out, [b"before\n", line.as_bytes()].concat());
    }
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b" \t".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        4 => Just(b"{\"a\":1}".to_vec()),
        2 => Just(b"[".to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..400),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunking_does_not_matter(
        stream in stream(),
        limit in 0_usize..100,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        prop_assert_eq!(read(limit, cut(&stream, &cuts)), model(limit, &stream));
    }

    #[test]
    fn late_owner_loses_nothing(
        stream in stream(),
        limit in 0_usize..100,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        // One line per push at most, so that lines pile up.
        let mut reader = LineReader::new(limit);
        let mut all = Vec::new();
        for chunk in cut(&stream, &cuts) {
            reader.push(chunk);
            all.extend(reader.next_line().map(seen));
        }
        while let Some(line) = reader.finish() {
            all.push(seen(line));
        }
        prop_assert_eq!(all, model(limit, &stream));
    }

    #[test]
    fn memory_is_bounded(
        stream in stream(),
        limit in 0_usize..100,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let mut reader = LineReader::new(limit);
        let mut largest = 0;
        for chunk in cut(&stream, &cuts) {
            reader.push(chunk);
            largest = largest.max(chunk.len());
            while reader.next_line().is_some() {}
            prop_assert!(reader.backlog.capacity() <= (limit.max(3) + largest).max(8));
        }
    }

    #[test]
    fn written_lines_are_read_back(messages in prop::collection::vec("\\{[^\r\n]*\\}", 0..10)) {
        let mut out = Vec::new();
        for message in &messages {
            write_line(&mut out, message);
        }
        let expected: Vec<Seen> = messages.iter().map(|message| json(message)).collect();
        prop_assert_eq!(read(DEFAULT_LINE_LIMIT, out.chunks(7)), expected);
    }

    /// P1: whatever a message holds, it is one line.
    #[test]
    fn any_message_is_one_line(message in any::<String>()) {
        let mut out = Vec::new();
        write_line(&mut out, &message);
        prop_assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(out.len(), message.len() + 1);
        prop_assert!(out.ends_with(b"\n"));
    }
}
