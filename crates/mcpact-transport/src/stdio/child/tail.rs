//! The end of standard error, kept for error messages.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::masks::Masks;
use crate::lock;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Maximum length of a logged line; longer lines are split.
const LONGEST_LINE: usize = 8 * 1024;

/// Receives every line that a child writes to standard error, without control characters and with secrets masked.
#[derive(Clone)]
pub struct StderrSink(pub Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StderrSink(..)")
    }
}

/// The last bytes that a child wrote to standard error.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    ring: Arc<Mutex<Ring>>,
    masks: Masks,
    stderr_sink: Option<StderrSink>,
}

#[derive(Debug)]
struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
    /// Set if the first line lost its beginning.
    is_cut: bool,
}

impl Tail {
    pub(super) fn new(limit: usize, masks: Masks, stderr_sink: Option<StderrSink>) -> Self {
        Self {
            masks,
            stderr_sink,
            ring: Arc::new(Mutex::new(Ring {
                bytes: VecDeque::new(),
                limit,
                is_cut: false,
            })),
        }
    }

    fn push(&self, chunk: &[u8]) {
        let mut ring = lock(&self.ring);
        let kept = &chunk[chunk.len().saturating_sub(ring.limit)..];
        let surplus = (ring.bytes.len() + kept.len()).saturating_sub(ring.limit);
        if surplus > 0 {
            ring.is_cut = ring.bytes.get(surplus - 1) != Some(&b'\n');
            ring.bytes.drain(..surplus);
        }
        if kept.len() < chunk.len() {
            ring.is_cut = chunk.get(chunk.len() - kept.len() - 1) != Some(&b'\n');
        }
        ring.bytes.extend(kept);
    }

    /// Returns the last lines without control characters. A truncated first line is left out unless it is the only one.
    pub(super) fn text(&self) -> String {
        let ring = lock(&self.ring);
        let bytes: Vec<u8> = ring.bytes.iter().copied().collect();
        let is_cut = ring.is_cut;
        drop(ring);
        let rest = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) if is_cut && end + 1 < bytes.len() => &bytes[end + 1..],
            // The rest of a secret is masked, too.
            Some(_) | None if is_cut => &bytes[self.masks.first_cut(&bytes)..],
            Some(_) | None => &bytes[..],
        };
        rest.split_inclusive(|byte| *byte == b'\n')
            .map(|line| self.masks.cover(printable(line)) + "\n")
            .collect()
    }

    /// Reads until EOF: a child blocks when the pipe of its log is full.
    pub(super) async fn run(self, name: Arc<str>, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK].into_boxed_slice();
        let mut open_line = Vec::new();
        loop {
            match stderr.read(&mut chunk).await {
                Ok(0) => break,
                Ok(count) => {
                    self.push(&chunk[..count]);
                    self.log_lines(&name, &mut open_line, &chunk[..count]);
                    // Lets other work run if the output never ends.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(child = %name, %error, "standard error cannot be read");
                    break;
                }
            }
        }
        if !open_line.is_empty() {
            self.log_line(&name, &open_line);
        }
    }

    /// Logs complete lines and keeps the rest, at most [`LONGEST_LINE`] bytes.
    fn log_lines(&self, name: &str, open_line: &mut Vec<u8>, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(LONGEST_LINE) {
                open_line.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    self.log_line(name, open_line);
                    open_line.clear();
                } else if open_line.len() >= LONGEST_LINE {
                    // A secret that spans two pieces would be masked in neither.
                    let end = match self.masks.last_cut(open_line) {
                        0 => continue,
                        end => end,
                    };
                    self.log_line(name, &open_line[..end]);
                    open_line.drain(..end);
                }
            }
        }
    }

    fn log_line(&self, name: &str, line: &[u8]) {
        let is_logged = tracing::enabled!(target: "mcpact::child", tracing::Level::INFO);
        if !is_logged && self.stderr_sink.is_none() {
            return;
        }
        let text = self.masks.cover(printable(line));
        if let Some(StderrSink(write)) = &self.stderr_sink {
            write(&text);
        }
        if is_logged {
            tracing::info!(target: "mcpact::child", child = name, origin = "downstream", "{text}");
        }
    }
}

/// Converts a line to text without control characters, safe for a terminal.
fn printable(line: &[u8]) -> String {
    let keep = |letter: char| {
        if letter.is_control() && letter != '\t' {
            '\u{fffd}'
        } else {
            letter
        }
    };
    String::from_utf8_lossy(line)
        .trim_end_matches(['\n', '\r'])
        .chars()
        .map(keep)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Arc, LONGEST_LINE, Masks, Mutex, StderrSink, Tail, lock, printable};

    fn tail(limit: usize, chunks: &[&[u8]]) -> String {
        let tail = Tail::new(limit, Masks::default(), None);
        chunks.iter().for_each(|chunk| tail.push(chunk));
        assert!(lock(&tail.ring).bytes.len() <= limit);
        tail.text()
    }

    #[test]
    fn last_complete_lines_are_kept() {
        assert_eq!(tail(64, &[b"one\ntw", b"o\nthree"]), "one\ntwo\nthree\n");
        assert_eq!(tail(8, &[b"first\n", b"second\n"]), "second\n");
        assert_eq!(tail(7, &[b"first\nsecond\n"]), "second\n");
        assert_eq!(tail(9, &[b"first\nsecond\n"]), "second\n");
        assert_eq!(tail(4, &[b"endless", b" line"]), "line\n");
        assert_eq!(tail(0, &[b"anything\n"]), "");
        assert_eq!(tail(8, &[]), "");
    }

    /// T2: a log in any encoding becomes text that is safe for a terminal.
    #[test]
    fn any_bytes_become_text() {
        assert_eq!(
            printable(b"\xff\x1b[31mred\ttab\r\n"),
            "\u{fffd}\u{fffd}[31mred\ttab"
        );
    }

    /// A secret at the point where a long line is split is masked.
    #[test]
    fn secret_at_a_split_is_masked() {
        let secret = "hunter2-hunter2";
        let masks = Masks::new([secret.to_owned()]);
        let written = Arc::new(Mutex::new(String::new()));
        let book = Arc::clone(&written);
        let stderr_sink = StderrSink(Arc::new(move |line| book.lock().unwrap().push_str(line)));
        let tail = Tail::new(64, masks, Some(stderr_sink));
        let mut open_line = Vec::new();
        for before in LONGEST_LINE - secret.len() - 1..=LONGEST_LINE + 1 {
            let line = format!("{}{secret} is it\n", "z".repeat(before));
            tail.log_lines("test", &mut open_line, line.as_bytes());
            let told = std::mem::take(&mut *written.lock().unwrap());
            let expected = format!("{}*** is it", "z".repeat(before));
            assert!(told == expected, "{before}: {}", &told[told.len() - 40..]);
        }
        let tail = Tail::new(12, Masks::new([secret.to_owned()]), None);
        tail.push(format!("the token is {secret}!!").as_bytes());
        assert_eq!(tail.text(), "!!\n");
    }

    /// T9: an unfinished line is bounded.
    #[test]
    fn unfinished_line_is_bounded() {
        let tail = Tail::new(0, Masks::default(), None);
        let mut open_line = Vec::new();
        for _ in 0..100 {
            tail.log_lines("test", &mut open_line, &[0xff; 10_000]);
            assert!(open_line.len() <= 2 * LONGEST_LINE);
        }
        tail.log_lines("test", &mut open_line, b"\n");
        assert!(open_line.is_empty());
    }
}
