//! Headers that a caller may choose.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::DoorError;

/// Names that the protocol or HTTP itself sets.
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

/// Whether a header is not the caller's to choose.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.contains(&name.as_str()) || name.starts_with("mcp-param-")
}

/// Headers that a caller has chosen; their values count as secrets and are never shown.
#[derive(Clone, Debug, Default)]
pub struct StaticHeaders {
    all: HeaderMap,
}

impl StaticHeaders {
    /// Adds a header, or replaces the one of the same name.
    ///
    /// # Errors
    /// The name belongs to the protocol or to HTTP itself, or name or value cannot be sent.
    pub fn insert(&mut self, name: &str, text: &str) -> Result<(), DoorError> {
        let refuse = |why| DoorError::Header {
            name: name.to_owned(),
            why,
        };
        if is_reserved(name) {
            return Err(refuse("the protocol sets it"));
        }
        let parsed =
            HeaderName::try_from(name).map_err(|_| refuse("the name is not a header name"))?;
        let mut value = value(name, text)?;
        value.set_sensitive(true);
        self.all.insert(parsed, value);
        Ok(())
    }

    /// The headers, for whoever tells one set from another; the values may be secrets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let all = self.all.iter();
        all.map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    pub(crate) const fn all(&self) -> &HeaderMap {
        &self.all
    }
}

pub(super) fn value(name: &str, text: &str) -> Result<HeaderValue, DoorError> {
    HeaderValue::try_from(text).map_err(|_| DoorError::Header {
        name: name.to_owned(),
        why: "the value has characters that a header cannot carry",
    })
}
