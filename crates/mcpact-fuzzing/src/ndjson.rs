use mcpact_wire::frame::ndjson::{Line, LineReader, write_line};

use crate::chunks;

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Json(Vec<u8>),
    Noise(Vec<u8>),
    TooLong,
}

/// Lines do not depend on how the stream is cut, and none is longer than the limit.
///
/// The first byte is the limit, the second chooses the cuts, the rest is the stream.
///
/// # Panics
/// An invariant is broken.
pub fn ndjson(data: &[u8]) {
    let Some((limit, cuts, stream)) = chunks::split(data) else {
        return;
    };
    let lines = read(limit, &chunks::cut(stream, cuts));
    assert_eq!(lines, read(limit, &[stream]));
    assert_eq!(lines, model(limit, stream));
    for line in &lines {
        match line {
            Seen::Json(line) => {
                assert!(line.len() <= limit);
                written(line);
            }
            Seen::Noise(line) => assert!(line.len() <= limit),
            Seen::TooLong => {}
        }
    }
}

fn read(limit: usize, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut reader = LineReader::new(limit);
    let mut all = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        while let Some(line) = reader.next_line() {
            all.push(seen(line, limit));
        }
    }
    while let Some(line) = reader.finish() {
        all.push(seen(line, limit));
    }
    all
}

fn seen(line: Line<'_>, expected: usize) -> Seen {
    match line {
        Line::Json(bytes) => Seen::Json(bytes.into()),
        Line::Noise(bytes) => Seen::Noise(bytes.into()),
        Line::TooLong { limit, .. } => {
            assert_eq!(limit, expected);
            Seen::TooLong
        }
    }
}

/// The same rules, written for a stream that is there as a whole.
fn model(limit: usize, stream: &[u8]) -> Vec<Seen> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let lines = stream.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| {
            if line.len() > limit {
                return Some(Seen::TooLong);
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match line.trim_ascii_start().first()? {
                b'{' | b'[' => Some(Seen::Json(line.into())),
                _ => Some(Seen::Noise(line.into())),
            }
        })
        .collect()
}

/// A message that is written is read back as one line; only line breaks become spaces.
fn written(line: &[u8]) {
    let Ok(text) = core::str::from_utf8(line) else {
        return;
    };
    let mut out = Vec::new();
    write_line(&mut out, text);
    let expected = text.replace('\r', " ").into_bytes();
    assert_eq!(read(out.len(), &[&out]), [Seen::Json(expected)]);
}
