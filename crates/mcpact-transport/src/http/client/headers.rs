//! Custom headers of a client.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::TransportError;

/// Header names set by the protocol or by HTTP itself.
const RESERVED: [&str; 18] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a header cannot be customised.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.contains(&name.as_str()) || name.starts_with("mcp-param-")
}

/// Custom headers. Their values count as secrets and are never shown.
#[derive(Clone, Debug, Default)]
pub struct StaticHeaders {
    all: HeaderMap,
}

impl StaticHeaders {
    /// Adds or replaces a header.
    ///
    /// # Errors
    /// The header is reserved, or its name or value is invalid.
    pub fn insert(&mut self, name: &str, text: &str) -> Result<(), TransportError> {
        let refuse = |why| TransportError::Header {
            name: name.to_owned(),
            why,
        };
        if is_reserved(name) {
            return Err(refuse("it is set by the protocol"));
        }
        let parsed = HeaderName::try_from(name).map_err(|_| refuse("invalid header name"))?;
        let mut value = value(name, text)?;
        value.set_sensitive(true);
        self.all.insert(parsed, value);
        Ok(())
    }

    /// Returns the headers, for comparison. The values may be secrets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let all = self.all.iter();
        all.map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    pub(crate) const fn all(&self) -> &HeaderMap {
        &self.all
    }
}

pub(super) fn value(name: &str, text: &str) -> Result<HeaderValue, TransportError> {
    HeaderValue::try_from(text).map_err(|_| TransportError::Header {
        name: name.to_owned(),
        why: "the value contains invalid characters",
    })
}
