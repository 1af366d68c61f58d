//! Raw result of a server, and the keys that the scan of its message has seen.

use std::ops::Deref;

use bytestring::ByteString;
use mcpact_wire::scan::SeenKeys;

/// Raw result. The keys seen in it replace searches of the text.
#[derive(Clone, Debug)]
pub struct RawResult {
    text: ByteString,
    seen: SeenKeys,
}

impl RawResult {
    /// Creates a scanned result.
    pub(crate) const fn scanned(text: ByteString, seen: SeenKeys) -> Self {
        Self { text, seen }
    }

    /// Returns the same result in another revision, which has the same keys to look for.
    #[must_use]
    pub const fn translated(&self, text: ByteString) -> Self {
        Self {
            text,
            seen: self.seen,
        }
    }

    /// Returns whether one of these keys may be in the result, at any depth.
    #[must_use]
    pub const fn may_have(&self, keys: SeenKeys) -> bool {
        self.seen.may_have(keys)
    }

    /// Returns the text.
    #[must_use]
    pub fn into_text(self) -> ByteString {
        self.text
    }
}

impl Deref for RawResult {
    type Target = ByteString;

    fn deref(&self) -> &ByteString {
        &self.text
    }
}

impl From<ByteString> for RawResult {
    fn from(text: ByteString) -> Self {
        Self {
            text,
            seen: SeenKeys::ANY,
        }
    }
}

impl From<String> for RawResult {
    fn from(text: String) -> Self {
        ByteString::from(text).into()
    }
}

impl From<&'static str> for RawResult {
    fn from(text: &'static str) -> Self {
        ByteString::from_static(text).into()
    }
}
