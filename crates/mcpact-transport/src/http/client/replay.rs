//! Reads a response from memory, for fuzzing.

use bytes::BytesMut;
use http::HeaderMap;

use super::framing::BodyPart;
use super::head::Head;
use crate::error::TransportError;

/// A response that was read from memory.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplayedResponse {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
    /// Number of bytes after the response.
    pub rest: usize,
    /// True if a connection can be reused after the response.
    pub keeps_open: bool,
}

/// Reads the response that these reads of a connection return, up to its end. Without a complete head it is `None`.
///
/// # Errors
/// The head or the framing of the body is invalid, or the body is truncated.
pub fn replay<'r>(
    reads: impl IntoIterator<Item = &'r [u8]>,
) -> Result<Option<ReplayedResponse>, TransportError> {
    let unreadable = |fault: &dyn std::error::Error| TransportError::Unreadable(fault.to_string());
    let mut reads = reads.into_iter();
    let mut buffer = BytesMut::new();
    let head = loop {
        let Some(read) = reads.next() else {
            return Ok(None);
        };
        buffer.extend_from_slice(read);
        if let Some(head) = Head::take(&mut buffer).map_err(|fault| unreadable(&fault))? {
            break head;
        }
    };
    let (mut framing, mut body) = (head.framing, Vec::new());
    loop {
        match framing
            .take(&mut buffer)
            .map_err(|fault| unreadable(&fault))?
        {
            BodyPart::Data(data) => body.extend_from_slice(&data),
            BodyPart::End => break,
            BodyPart::Incomplete => match reads.next() {
                Some(read) => buffer.extend_from_slice(read),
                None => {
                    framing.closed().map_err(|fault| unreadable(&fault))?;
                    break;
                }
            },
        }
    }
    Ok(Some(ReplayedResponse {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
        rest: buffer.len() + reads.map(<[u8]>::len).sum::<usize>(),
        keeps_open: head.keeps_open,
    }))
}
