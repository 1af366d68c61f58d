//! Request ids: strings and integers, echoed exactly as they came.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use core::hash::{Hash, Hasher};

use crate::scan::{is_unspeakable, quote, unquote};

/// A borrowed request id: the raw JSON token.
#[derive(Clone, Copy, Debug)]
pub struct IdRef<'a> {
    raw: &'a str,
}

/// An owned request id: the raw JSON token. Copies share it.
#[derive(Clone, Debug)]
pub struct Id {
    raw: Arc<str>,
}

impl<'a> IdRef<'a> {
    /// Accepts a string or an integer token; refuses null, fractions, exponents and everything
    /// else.
    ///
    /// `2025-11-25 basic/index#requests`: an id is a string or an integer and never null.
    #[must_use]
    pub fn from_token(raw: &'a str) -> Option<Self> {
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        (raw.starts_with('"') || is_integer).then_some(Self { raw })
    }

    /// The token as it came.
    #[must_use]
    pub const fn raw(self) -> &'a str {
        self.raw
    }

    /// Common form of all spellings of an id; `1` and `"1"` stay different.
    fn key(self) -> (bool, Cow<'a, str>) {
        let is_text = self.raw.starts_with('"');
        if is_unspeakable(self.raw) {
            // Two such ids would look alike once their surrogates are replaced.
            return (is_text, Cow::Borrowed(self.raw));
        }
        (is_text, unquote(self.raw))
    }

    /// An owned copy.
    #[must_use]
    pub fn to_id(self) -> Id {
        Id {
            raw: Arc::from(self.raw),
        }
    }
}

impl Id {
    /// A string id.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            raw: Arc::from(quote(text)),
        }
    }

    /// An integer id.
    #[must_use]
    pub fn number(number: i64) -> Self {
        Self {
            raw: Arc::from(alloc::format!("{number}")),
        }
    }

    /// The borrowed form.
    #[must_use]
    pub fn as_ref(&self) -> IdRef<'_> {
        IdRef { raw: &self.raw }
    }

    /// The token as it came.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl PartialEq for IdRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw || self.key() == other.key()
    }
}

impl Eq for IdRef<'_> {}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().key().hash(state);
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        if self.raw == other.raw {
            return core::cmp::Ordering::Equal;
        }
        self.as_ref().key().cmp(&other.as_ref().key())
    }
}

impl core::fmt::Display for Id {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strings_and_integers_are_ids() {
        for good in ["1", "-7", "18446744073709551615", "\"\"", "\"a\\u0062\""] {
            assert_eq!(
                IdRef::from_token(good).map(IdRef::raw),
                Some(good),
                "{good}"
            );
        }
        for bad in ["null", "1.5", "1.0", "1e3", "true", "{}", "[]", "", "-"] {
            assert_eq!(IdRef::from_token(bad), None, "{bad}");
        }
    }

    #[test]
    fn spelling_does_not_matter_but_type_does() {
        let of = |raw| IdRef::from_token(raw).unwrap();
        assert_eq!(of("\"a\""), of("\"\\u0061\""));
        assert_ne!(of("1"), of("\"1\""));
        assert_ne!(of(r#""\ud800""#), of(r#""\ud801""#));
    }
}
