//! Request headers for the engine.

use http::HeaderName;
use http::header::AsHeaderName;
use mcpact_engine::classify::HeaderField;
use mcpact_transport::http::server::HttpRequest;

/// Value for headers that are not text: malformed for the engine.
const NO_TEXT: &str = "\u{0}";

/// Returns a header as the engine reads it.
pub(super) fn header_field(http_request: &HttpRequest, name: impl AsHeaderName) -> HeaderField<'_> {
    let mut all = http_request.headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => HeaderField::Absent,
        (Some(value), None) => HeaderField::Once(value.to_str().unwrap_or(NO_TEXT)),
        (Some(_), Some(_)) => HeaderField::Repeated,
    }
}

/// Finds several headers in one pass: requests have few, and lookups cost more.
pub(super) fn header_fields<'h, const N: usize>(
    http_request: &'h HttpRequest,
    names: [&HeaderName; N],
) -> [HeaderField<'h>; N] {
    let mut all = [HeaderField::Absent; N];
    for (name, value) in &http_request.headers {
        let found = all
            .iter_mut()
            .zip(names)
            .find(|(_, wanted)| *wanted == name);
        if let Some((field, _)) = found {
            *field = match field {
                HeaderField::Absent => HeaderField::Once(value.to_str().unwrap_or(NO_TEXT)),
                HeaderField::Once(_) | HeaderField::Repeated => HeaderField::Repeated,
            };
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Header;

    use super::*;
    use crate::connection::headers::{METHOD, NAME, SESSION_ID, VERSION};

    #[test]
    fn header_names_match_the_spec_table() {
        for (ours, header) in [
            (SESSION_ID, Header::SessionId),
            (VERSION, Header::ProtocolVersion),
            (METHOD, Header::Method),
            (NAME, Header::Name),
        ] {
            assert!(header.name().eq_ignore_ascii_case(ours.as_str()), "{ours}");
        }
    }

    #[test]
    fn several_headers_are_read_like_one() {
        let mut headers = http::HeaderMap::new();
        headers.append(VERSION, "a".parse().unwrap());
        headers.append(METHOD, "b".parse().unwrap());
        headers.append(METHOD, "b".parse().unwrap());
        headers.append(SESSION_ID, http::HeaderValue::from_bytes(b"\xff").unwrap());
        let http_request = HttpRequest {
            verb: http::Method::POST,
            path: String::new(),
            query: None,
            headers,
            body: bytes::Bytes::new(),
            peer: None,
            peer_uid: None,
            account: mcpact_transport::budget::ConnectionAccount::default(),
            token_name: None,
        };
        let names = [&SESSION_ID, &VERSION, &METHOD, &NAME];
        let each = names.map(|name| header_field(&http_request, name));
        assert_eq!(header_fields(&http_request, names), each);
        assert_eq!(
            each,
            [
                HeaderField::Once(NO_TEXT),
                HeaderField::Once("a"),
                HeaderField::Repeated,
                HeaderField::Absent
            ]
        );
    }
}
