//! A request during sending.

use std::io::Write;

use bytes::{Buf, Bytes};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, Method};

use super::{Address, Forwarding, JSON, LAST_EVENT_ID, RequestSpec};

/// Maximum length of a body that is copied behind the head: copying costs less than a second write.
const SMALL: usize = 16 * 1024;

/// Typical length of a head.
const USUAL: usize = 512;

/// Unsent rest of a request.
#[derive(Debug)]
pub(super) struct OutgoingRequest {
    first: Bytes,
    body: Bytes,
    is_begun: bool,
}

impl OutgoingRequest {
    pub(super) fn new(
        spec: &RequestSpec<'_>,
        address: &Address,
        static_headers: &HeaderMap,
        proxy: &Forwarding,
    ) -> Self {
        let is_small = spec.body.len() <= SMALL;
        let room = USUAL + if is_small { spec.body.len() } else { 0 };
        let mut first = Vec::with_capacity(room);
        write_head(&mut first, spec, address, static_headers, proxy);
        let mut body = spec.body.clone();
        if is_small {
            first.extend_from_slice(&body);
            body = Bytes::new();
        }
        let first = Bytes::from(first);
        Self {
            first,
            body,
            is_begun: false,
        }
    }

    /// Bytes to send next; `None` if all are sent.
    pub(super) fn next(&self) -> Option<&[u8]> {
        let next = if self.first.is_empty() {
            &self.body
        } else {
            &self.first
        };
        (!next.is_empty()).then_some(next)
    }

    /// Removes sent bytes.
    pub(super) fn sent(&mut self, count: usize) {
        self.is_begun = true;
        if self.first.is_empty() {
            self.body.advance(count);
        } else {
            self.first.advance(count);
        }
    }

    /// Returns whether anything was sent.
    pub(super) const fn is_begun(&self) -> bool {
        self.is_begun
    }
}

fn write_head(
    out: &mut Vec<u8>,
    spec: &RequestSpec<'_>,
    address: &Address,
    static_headers: &HeaderMap,
    proxy: &Forwarding,
) {
    out.extend_from_slice(spec.method.as_str().as_bytes());
    out.extend_from_slice(address.line.as_bytes());
    line(out, &ACCEPT, spec.accept.as_bytes());
    if spec.method == Method::POST {
        line(out, &CONTENT_TYPE, JSON.as_bytes());
        // Writing to memory cannot fail.
        let _ = write!(out, "{CONTENT_LENGTH}: {}\r\n", spec.body.len());
    }
    if let Some(id) = &spec.last_event_id {
        line(out, &LAST_EVENT_ID, id.as_bytes());
    }
    if let Forwarding::Proxy(Some(auth)) = proxy {
        line(out, &PROXY_AUTHORIZATION, auth.as_bytes());
    }
    if let Some((name, value)) = &spec.request_header {
        line(out, name, value.as_bytes());
    }
    for (name, value) in spec.protocol_headers {
        line(out, name, value.as_bytes());
    }
    for (name, value) in static_headers {
        if !spec.protocol_headers.contains_key(name) {
            line(out, name, value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use url::Url;

    use super::*;

    fn text(spec: &RequestSpec<'_>, static_headers: &HeaderMap, proxy: &Forwarding) -> String {
        let place = Url::parse("http://host:8080/mcp?a=b").unwrap();
        let address = Address::new(&place, proxy).unwrap();
        let mut outgoing = OutgoingRequest::new(spec, &address, static_headers, proxy);
        assert!(!outgoing.is_begun());
        let mut all = Vec::new();
        while let Some(next) = outgoing.next() {
            let count = next.len().min(7);
            all.extend_from_slice(&next[..count]);
            outgoing.sent(count);
        }
        assert!(outgoing.is_begun());
        String::from_utf8(all).unwrap()
    }

    /// T7: a request carries protocol headers, the computed header, and custom headers that do not conflict with them.
    #[test]
    fn request_carries_all_headers() {
        let value = HeaderValue::from_static;
        let protocol_headers =
            HeaderMap::from_iter([(HeaderName::from_static("mcp-method"), value("ping"))]);
        let static_headers = HeaderMap::from_iter([
            (HeaderName::from_static("x-key"), value("k")),
            (HeaderName::from_static("mcp-method"), value("other")),
        ]);
        for length in [2, SMALL, SMALL + 1] {
            let body = "x".repeat(length);
            let spec = RequestSpec {
                request_header: Some((HeaderName::from_static("x-said"), value("s"))),
                body: Bytes::from(body.clone()),
                ..RequestSpec::new(Method::POST, &protocol_headers, "*/*")
            };
            let expected = format!(
                "POST /mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: */*\r\ncontent-type: application/json\r\n\
                content-length: {length}\r\nx-said: s\r\nmcp-method: ping\r\nx-key: k\r\n\r\n{body}"
            );
            assert_eq!(text(&spec, &static_headers, &Forwarding::None), expected);
        }
    }

    /// T7: requests to a proxy name the full URL.
    #[test]
    fn proxied_request_names_the_full_url() {
        let none = HeaderMap::new();
        let spec = RequestSpec {
            last_event_id: Some(HeaderValue::from_static("7")),
            ..RequestSpec::new(Method::GET, &none, "text/event-stream")
        };
        let proxy = Forwarding::Proxy(Some(HeaderValue::from_static("Basic eA==")));
        let expected = "GET http://host:8080/mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: text/event-stream\r\n\
            last-event-id: 7\r\nproxy-authorization: Basic eA==\r\n\r\n";
        assert_eq!(text(&spec, &none, &proxy), expected);
    }
}
