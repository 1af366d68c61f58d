//! Identity of clients.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use mcpact_engine::classify::HeaderField;
use mcpact_engine::refusal::WireError;
use mcpact_spec::ErrorCode;
use mcpact_transport::http::server::HttpRequest;

/// Header with the routing key of a client without session and connection.
pub(super) const KEY: http::HeaderName = http::HeaderName::from_static("mcpact-key");

/// Maximum length of a routing key.
const MAX_LENGTH: usize = 128;

/// Kind of evidence for a principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrincipalKind {
    /// No evidence.
    #[default]
    Anonymous,
    /// Named bearer token.
    Token,
    /// User of this machine.
    Uid,
    /// Text that [`PrincipalSource`] derived from the headers.
    Derived,
}

/// Authorization context of a client: who it is, and its key, if it sends one.
///
/// Sessions, streams, tasks, suspended calls and states belong to the principal that created them. To others they do
/// not exist.
#[derive(Clone, Default)]
pub struct Principal {
    kind: PrincipalKind,
    /// `key KEY `, if there is a key, then the subject. A key contains no space, so different principals have different
    /// texts.
    text: Option<Arc<str>>,
    subject_at: usize,
}

impl Principal {
    /// Anonymous client.
    pub const ANONYMOUS: Self = Self {
        kind: PrincipalKind::Anonymous,
        text: None,
        subject_at: 0,
    };

    /// Holder of the token with this name.
    #[must_use]
    pub fn token(name: &str) -> Self {
        Self::with_subject(PrincipalKind::Token, format!("token {name}"))
    }

    /// User of this machine.
    #[must_use]
    pub fn uid(uid: u32) -> Self {
        Self::with_subject(PrincipalKind::Uid, format!("uid {uid}"))
    }

    /// Client that headers identify.
    #[must_use]
    pub fn derived(name: &str) -> Self {
        Self::with_subject(PrincipalKind::Derived, format!("derived {name}"))
    }

    fn with_subject(kind: PrincipalKind, subject: String) -> Self {
        Self {
            kind,
            text: Some(subject.into()),
            subject_at: 0,
        }
    }

    /// Adds the client's key.
    #[must_use]
    pub fn with_key(self, key: &ClientKey) -> Self {
        let ClientKey::Key(key) = key else {
            return self;
        };
        let prefix = format!("key {key} ");
        Self {
            kind: self.kind,
            text: Some(format!("{prefix}{}", self.subject()).into()),
            subject_at: prefix.len(),
        }
    }

    /// Returns `true` without evidence and without a key.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        self.text.is_none()
    }

    /// Returns the kind of evidence.
    #[must_use]
    pub const fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// Returns a text that no other principal has; empty for anonymous clients. It contains the key, so it is
    /// confidential.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns the text without the key; empty without evidence.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.text().get(self.subject_at..).unwrap_or_default()
    }

    /// Returns the name: of the token, `uid N` for a user of this machine, or as derived from the headers; empty
    /// without evidence.
    #[must_use]
    pub fn name(&self) -> &str {
        let subject = self.subject();
        match self.kind {
            PrincipalKind::Token | PrincipalKind::Derived => {
                subject.split_once(' ').map_or(subject, |(_, name)| name)
            }
            PrincipalKind::Uid | PrincipalKind::Anonymous => subject,
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Principal {}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.subject_at > 0 {
            " with a key"
        } else {
            ""
        };
        write!(f, "Principal({:?}{key})", self.kind)
    }
}

/// Identity of a client that opens a session or sends a self-contained request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Principal.
    pub principal: Principal,
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
    /// Client without a connection of its own.
    pub(super) const fn of(principal: Principal) -> Self {
        let key = ClientKey::None;
        Self { principal, key }
    }

    /// Client with its own connection.
    pub(super) fn connected(principal: Principal) -> Self {
        let key = ClientKey::Connection(unique_connection());
        Self { principal, key }
    }

    /// Returns the owner of everything the client creates: the principal, or its own connection if it is anonymous;
    /// empty for anonymous clients without one.
    #[must_use]
    pub fn owner(&self) -> &str {
        match &self.key {
            ClientKey::Connection(own) if self.principal.is_anonymous() => own,
            ClientKey::None | ClientKey::Connection(_) | ClientKey::Key(_) => self.principal.text(),
        }
    }

    /// As [`owner`](Self::owner), without the key: the limits of a principal hold for all its keys together.
    #[must_use]
    pub fn limited_owner(&self) -> &str {
        match &self.key {
            ClientKey::Connection(own) if self.principal.is_anonymous() => own,
            ClientKey::None | ClientKey::Connection(_) | ClientKey::Key(_) => {
                self.principal.subject()
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
/// Requests that it does not identify have the principal of their token or else of their user. Requests without any
/// principal are anonymous: every client that knows an id may use it. This is not authentication: a token or a proxy in front
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

    /// Returns the principal of a request with this key. A token tells more than a user id, which all programs of a
    /// user share.
    pub(super) fn principal(&self, http_request: &HttpRequest, key: &ClientKey) -> Principal {
        let derive = self.derive.as_ref();
        let derived = derive.and_then(|derive| derive(&http_request.headers));
        let principal = match (derived, &http_request.token_name, http_request.peer_uid) {
            (Some(name), _, _) => Principal::derived(&name),
            (None, Some(name), _) => Principal::token(name),
            (None, None, Some(uid)) => Principal::uid(uid),
            (None, None, None) => Principal::ANONYMOUS,
        };
        principal.with_key(key)
    }
}

impl fmt::Debug for PrincipalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrincipalSource(..)")
    }
}

/// Unique principal of an anonymous client with its own connection. No header can name it.
fn unique_connection() -> Arc<str> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    format!("\0connection {number}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str) -> ClientKey {
        ClientKey::Key(Arc::from(key))
    }

    /// Different evidence and different keys make different principals; neither key nor name is logged.
    #[test]
    fn principals_differ_by_evidence_and_key() {
        let subjects = [
            Principal::ANONYMOUS,
            Principal::token("ada"),
            Principal::token("uid 1"),
            Principal::uid(1),
            Principal::uid(11),
            Principal::derived("ada"),
            Principal::derived("uid 1"),
            Principal::derived(""),
        ];
        let keys = [ClientKey::None, key("a"), key("uid"), key("token")];
        let all: Vec<Principal> = subjects
            .iter()
            .flat_map(|subject| keys.iter().map(|key| subject.clone().with_key(key)))
            .collect();
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(
                    one == other,
                    at == other_at,
                    "{} {}",
                    one.text(),
                    other.text()
                );
            }
            let shown = format!("{one:?}");
            assert!(!shown.contains("ada"), "{shown}");
        }
        let ada = Principal::token("ada").with_key(&key("k"));
        assert_eq!((ada.name(), ada.subject()), ("ada", "token ada"));
        assert_eq!(Principal::uid(7).name(), "uid 7");
        assert_eq!(Principal::ANONYMOUS.with_key(&key("k")).subject(), "");
    }

    /// The owner of an anonymous client is its connection; the limits of a principal ignore its keys.
    #[test]
    fn owner_is_the_principal_or_the_connection() {
        let identity = ClientIdentity::connected(Principal::ANONYMOUS);
        assert!(identity.owner().starts_with('\0'));
        assert_eq!(identity.owner(), identity.limited_owner());
        assert_eq!(ClientIdentity::default().owner(), "");
        let ada = Principal::token("ada");
        assert_eq!(ClientIdentity::connected(ada.clone()).owner(), "token ada");
        let keyed = ClientIdentity {
            principal: ada.with_key(&key("k")),
            key: key("k"),
        };
        assert_eq!(keyed.limited_owner(), "token ada");
        assert_ne!(keyed.owner(), "token ada");
    }

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
