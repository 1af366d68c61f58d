//! A request as it is sent.

use std::io::Write;

use bytes::{Buf, Bytes};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, Method};

use super::{Address, Forwarding, JSON, LAST_EVENT_ID, Order};

/// A body up to this length is sent in one piece with its head: to copy it costs less than a second piece.
const SMALL: usize = 16 * 1024;

/// How long most heads are.
const USUAL: usize = 512;

/// What of a request is still to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    first: Bytes,
    body: Bytes,
    is_begun: bool,
}

impl Outgoing {
    pub(super) fn new(
        order: &Order<'_>,
        address: &Address,
        chosen: &HeaderMap,
        proxy: &Forwarding,
    ) -> Self {
        let is_small = order.body.len() <= SMALL;
        let room = USUAL + if is_small { order.body.len() } else { 0 };
        let mut first = Vec::with_capacity(room);
        write_head(&mut first, order, address, chosen, proxy);
        let mut body = order.body.clone();
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

    /// What is to be sent next; none when everything is.
    pub(super) fn next(&self) -> Option<&[u8]> {
        let next = if self.first.is_empty() {
            &self.body
        } else {
            &self.first
        };
        (!next.is_empty()).then_some(next)
    }

    /// So much of it was sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.is_begun = true;
        if self.first.is_empty() {
            self.body.advance(count);
        } else {
            self.first.advance(count);
        }
    }

    /// Whether the server may have seen any of it.
    pub(super) const fn is_begun(&self) -> bool {
        self.is_begun
    }
}

fn write_head(
    out: &mut Vec<u8>,
    order: &Order<'_>,
    address: &Address,
    chosen: &HeaderMap,
    proxy: &Forwarding,
) {
    out.extend_from_slice(order.method.as_str().as_bytes());
    out.extend_from_slice(address.line.as_bytes());
    line(out, &ACCEPT, order.accept.as_bytes());
    if order.method == Method::POST {
        line(out, &CONTENT_TYPE, JSON.as_bytes());
        // To write into memory never fails.
        let _ = write!(out, "{CONTENT_LENGTH}: {}\r\n", order.body.len());
    }
    if let Some(id) = &order.last_event_id {
        line(out, &LAST_EVENT_ID, id.as_bytes());
    }
    if let Forwarding::Proxy(Some(auth)) = proxy {
        line(out, &PROXY_AUTHORIZATION, auth.as_bytes());
    }
    if let Some((name, value)) = &order.said {
        line(out, name, value.as_bytes());
    }
    for (name, value) in order.facts {
        line(out, name, value.as_bytes());
    }
    for (name, value) in chosen {
        if !order.facts.contains_key(name) {
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

    fn text(order: &Order<'_>, chosen: &HeaderMap, proxy: &Forwarding) -> String {
        let place = Url::parse("http://host:8080/mcp?a=b").unwrap();
        let address = Address::new(&place, proxy).unwrap();
        let mut outgoing = Outgoing::new(order, &address, chosen, proxy);
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

    /// T7: a request carries the facts of the protocol, and what the escort says, and what a caller chose unless the
    /// protocol says it.
    #[test]
    fn requests_are_written_whole() {
        let value = HeaderValue::from_static;
        let facts = HeaderMap::from_iter([(HeaderName::from_static("mcp-method"), value("ping"))]);
        let chosen = HeaderMap::from_iter([
            (HeaderName::from_static("x-key"), value("k")),
            (HeaderName::from_static("mcp-method"), value("other")),
        ]);
        for length in [2, SMALL, SMALL + 1] {
            let body = "x".repeat(length);
            let order = Order {
                said: Some((HeaderName::from_static("x-said"), value("s"))),
                body: Bytes::from(body.clone()),
                ..Order::new(Method::POST, &facts, "*/*")
            };
            let expected = format!(
                "POST /mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: */*\r\ncontent-type: application/json\r\n\
                content-length: {length}\r\nx-said: s\r\nmcp-method: ping\r\nx-key: k\r\n\r\n{body}"
            );
            assert_eq!(text(&order, &chosen, &Forwarding::None), expected);
        }
    }

    /// T7: a proxy is told where the request goes.
    #[test]
    fn proxies_are_told_where_it_goes() {
        let none = HeaderMap::new();
        let order = Order {
            last_event_id: Some(HeaderValue::from_static("7")),
            ..Order::new(Method::GET, &none, "text/event-stream")
        };
        let proxy = Forwarding::Proxy(Some(HeaderValue::from_static("Basic eA==")));
        let expected = "GET http://host:8080/mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: text/event-stream\r\n\
            last-event-id: 7\r\nproxy-authorization: Basic eA==\r\n\r\n";
        assert_eq!(text(&order, &none, &proxy), expected);
    }
}
