//! Texts that must not be shown, and texts that are shown as they were written.

use std::fmt;

/// A text that nobody sees: `Debug` and `Display` are masked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for whoever must send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A text whose variables were filled in. What is shown is what was written: the value of a variable
/// may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Filled {
    value: String,
    written: String,
}

impl Filled {
    /// A text and how it was written.
    pub fn new(value: impl Into<String>, written: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            written: written.into(),
        }
    }

    /// The text, variables filled in.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The text as it was written, which may be shown.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl From<&str> for Filled {
    fn from(text: &str) -> Self {
        Self::new(text, text)
    }
}

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
