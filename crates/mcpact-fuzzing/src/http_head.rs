use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use mcpact_transport::http::client::{ReplayedResponse, replay};

use crate::chunks;

/// Maximum bytes of a read.
const READ: usize = 8 * 1024;

/// Maximum bytes of all names and values of the headers.
const MAX_HEAD: usize = 128 * 1024;

/// Byte of the input that stands for many bytes, so that short inputs reach the limits.
const MANY: u8 = 1;

/// A response does not depend on the sizes of reads, and its head and framing lines are limited.
///
/// The first byte is the number of KiB that the first byte `0x01` stands for, the second chooses the cuts, the rest is
/// the stream.
///
/// # Panics
/// An invariant is broken.
pub fn http_head(data: &[u8]) {
    let Some((kibibytes, cuts, stream)) = chunks::split(data) else {
        return;
    };
    let many = vec![b'a'; kibibytes * 1024];
    let cut = chunks::cut(stream, cuts);
    let seen = read(&widened(&cut, &many));
    let whole = widened(&[stream], &many).concat();
    assert_eq!(seen, read(&[&whole]));
    if let Ok(Some(response)) = seen {
        limited(&response, whole.len());
    }
}

/// Replaces the first [`MANY`].
fn widened<'d>(pieces: &[&'d [u8]], many: &'d [u8]) -> Vec<&'d [u8]> {
    let mut all = Vec::new();
    let mut is_done = false;
    for piece in pieces {
        let place = piece.iter().position(|byte| *byte == MANY && !is_done);
        match place {
            None => all.push(*piece),
            Some(at) => {
                is_done = true;
                all.extend([&piece[..at], many, &piece[at + 1..]]);
            }
        }
    }
    all
}

/// Several errors of one input are found in the order of the reads, so they are not told apart.
fn read(pieces: &[&[u8]]) -> Result<Option<ReplayedResponse>, ()> {
    let reads = pieces.iter().flat_map(|piece| piece.chunks(READ));
    replay(reads).map_err(drop)
}

fn limited(response: &ReplayedResponse, input: usize) {
    let headers = response.headers.iter();
    let bytes: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    assert!(bytes <= MAX_HEAD, "{bytes} bytes of headers");
    assert!(response.headers.len() <= 100);
    assert!((200..=999).contains(&response.status));
    assert!(response.body.len() + response.rest <= input);
    let length = response.headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let has_body = !matches!(response.status, 204 | 304);
    if has_body && !response.headers.contains_key(TRANSFER_ENCODING) {
        assert!(length.is_none_or(|length: usize| length == response.body.len()));
    }
}
