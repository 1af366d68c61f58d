//! Response head and body framing.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use httparse::{ParserConfig, Response, Status};

use super::framing::Framing;

/// Maximum number of response headers.
const MAX_HEADERS: usize = 100;

/// Maximum bytes of a response head.
const MAX_BYTES: usize = 128 * 1024;

/// Response head.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// True if the connection can be reused after the body.
    pub(super) keeps_open: bool,
}

/// Invalid response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the response is not HTTP: {0}")]
    Syntax(httparse::Error),
    #[error("the response head is longer than {MAX_BYTES} bytes")]
    TooLong,
    #[error("the server switches to another protocol without a request")]
    Switched,
    #[error("ambiguous response length: {0}")]
    Length(&'static str),
}

impl Head {
    /// Takes the response head from the buffer once it is complete. Informational responses are skipped.
    pub(super) fn take(buffer: &mut BytesMut) -> Result<Option<Self>, HeadError> {
        while let Some((head, length)) = parse(buffer)? {
            buffer.advance(length);
            match head.status {
                StatusCode::SWITCHING_PROTOCOLS => return Err(HeadError::Switched),
                status if status.is_informational() => {}
                _ => return Ok(Some(head)),
            }
        }
        Ok(None)
    }
}

/// Parses the first head in the buffer; returns it with its length.
fn parse(buffer: &[u8]) -> Result<Option<(Head, usize)>, HeadError> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut read = Response::new(&mut []);
    let config = ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut read, buffer, &mut room);
    let length = match parsed.map_err(HeadError::Syntax)? {
        Status::Complete(length) if length > MAX_BYTES => return Err(HeadError::TooLong),
        Status::Complete(length) => length,
        Status::Partial if buffer.len() > MAX_BYTES => return Err(HeadError::TooLong),
        Status::Partial => return Ok(None),
    };
    let status = StatusCode::from_u16(read.code.unwrap_or_default());
    let status = status.map_err(|_| HeadError::Syntax(httparse::Error::Status))?;
    let mut headers = HeaderMap::with_capacity(read.headers.len());
    for header in read.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| HeadError::Syntax(httparse::Error::HeaderName))?;
        let value = HeaderValue::from_bytes(header.value)
            .map_err(|_| HeadError::Syntax(httparse::Error::HeaderValue))?;
        headers.append(name, value);
    }
    let is_http_1_0 = read.version == Some(0);
    let framing = framing(status, &headers, is_http_1_0)?;
    let keeps_open = keeps_open(&headers, is_http_1_0, &framing);
    let head = Head {
        status,
        headers,
        framing,
        keeps_open,
    };
    Ok(Some((head, length)))
}

/// Body framing by RFC 9112, section 6.3, for requests other than `HEAD` and `CONNECT`. Ambiguous framing is rejected,
/// because it may smuggle in another response.
fn framing(
    status: StatusCode,
    headers: &HeaderMap,
    is_http_1_0: bool,
) -> Result<Framing, HeadError> {
    let is_bare = status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bare {
        return Ok(Framing::Length(0));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = tokens(headers, &TRANSFER_ENCODING);
        return match (codings.next(), codings.next()) {
            _ if is_http_1_0 => Err(HeadError::Length("chunked HTTP/1.0")),
            (Some(only), None) if only.eq_ignore_ascii_case("chunked") => Ok(Framing::chunked()),
            _ => Err(HeadError::Length("unknown transfer coding")),
        };
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = value.as_bytes();
        let said = digits.iter().all(u8::is_ascii_digit).then_some(digits);
        let said = said.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        match (said, length) {
            (None, _) => return Err(HeadError::Length("invalid Content-Length")),
            (Some(said), Some(before)) if said != before => {
                return Err(HeadError::Length("conflicting Content-Length headers"));
            }
            (Some(said), _) => length = Some(said),
        }
    }
    Ok(length.map_or(Framing::UntilClosed, Framing::Length))
}

fn keeps_open(headers: &HeaderMap, is_http_1_0: bool, framing: &Framing) -> bool {
    let says =
        |wanted: &str| tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case(wanted));
    let has_two_ends =
        headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
    let is_kept = match is_http_1_0 {
        true => says("keep-alive"),
        false => !says("close"),
    };
    is_kept && !has_two_ends && *framing != Framing::UntilClosed
}

/// Items of a list header.
fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim_ascii)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<Head>, HeadError> {
        Head::take(&mut BytesMut::from(text))
    }

    fn head(lines: &str) -> Head {
        take(&format!("HTTP/1.1 {lines}\r\n\r\n")).unwrap().unwrap()
    }

    /// T9: the head determines the framing, and a connection that ends with the body is not reused.
    #[test]
    fn head_determines_the_framing() {
        let chunked = Framing::chunked();
        let rows = [
            ("200 OK\r\nContent-Length: 12", Framing::Length(12), true),
            (
                "200 OK\r\nContent-Length: 5\r\nContent-Length: 5",
                Framing::Length(5),
                true,
            ),
            ("200 OK\r\nTransfer-Encoding: Chunked", chunked, true),
            (
                "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3",
                chunked,
                false,
            ),
            (
                "200 OK\r\nContent-Length: 1\r\nConnection: Close",
                Framing::Length(1),
                false,
            ),
            (
                "200 OK\r\nContent-Length: 1\r\nConnection: x, close",
                Framing::Length(1),
                false,
            ),
            ("200 OK", Framing::UntilClosed, false),
            (
                "204 No Content\r\nContent-Length: 7",
                Framing::Length(0),
                true,
            ),
            ("304 Not Modified", Framing::Length(0), true),
        ];
        for (lines, framing, keeps_open) in rows {
            let head = head(lines);
            assert_eq!(
                (head.framing, head.keeps_open),
                (framing, keeps_open),
                "{lines}"
            );
        }
        let old = take("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n")
            .unwrap()
            .unwrap();
        assert!(!old.keeps_open);
        let kept = take("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n");
        assert!(kept.unwrap().unwrap().keeps_open);
    }

    /// T9: ambiguous framing is rejected, because another response could be hidden in it.
    #[test]
    fn ambiguous_heads_are_rejected() {
        for lines in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6",
            "HTTP/1.1 200 OK\r\nContent-Length: +5",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5",
            "HTTP/1.1 200 OK\r\nContent-Length:",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x",
            "HTTP/1.1 020 Low",
            "HTTP/1.1 200 OK\r\nA: 1\r\n folded",
            "HTTP/1.1 200 OK\r\nA : 1",
            "HTTP/2 200 OK",
            "hello",
        ] {
            let refused = take(&format!("{lines}\r\n\r\n"));
            assert!(refused.is_err(), "{lines}: {refused:?}");
        }
    }

    #[test]
    fn head_is_taken_once_it_is_complete() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n\
            HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        let mut buffer = BytesMut::new();
        for byte in text.bytes() {
            assert!(Head::take(&mut buffer).unwrap().is_none());
            buffer.extend_from_slice(&[byte]);
        }
        buffer.extend_from_slice(b"{}HTTP");
        let head = Head::take(&mut buffer).unwrap().unwrap();
        assert_eq!((head.status.as_u16(), head.headers.len()), (200, 1));
        assert_eq!(&buffer[..], b"{}HTTP");
    }

    /// T9: the size of a head and the number of headers are limited.
    #[test]
    fn heads_are_limited() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(MAX_BYTES));
        assert_eq!(take(&long).unwrap_err(), HeadError::TooLong);
        let whole = format!("{long}\r\n\r\n");
        assert_eq!(take(&whole).unwrap_err(), HeadError::TooLong);
        let many = format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "A: 1\r\n".repeat(MAX_HEADERS + 1)
        );
        assert!(matches!(take(&many), Err(HeadError::Syntax(_))));
    }
}
