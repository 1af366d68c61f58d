//! Identity of clients.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use http::HeaderMap;
use mcpact_engine::classify::HeaderField;
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;

/// Header with the routing key of a client without session and connection.
pub(super) const KEY: http::HeaderName = http::HeaderName::from_static("mcpact-key");

/// Maximum length of a routing key.
const MAX_LENGTH: usize = 128;

/// Identity of a client that opens a session or sends a self-contained request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Principal; empty for anonymous clients.
    pub principal: Arc<str>,
    /// Distinguishes clients of the same principal.
    pub key: ClientKey,
}

/// Distinguishes clients of the same principal.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum ClientKey {
    /// No distinction.
    #[default]
    None,
    /// Own connection; the client ends with it.
    Connection(Arc<str>),
    /// Routing key chosen by the client; confidential.
    Key(Arc<str>),
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Connection(_) => "Connection(..)",
            Self::Key(_) => "Key(..)",
        })
    }
}

impl ClientIdentity {
    /// Client without a key.
    pub(super) const fn of(principal: Arc<str>) -> Self {
        let key = ClientKey::None;
        Self { principal, key }
    }

    /// Client with its own connection.
    pub(super) fn connected(principal: Arc<str>) -> Self {
        let key = ClientKey::Connection(unique_connection());
        Self { principal, key }
    }

    /// Returns the owner of everything the client creates: the principal, or its own connection if it is anonymous.
    pub(super) fn owner(&self) -> Arc<str> {
        match &self.key {
            ClientKey::Connection(own) if self.principal.is_empty() => Arc::clone(own),
            ClientKey::None | ClientKey::Connection(_) | ClientKey::Key(_) => {
                Arc::clone(&self.principal)
            }
        }
    }
}

impl ClientKey {
    /// Parses the `Mcpact-Key` header.
    pub(super) fn parse(header: HeaderField<'_>) -> Result<Self, WireError> {
        let is_valid = |key: &str| {
            let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
            (1..=MAX_LENGTH).contains(&key.len()) && is_visible
        };
        match header {
            HeaderField::Absent => Ok(Self::None),
            HeaderField::Once(key) if is_valid(key) => Ok(Self::Key(Arc::from(key))),
            HeaderField::Once(_) | HeaderField::Repeated => Err(WireError {
                code: ErrorCode::InvalidRequest.code(),
                message: format!(
                    "`Mcpact-Key` must occur once, with 1 to {MAX_LENGTH} visible ASCII characters"
                ),
                data: None,
                http_status: 400,
            }),
        }
    }
}

/// Derives the principal of an HTTP request from its headers.
///
/// Sessions, tasks and questions belong to the principal that created them and are invisible to others. Requests
/// without a principal are anonymous and share everything. This is not authentication: a token or a proxy in front
/// must authenticate the request.
#[derive(Clone, Default)]
pub struct PrincipalSource {
    derive: Option<Arc<Derive>>,
}

type Derive = dyn Fn(&HeaderMap) -> Option<String> + Send + Sync;

impl PrincipalSource {
    /// Uses this function; its result is compared, never logged.
    pub fn from_fn(derive: impl Fn(&HeaderMap) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            derive: Some(Arc::new(derive)),
        }
    }

    pub(super) fn principal(&self, headers: &HeaderMap) -> Arc<str> {
        let derived = self.derive.as_ref().and_then(|derive| derive(headers));
        derived.map_or_else(anonymous, Arc::from)
    }
}

impl fmt::Debug for PrincipalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrincipalSource(..)")
    }
}

/// Principal of anonymous requests.
pub(super) fn anonymous() -> Arc<str> {
    static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));
    Arc::clone(&ANONYMOUS)
}

/// Unique principal of an anonymous client with its own connection. No header can name it.
pub(super) fn unique_connection() -> Arc<str> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("\0connection {number}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Routing keys are limited in length and characters, and never logged.
    #[test]
    fn routing_keys_are_limited_and_not_logged() {
        let longest = "k".repeat(MAX_LENGTH);
        for key in ["a", "~!{}", longest.as_str()] {
            let parsed = ClientKey::parse(HeaderField::Once(key)).unwrap();
            assert_eq!(parsed, ClientKey::Key(Arc::from(key)));
            assert_eq!(format!("{parsed:?}"), "Key(..)");
        }
        assert_eq!(ClientKey::parse(HeaderField::Absent), Ok(ClientKey::None));
        let too_long = "k".repeat(MAX_LENGTH + 1);
        for header in [
            HeaderField::Once(""),
            HeaderField::Once("two words"),
            HeaderField::Once("\u{0}"),
            HeaderField::Once(&too_long),
            HeaderField::Repeated,
        ] {
            let refused = ClientKey::parse(header).unwrap_err();
            assert_eq!(refused.http_status, 400);
            assert!(!refused.message.contains("two words"), "{refused:?}");
        }
    }
}
