//! Bearer tokens of a server.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::{Choice, ConstantTimeEq};

/// Minimum length; shorter tokens could be guessed.
const SHORTEST: usize = 16;

/// A bearer token; `Debug` hides it.
#[derive(Clone)]
pub struct Token(Box<str>);

/// Reason why a text is not a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is too short.
    #[error("the token is shorter than {SHORTEST} characters: use a random one")]
    TooShort,
    /// It has characters that a header cannot carry.
    #[error("the token contains a space or a non-ASCII character")]
    Unsendable,
}

/// Reason for rejecting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// It has no token.
    Missing,
    /// It has another token, or several.
    Wrong,
}

impl TokenRefusal {
    /// Returns the `WWW-Authenticate` challenge: RFC 6750, section 3.
    pub(super) const fn challenge(self) -> &'static str {
        match self {
            Self::Missing => "Bearer",
            Self::Wrong => {
                "Bearer error=\"invalid_token\", error_description=\"the token is wrong\""
            }
        }
    }

    /// Returns the body of the response.
    pub(super) const fn body(self) -> &'static str {
        match self {
            Self::Missing => "a bearer token is required: send `Authorization: Bearer TOKEN`",
            Self::Wrong => "the bearer token is wrong: it is none of the tokens of this server",
        }
    }
}

impl Token {
    /// Creates a token from a text without surrounding white space.
    ///
    /// # Errors
    /// The text is too short or has invalid characters.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unsendable);
        }
        if text.len() < SHORTEST {
            return Err(TokenError::TooShort);
        }
        Ok(Self(text.into()))
    }

    /// Compares texts in constant time.
    fn is(&self, shown: &[u8]) -> Choice {
        self.0.as_bytes().ct_eq(shown)
    }
}

/// Accepted bearer tokens of a server, each with the name of its holder. Without tokens, every request is accepted.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    all: Vec<(Arc<str>, Token)>,
}

impl Tokens {
    /// Adds a token.
    pub fn add(&mut self, name: &str, token: Token) {
        self.all.push((Arc::from(name), token));
    }

    /// Returns `true` if no token is required.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the name of the token of a request, if tokens are required. The time depends neither on the token of
    /// the request nor on the name.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, TokenRefusal> {
        if self.all.is_empty() {
            return Ok(None);
        }
        let shown = shown_in(headers)?;
        let mut found = None;
        for (name, token) in &self.all {
            if bool::from(token.is(shown)) {
                found = Some(name);
            }
        }
        found.map(Arc::clone).map(Some).ok_or(TokenRefusal::Wrong)
    }
}

/// Returns the bearer token of a request.
fn shown_in(headers: &HeaderMap) -> Result<&[u8], TokenRefusal> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let shown = match (all.next(), all.next()) {
        (None, _) => return Err(TokenRefusal::Missing),
        (Some(value), None) => value.as_bytes(),
        (Some(_), Some(_)) => return Err(TokenRefusal::Wrong),
    };
    shown
        .split_at_checked(7)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "))
        .map(|(_, shown)| shown)
        .ok_or(TokenRefusal::Missing)
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    /// T8: only the whole token, sent once, is accepted; the scheme is case-insensitive.
    #[test]
    fn only_the_exact_token_is_accepted() {
        let mut tokens = Tokens::default();
        tokens.add("ada", Token::new(&format!(" {SECRET}\n")).unwrap());
        tokens.add("bob", Token::new("another-token-of-bob").unwrap());
        let shown = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            let name = tokens.check(&headers)?;
            Ok(name.map(|name| name.to_string()))
        };
        let ada = Ok(Some(String::from("ada")));
        assert_eq!(shown(&["Bearer 0123456789abcdef"]), ada);
        assert_eq!(shown(&["bearer 0123456789abcdef"]), ada);
        let bob = shown(&["Bearer another-token-of-bob"]);
        assert_eq!(bob, Ok(Some(String::from("bob"))));
        assert_eq!(Tokens::default().check(&HeaderMap::new()), Ok(None));
        for missing in [&[][..], &["Basic 0123456789abcdef"], &["Bearer"], &[""]] {
            assert_eq!(shown(missing), Err(TokenRefusal::Missing), "{missing:?}");
        }
        for wrong in [
            &["Bearer "][..],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdeF"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer  0123456789abcdef"],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert_eq!(shown(wrong), Err(TokenRefusal::Wrong), "{wrong:?}");
        }
    }

    #[test]
    fn weak_tokens_are_rejected_and_tokens_hidden() {
        assert_eq!(Token::new("short").unwrap_err(), TokenError::TooShort);
        assert_eq!(Token::new("").unwrap_err(), TokenError::TooShort);
        let spaced = "0123456789 abcdef";
        assert_eq!(Token::new(spaced).unwrap_err(), TokenError::Unsendable);
        assert!(!format!("{:?}", Token::new(SECRET).unwrap()).contains("0123"));
    }
}
