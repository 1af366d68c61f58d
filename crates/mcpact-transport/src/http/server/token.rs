//! Bearer token of a server.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;

/// Minimum length; shorter tokens could be guessed.
const SHORTEST: usize = 16;

/// The bearer token of a server; `Debug` hides it.
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
            Self::Wrong => "Bearer error=\"invalid_token\"",
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

    /// Compares the token of a request in constant time.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), TokenRefusal> {
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let shown = match (all.next(), all.next()) {
            (None, _) => return Err(TokenRefusal::Missing),
            (Some(value), None) => value.as_bytes(),
            (Some(_), Some(_)) => return Err(TokenRefusal::Wrong),
        };
        let shown = shown
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "))
            .map(|(_, shown)| shown)
            .ok_or(TokenRefusal::Missing)?;
        if bool::from(self.0.as_bytes().ct_eq(shown)) {
            Ok(())
        } else {
            Err(TokenRefusal::Wrong)
        }
    }
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
        let token = Token::new(&format!(" {SECRET}\n")).unwrap();
        let shown = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            token.check(&headers)
        };
        assert_eq!(shown(&["Bearer 0123456789abcdef"]), Ok(()));
        assert_eq!(shown(&["bearer 0123456789abcdef"]), Ok(()));
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
