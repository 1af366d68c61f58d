//! Headers that a caller may choose.

use http::{HeaderName, HeaderValue};

use crate::error::DoorError;

/// Names that the protocol or HTTP itself sets.
const RESERVED: [&str; 17] = [
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

/// A header of the caller; its value counts as a secret.
pub(super) fn checked(name: &str, text: &str) -> Result<(HeaderName, HeaderValue), DoorError> {
    let refuse = |why| DoorError::Header {
        name: name.to_owned(),
        why,
    };
    if is_reserved(name) {
        return Err(refuse("the protocol sets it"));
    }
    let parsed = HeaderName::try_from(name).map_err(|_| refuse("the name is not a header name"))?;
    let mut value = value(name, text)?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

pub(super) fn value(name: &str, text: &str) -> Result<HeaderValue, DoorError> {
    HeaderValue::try_from(text).map_err(|_| DoorError::Header {
        name: name.to_owned(),
        why: "the value has characters that a header cannot carry",
    })
}
