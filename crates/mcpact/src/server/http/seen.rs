//! The headers of a request, as far as the engine wants to know of them.

use http::HeaderName;
use http::header::AsHeaderName;
use mcpact_engine::classify::HeaderField;
use mcpact_transport::http::server::Arrival;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Bytes that are not text are as good as malformed.
const NO_TEXT: &str = "\u{0}";

/// A header as the engine wants to know of it.
pub(super) fn seen(arrival: &Arrival, name: impl AsHeaderName) -> HeaderField<'_> {
    let mut all = arrival.headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => HeaderField::Absent,
        (Some(value), None) => HeaderField::Once(value.to_str().unwrap_or(NO_TEXT)),
        (Some(_), Some(_)) => HeaderField::Repeated,
    }
}

/// Several headers, found in one go: there are few, and looking one up costs more than passing by.
pub(super) fn seen_all<'h, const N: usize>(
    arrival: &'h Arrival,
    names: [&HeaderName; N],
) -> [HeaderField<'h>; N] {
    let mut all = [HeaderField::Absent; N];
    for (name, value) in &arrival.headers {
        let found = all
            .iter_mut()
            .zip(names)
            .find(|(_, wanted)| *wanted == name);
        if let Some((place, _)) = found {
            *place = match place {
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

    #[test]
    fn headers_have_the_names_of_the_table() {
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
    fn many_are_seen_like_one() {
        let mut headers = http::HeaderMap::new();
        headers.append(VERSION, "a".parse().unwrap());
        headers.append(METHOD, "b".parse().unwrap());
        headers.append(METHOD, "b".parse().unwrap());
        headers.append(SESSION_ID, http::HeaderValue::from_bytes(b"\xff").unwrap());
        let arrival = Arrival {
            verb: http::Method::POST,
            path: String::new(),
            query: None,
            headers,
            body: bytes::Bytes::new(),
            peer: None,
        };
        let names = [&SESSION_ID, &VERSION, &METHOD, &NAME];
        let each = names.map(|name| seen(&arrival, name));
        assert_eq!(seen_all(&arrival, names), each);
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
